package pg_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"appliance/internal/pg"
	"appliance/internal/testservices"
)

func TestEveryReplicaMayMigrateAtOnce(t *testing.T) {
	url := testservices.Postgres(t)
	var all sync.WaitGroup
	done := make(chan pg.Migrated, 4)
	for range 4 {
		all.Go(func() {
			m, err := pg.Migrate(t.Context(), pg.Config{URL: "postgres://nowhere.invalid/x", DirectURL: url})
			if err != nil {
				t.Error(err)
			}
			done <- m
		})
	}
	all.Wait()
	close(done)
	applied := 0
	for m := range done {
		if m.To != 1 {
			t.Errorf("a replica ended at version %d", m.To)
		}
		applied += int(m.To - m.From)
	}
	if applied != 1 {
		t.Errorf("the migration was applied %d times", applied)
	}
	if m, err := pg.Migrate(t.Context(), pg.Config{URL: url}); err != nil || m.From != m.To {
		t.Errorf("again: %+v, %v", m, err)
	}
}

func TestEveryReplicaMayMakePartitionsAtOnce(t *testing.T) {
	db, _ := migrated(t)
	made := make(chan int, 4)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			n, err := db.EnsureMonths(t.Context(), now, 13, 3)
			if err != nil {
				t.Error(err)
			}
			made <- n
		})
	}
	all.Wait()
	close(made)
	total := 0
	for n := range made {
		total += n
	}
	if total != 14 { // 17, of which the test's schema has 3
		t.Errorf("%d partitions made, want 14", total)
	}
	window, err := db.Window(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(window, pg.Months(now, 13, 3)) {
		t.Errorf("window %v", window)
	}
}

func TestPartitionsDoNotWaitForAnOpenTransactionOfAWriter(t *testing.T) {
	db, url := migrated(t)
	writer := connect(t, url)
	tx, err := writer.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `INSERT INTO events.cloud_event (occurred_at, raw, payload_sha256)
 VALUES ($1, '{"specversion":"1.0","id":"1","source":"/s","type":"t"}', '\x')`, now); err != nil {
		t.Fatal(err)
	}
	if made, err := db.EnsureMonths(t.Context(), now, 1, 2); err != nil || made != 1 {
		t.Fatalf("%d made, %v", made, err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestBoundsAreInstantsOfUTCInAnyTimeZone(t *testing.T) {
	url := testservices.Postgres(t)
	if _, err := pg.Migrate(t.Context(), pg.Config{URL: url}); err != nil {
		t.Fatal(err)
	}
	conn := connect(t, url)
	if _, err := conn.Exec(t.Context(), "SET timezone = 'Asia/Tokyo'; SELECT events.ensure_months('2026-11-30 20:00Z', '2026-12-31 20:00Z')"); err != nil {
		t.Fatal(err)
	}
	window, err := open(t, url).Window(t.Context())
	want := pg.Months(time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), 0, 1)
	if err != nil || !slices.Equal(window, want) {
		t.Errorf("window %v, %v; want %v", window, err, want)
	}
	db := open(t, url)
	edge := event(0)
	for _, at := range []time.Time{want[1].From.Add(-time.Microsecond), want[1].From} {
		edge.OccurredAt = at
		if _, err := db.Write(t.Context(), group, []pg.Row{edge}, nil); err != nil {
			t.Fatal(err)
		}
	}
	var november, december int
	err = conn.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM events.cloud_event_2026_11),
 (SELECT count(*) FROM events.cloud_event_2026_12)`).Scan(&november, &december)
	if err != nil || november != 1 || december != 1 {
		t.Errorf("november %d, december %d, %v", november, december, err)
	}
}

func TestTheTablesHaveTheColumnsAndIndexesThatAreDocumented(t *testing.T) {
	_, url := migrated(t)
	conn := connect(t, url)
	tables := list(t, conn, `SELECT relname FROM pg_class WHERE relnamespace = 'events'::regnamespace
 AND relkind IN ('r', 'p') AND NOT relispartition ORDER BY 1`)
	want := "cloud_event consumer_checkpoint dead_letter event_rollup_hourly event_source event_type lease pipeline_ack " +
		"pipeline_state rollup_watermark schema_version"
	if got := strings.Join(tables, " "); got != want {
		t.Errorf("tables %s, want %s", got, want)
	}
	indexes := list(t, conn, `SELECT regexp_replace(pg_get_indexdef(indexrelid), '^CREATE (UNIQUE )?INDEX (\w+) ON ONLY events\.cloud_event USING', '\1\2')
 FROM pg_index WHERE indrelid = 'events.cloud_event'::regclass ORDER BY 1`)
	wantIndexes := []string{
		"UNIQUE cloud_event_identity_uk btree (occurred_at, ce_source, ce_id)", "cloud_event_ingested_ix brin (ingested_at)",
		"cloud_event_occurred_ix btree (occurred_at, event_uid)", "cloud_event_tail_ix btree (ingest_xid, event_uid)",
		"cloud_event_type_ix btree (ce_type, occurred_at)",
	}
	slices.Sort(indexes)
	if !slices.Equal(indexes, wantIndexes) {
		t.Errorf("indexes %q, want %q", indexes, wantIndexes)
	}
	written := list(t, conn, `SELECT attname FROM pg_attribute WHERE attrelid = 'events.cloud_event'::regclass
 AND attnum > 0 AND attgenerated = '' AND attidentity = '' AND NOT atthasdef ORDER BY attnum`)
	if got := strings.Join(written, " "); got != "occurred_at raw payload_sha256 origin_topic_id origin_partition origin_offset traceparent" {
		t.Errorf("written columns: %s", got)
	}
	strays := list(t, conn, `SELECT c.relname FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid
 WHERE inhparent = 'events.cloud_event'::regclass AND (pg_get_expr(c.relpartbound, c.oid) = 'DEFAULT'
 OR (SELECT count(*) FROM pg_index WHERE indrelid = c.oid) <> 5)`)
	if len(strays) > 0 {
		t.Errorf("default partitions, or ones without all five indexes: %q", strays)
	}
}

func TestPG37TheEventsTimeCannotBeAGeneratedColumn(t *testing.T) {
	_, url := migrated(t)
	_, err := connect(t, url).Exec(t.Context(),
		"ALTER TABLE events.cloud_event ADD t timestamptz GENERATED ALWAYS AS ((raw ->> 'time')::timestamptz) STORED")
	expectState(t, err, "42P17", "")
}

func list(t *testing.T, conn *pgx.Conn, query string) []string {
	t.Helper()
	rows, err := conn.Query(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

func TestMonths(t *testing.T) {
	at := func(y int, m time.Month, d, h int) time.Time { return time.Date(y, m, d, h, 0, 0, 0, time.UTC) }
	for _, c := range []struct {
		name        string
		now         time.Time
		back, ahead int
		first, end  time.Time
	}{
		{"this month alone", at(2026, 11, 30, 23), 0, 0, at(2026, 11, 1, 0), at(2026, 12, 1, 0)},
		{"the 31st reaches back over a shorter month", at(2026, 3, 31, 0), 1, 0, at(2026, 2, 1, 0), at(2026, 4, 1, 0)},
		{"across the year", at(2026, 12, 31, 23), 13, 3, at(2025, 11, 1, 0), at(2027, 4, 1, 0)},
		{"a local clock is read as UTC", at(2026, 11, 30, 23).In(time.FixedZone("", 7200)), 0, 0, at(2026, 11, 1, 0), at(2026, 12, 1, 0)},
	} {
		t.Run(c.name, func(t *testing.T) {
			months := pg.Months(c.now, c.back, c.ahead)
			if len(months) != c.back+c.ahead+1 || months[0].From != c.first || months[len(months)-1].Until != c.end {
				t.Errorf("got %v", months)
			}
			for i := 1; i < len(months); i++ {
				if months[i].From != months[i-1].Until {
					t.Errorf("a gap before %v", months[i])
				}
			}
		})
	}
}
