package offset

import (
	"testing"
	"time"
)

func TestStall(t *testing.T) {
	type look struct {
		minute  int
		at, end int64
		stalled bool
	}
	for name, looks := range map[string][]look{
		"caught up for an hour is no stall":          {{0, 10, 10, false}, {60, 10, 10, false}},
		"nor is the first record after that":         {{0, 10, 10, false}, {60, 10, 11, false}, {61, 11, 11, false}},
		"slow progress is progress":                  {{0, 10, 90, false}, {2, 11, 90, false}, {4, 12, 90, false}},
		"standing behind the end is one, in time":    {{0, 10, 90, false}, {1, 10, 95, false}, {2, 10, 99, true}},
		"and it begins anew when the position moved": {{0, 10, 90, false}, {1, 11, 90, false}, {2, 11, 90, false}, {3, 11, 90, true}},
	} {
		t.Run(name, func(t *testing.T) {
			s := Stall[int]{After: 2 * time.Minute}
			for _, l := range looks {
				got := s.Look(map[int]int64{1: l.at}, map[int]int64{1: l.end}, time.Unix(int64(l.minute)*60, 0))
				if (len(got) == 1) != l.stalled {
					t.Fatalf("minute %d: stalled %v, want %v", l.minute, got, l.stalled)
				}
			}
		})
	}
}

func TestAKeyThatGoesIsForgotten(t *testing.T) {
	s := Stall[int]{After: time.Minute}
	s.Look(map[int]int64{1: 5}, map[int]int64{1: 9}, time.Unix(0, 0))
	s.Look(nil, nil, time.Unix(30, 0))
	if got := s.Look(map[int]int64{1: 5}, map[int]int64{1: 9}, time.Unix(61, 0)); len(got) != 0 {
		t.Fatalf("a partition that was away meanwhile is stalled: %v", got)
	}
}
