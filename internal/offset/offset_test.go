package offset

import "testing"

const (
	this  = "AAAAAAAAAAAAAAAAAAAAAA"
	other = "BBBBBBBBBBBBBBBBBBBBBB"
)

func TestResolve(t *testing.T) {
	for name, tc := range map[string]struct {
		commit     Commit
		checkpoint int64
		log        Log
		want       Start
	}{
		"a commit is obeyed, also behind the checkpoint": {Commit{10, this}, 50, Log{0, 100}, Start{At: 10, Origin: FromCommit}},
		"also one that another tool made":                {Commit{10, ""}, 50, Log{0, 100}, Start{At: 10, Origin: FromCommit}},
		"whose metadata is its own affair":               {Commit{10, "reset by ops"}, 50, Log{0, 100}, Start{At: 10, Origin: FromCommit}},
		"a commit at the end waits there":                {Commit{100, this}, -1, Log{0, 100}, Start{At: 100, Origin: FromCommit}},
		"a commit below the log start goes on there":     {Commit{10, this}, -1, Log{500, 900}, Start{At: 500, Origin: FromCommit, Gap: 490}},
		"a commit of an earlier topic is dropped":        {Commit{10, other}, -1, Log{0, 100}, Start{At: 0, Origin: FromEarliest, Foreign: true}},
		"as is one beyond the end":                       {Commit{101, ""}, -1, Log{3, 100}, Start{At: 3, Origin: FromEarliest, Foreign: true}},
		"then the checkpoint counts":                     {Commit{101, other}, 40, Log{0, 100}, Start{At: 40, Origin: FromCheckpoint, Foreign: true}},
		"no commit: the checkpoint":                      {Commit{At: -1}, 40, Log{0, 100}, Start{At: 40, Origin: FromCheckpoint}},
		"a checkpoint below the log start goes on there": {Commit{At: -1}, 40, Log{50, 100}, Start{At: 50, Origin: FromCheckpoint, Gap: 10}},
		"a checkpoint beyond the end is no checkpoint":   {Commit{At: -1}, 400, Log{5, 100}, Start{At: 5, Origin: FromEarliest}},
		"neither: the oldest record":                     {Commit{At: -1}, -1, Log{7, 100}, Start{At: 7, Origin: FromEarliest}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Resolve(tc.commit, this, tc.checkpoint, tc.log); got != tc.want {
				t.Fatalf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestLag(t *testing.T) {
	for name, tc := range map[string]struct {
		committed int64
		log       Log
		lag       int64
		ok        bool
	}{
		"never committed is unknown":            {-1, Log{0, 100}, 0, false},
		"behind":                                {90, Log{0, 100}, 10, true},
		"beyond the end is caught up":           {120, Log{0, 100}, 0, true},
		"records that are gone are not counted": {10, Log{60, 100}, 40, true},
	} {
		t.Run(name, func(t *testing.T) {
			if lag, ok := Lag(tc.committed, tc.log); lag != tc.lag || ok != tc.ok {
				t.Fatalf("got %d, %v, want %d, %v", lag, ok, tc.lag, tc.ok)
			}
		})
	}
}

func TestAhead(t *testing.T) {
	if Ahead(120, 100) != 20 || Ahead(100, 120) != 0 || Ahead(-1, 5) != 0 || Ahead(5, -1) != 0 {
		t.Fatal("a checkpoint is ahead by its difference to a known commit, and never by less than nothing")
	}
}
