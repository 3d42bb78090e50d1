package pg_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"appliance/internal/pg"
)

var dlqID = [16]byte{1: 3}

func letter(ref string, offset int64) pg.DeadLetter {
	return pg.DeadLetter{
		Ref: ref, DLQTopicID: dlqID, DLQPartition: 0, DLQOffset: offset, OriginTopic: "topic", OriginTopicID: topicID,
		OriginPartition: 2, OriginOffset: 5, Pipeline: "persist", Reason: "no-time", Detail: "no time", Fingerprint: "f",
		EventID: "1", EventType: "t", EventSource: "/s", Attempt: 1, ReplayOf: "topic/2/1", Readable: true, Part: 1, Parts: 1,
		Seen: now.Add(time.Duration(offset) * time.Second),
	}
}

type indexed struct {
	DLQOffset        int64
	Reason, Problem  string
	EventID          *string
	Readable         bool
	Copies, Parts    int
	PartsHave        []int32
	First, Last      time.Time
	State            string
	OriginTopicID    *[16]byte
	OriginOffset     *int64
	Fingerprint, Ref string
}

func readIndex(t *testing.T, url string) []indexed {
	t.Helper()
	rows, err := connect(t, url).Query(t.Context(), `SELECT dlq_offset, reason, problem, event_id, readable, copies, parts, parts_have,
 first_seen, last_seen, state, origin_topic_id, origin_offset, fingerprint, ref FROM events.dead_letter ORDER BY ref`)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[indexed])
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestTheIndexCountsACopyOnceHoweverOftenItIsRead(t *testing.T) {
	db, url := migrated(t)
	epoch := claim(t, db, "a").Epoch
	write := func(next int64, letters ...pg.DeadLetter) {
		t.Helper()
		if err := db.WriteDeadLetters(t.Context(), group, letters, []pg.Position{position(epoch, next)}); err != nil {
			t.Fatal(err)
		}
	}
	again := letter("topic/2/5", 3)
	again.Reason, again.EventID = "unpersistable", ""
	for range 3 {
		write(1, letter("topic/2/5", 0))
		write(4, letter("topic/2/5", 0), again, letter("topic/2/9", 2))
	}
	all := readIndex(t, url)
	if len(all) != 2 {
		t.Fatalf("%d letters, want 2", len(all))
	}
	got := all[0]
	if got.Copies != 2 || got.DLQOffset != 3 || got.Reason != "unpersistable" || got.EventID == nil || *got.EventID != "1" ||
		!got.First.Equal(now) || !got.Last.Equal(now.Add(3*time.Second)) || got.State != "open" || *got.OriginOffset != 5 {
		t.Errorf("after reading three times: %+v", got)
	}
	if all[1].Copies != 1 {
		t.Errorf("a letter without copies: %+v", all[1])
	}
	exec(t, url, "UPDATE events.dead_letter SET state = 'discarded', actor = 'me'")
	recreated := letter("topic/2/5", 0)
	recreated.DLQTopicID = [16]byte{1: 4}
	write(4, recreated)
	if got := readIndex(t, url)[0]; got.Copies != 3 || got.DLQOffset != 0 || got.State != "discarded" {
		t.Errorf("after the topic was made anew: %+v", got)
	}
}

func TestPartsOfALetterAreCountedTogether(t *testing.T) {
	db, url := migrated(t)
	var parts []pg.DeadLetter
	for n := range 3 {
		part := letter("topic/2/5", int64(n))
		part.Part, part.Parts = n+1, 3
		parts = append(parts, part)
	}
	for _, batch := range [][]pg.DeadLetter{parts[:2], parts, parts[2:], parts[1:2]} {
		if err := db.WriteDeadLetters(t.Context(), group, batch, nil); err != nil {
			t.Fatal(err)
		}
	}
	got := readIndex(t, url)[0]
	if got.Copies != 1 || got.Parts != 3 || !slices.Equal(got.PartsHave, []int32{1, 2, 3}) || got.DLQOffset != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestAMessageThatIsNoLetterIsIndexedToo(t *testing.T) {
	db, url := migrated(t)
	foreign := pg.DeadLetter{
		Ref: "dlq/0/7\x00\xff" + strings.Repeat("é", 2000), DLQTopicID: dlqID, DLQOffset: 7, Seen: now,
		Problem: "not JSON: \x00\xff" + strings.Repeat("x", 5000), EventID: "a\x00b",
	}
	for range 2 {
		if err := db.WriteDeadLetters(t.Context(), group, []pg.DeadLetter{foreign}, nil); err != nil {
			t.Fatal(err)
		}
	}
	got := readIndex(t, url)[0]
	if got.Readable || got.OriginTopicID != nil || got.OriginOffset != nil || len(got.Problem) > 1024 || *got.EventID != "a\uFFFDb" || got.Copies != 1 {
		t.Errorf("got %+v", got)
	}
}

func TestTheIndexIsFencedLikeRows(t *testing.T) {
	db, url := migrated(t)
	epoch := claim(t, db, "a").Epoch
	err := db.WriteDeadLetters(t.Context(), group, []pg.DeadLetter{letter("topic/0/1", 1)}, []pg.Position{position(epoch+1, 2)})
	if !errors.Is(err, pg.ErrFenced) {
		t.Fatalf("got %v", err)
	}
	if all := readIndex(t, url); len(all) != 0 {
		t.Errorf("%d letters were indexed", len(all))
	}
	expectStored(t, db, 0, -1)
}

func TestTheAuditReadsWhatWasWritten(t *testing.T) {
	db, _ := migrated(t)
	rows := events(0, 1000)
	for i := range rows {
		rows[i].Partition = int32(i % 3)
	}
	stray := event(2000)
	stray.TopicID = [16]byte{5}
	if _, err := db.Write(t.Context(), group, append(rows, stray), nil); err != nil {
		t.Fatal(err)
	}
	var got []string
	err := db.Origins(t.Context(), topicID, []pg.Range{{Partition: 0, From: 0, Until: 7}, {Partition: 2, From: 998, Until: 5000}},
		func(p int32, o int64) error {
			got = append(got, fmt.Sprintf("%d/%d", p, o))
			return nil
		})
	slices.Sort(got)
	if want := []string{"0/0", "0/3", "0/6", "2/998"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("origins %q, %v; want %q", got, err, want)
	}
	enough := errors.New("enough")
	err = db.Origins(t.Context(), topicID, []pg.Range{{From: 0, Until: 1000}}, func(int32, int64) error { return enough })
	if !errors.Is(err, enough) {
		t.Errorf("the reader's own end is %v", err)
	}
	absent := rows[4].Identity()
	absent.ID = "none"
	found, err := db.Lookup(t.Context(), []pg.Identity{absent, rows[4].Identity(), rows[3].Identity(), rows[4].Identity()})
	if err != nil || found[0] != nil || found[1].Offset != 4 || found[2].Offset != 3 || found[2].Partition != 0 || found[3].Offset != 4 {
		t.Errorf("found %+v, %v", found, err)
	}
	if found[1].TopicID != topicID || string(found[1].SHA256) != string(rows[4].SHA256[:]) {
		t.Errorf("found %+v", found[1])
	}
}
