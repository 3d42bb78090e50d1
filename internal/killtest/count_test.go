package killtest

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"appliance/internal/broker"
	"appliance/internal/deadletter"
	"appliance/internal/event"
	"appliance/internal/intake"
)

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func number(t *testing.T, conn *pgx.Conn, sql string, args ...any) int {
	t.Helper()
	var n int
	if err := conn.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

func newAdmin(t *testing.T, bootstrap string) *broker.Admin {
	t.Helper()
	admin, err := broker.NewAdmin(broker.Cluster{Brokers: []string{bootstrap}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(admin.Close)
	return admin
}

// drained reports whether every partition is committed up to its end. What is away counts as not drained.
func drained(ctx context.Context, admin *broker.Admin, s setting) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	logs, err := admin.Logs(ctx, s.topic)
	if err != nil {
		return false
	}
	committed, err := admin.Committed(ctx, s.group)
	if err != nil {
		return false
	}
	for tp, log := range logs {
		if at, ok := committed[tp]; log.End > 0 && (!ok || at != log.End) {
			return false
		}
	}
	return true
}

// countByID compares table, dead letters and offsets with what was produced, record by record.
func countByID(t *testing.T, s setting, l *load, kills int) {
	t.Helper()
	conn, admin := connect(t, s.postgres), newAdmin(t, s.kafka)
	rows := idsInTable(t, conn)
	letters := lettersByPlace(t, s, admin)
	lost, doubled, stored := 0, 0, 0
	for n := range l.total {
		switch copies := rows[id(n)]; {
		case l.isPoison(n):
			stored += copies
		case copies == 0:
			lost++
		case copies > 1:
			doubled++
		}
	}
	if lost != 0 || doubled != 0 || stored != 0 {
		t.Errorf("%d good events lost, %d stored twice, %d poison events stored", lost, doubled, stored)
	}
	countLetters(t, l, letters, kills)
	comparePositions(t, conn, admin, s)
}

func idsInTable(t *testing.T, conn *pgx.Conn) map[string]int {
	t.Helper()
	rows, err := conn.Query(t.Context(), "select ce_id from events.cloud_event")
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	var one string
	if _, err := pgx.ForEachRow(rows, []any{&one}, func() error { counts[one]++; return nil }); err != nil {
		t.Fatal(err)
	}
	return counts
}

// countLetters: every poison record has a letter with its bytes, no good one has any, and copies are as many as kills
// explain.
func countLetters(t *testing.T, l *load, letters map[place][]event.Record, kills int) {
	t.Helper()
	byKind, copies, worst := map[string]int{}, 0, 0
	for at, p := range l.poison {
		found := letters[at]
		if len(found) == 0 {
			t.Errorf("poison %s (%s) at %v has no dead letter", p.id, p.kind, at)
			continue
		}
		for _, r := range found {
			if !bytes.Equal(r.Value, p.value) {
				t.Errorf("dead letter of %s at %v holds other bytes", p.id, at)
			}
		}
		byKind[p.kind]++
		copies += len(found) - 1
		worst = max(worst, len(found))
	}
	for at := range letters {
		if _, ok := l.poison[at]; !ok {
			t.Errorf("a good record at %v has a dead letter", at)
		}
	}
	t.Logf("%d poison records dead-lettered, by kind %v; %d further copies, at most %d of one ref", len(l.poison), byKind, copies, worst)
	if most := kills * batchesAKill / l.poisonEvery; copies > most {
		t.Errorf("%d further copies, more than %d: the poison of one batch a kill and lane", copies, most)
	}
	// A kill can repeat a ref once, and the rebalances before and after it once more.
	if worst > 1+2*kills {
		t.Errorf("one ref has %d copies after %d kills", worst, kills)
	}
}

func lettersByPlace(t *testing.T, s setting, admin *broker.Admin) map[place][]event.Record {
	t.Helper()
	logs, err := admin.Logs(t.Context(), s.dlq)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	found := map[place][]event.Record{}
	err = broker.Read(ctx, broker.Cluster{Brokers: []string{s.kafka}}, nil, logs, func(r event.Record) error {
		reading := deadletter.Read(r.Value, r.Headers)
		if reading.Letter == nil {
			return fmt.Errorf("dead-letter topic holds something else: %s", reading.Problem)
		}
		at := place{reading.Letter.Record.Partition, reading.Letter.Record.Offset}
		found[at] = append(found[at], reading.Letter.Record)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// comparePositions: per partition checkpoint = committed = end.
func comparePositions(t *testing.T, conn *pgx.Conn, admin *broker.Admin, s setting) {
	t.Helper()
	logs, err := admin.Logs(t.Context(), s.topic)
	if err != nil {
		t.Fatal(err)
	}
	committed, err := admin.Committed(t.Context(), s.group)
	if err != nil {
		t.Fatal(err)
	}
	for _, tp := range slices.SortedFunc(maps.Keys(logs), func(a, b intake.TP) int { return int(a.Partition - b.Partition) }) {
		if logs[tp].End == 0 {
			continue
		}
		next := number(t, conn, "select next_offset from events.consumer_checkpoint where group_id=$1 and topic=$2 and partition=$3", s.group, s.topic, tp.Partition)
		if int64(next) != logs[tp].End || committed[tp] != logs[tp].End {
			t.Errorf("partition %d: checkpoint %d, committed %d, end %d", tp.Partition, next, committed[tp], logs[tp].End)
		}
	}
}
