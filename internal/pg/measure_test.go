package pg_test

import (
	"crypto/rand"
	"reflect"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"appliance/internal/pg"
)

// The floor is only one if it stores the very rows that the writer stores.
func TestCopyStoresWhatWriteStores(t *testing.T) {
	db, url := migrated(t)
	rows := events(0, 3)
	rows[1].Traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	rows[2].Partition, rows[2].Offset = 11, 1<<40
	epoch := claim(t, db, "writer").Epoch
	if _, err := db.Write(t.Context(), group, rows, []pg.Position{position(epoch, 3)}); err != nil {
		t.Fatal(err)
	}
	written := writtenColumns(t, url)
	if err := db.Empty(t.Context()); err != nil {
		t.Fatal(err)
	}
	if span, err := db.Ingested(t.Context()); err != nil || span.Rows != 0 || !span.First.IsZero() {
		t.Errorf("empty: %+v %v", span, err)
	}
	began, err := db.Clock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n, err := db.Copy(t.Context(), pg.EncodeCopy(rows)); n != 3 || err != nil {
		t.Fatalf("copied %d: %v", n, err)
	}
	if copied := writtenColumns(t, url); !reflect.DeepEqual(copied, written) || len(written) != 3 {
		t.Errorf("copied  %v\nwritten %v", copied, written)
	}
	if span, err := db.Ingested(t.Context()); err != nil || span.Rows != 3 || span.First.Before(began) || span.Last.Before(span.First) {
		t.Errorf("%+v %v, began %v", span, err, began)
	}
}

func writtenColumns(t *testing.T, url string) [][]any {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	rows, err := conn.Query(t.Context(), `SELECT occurred_at, raw::text, payload_sha256, origin_topic_id, origin_partition, origin_offset, traceparent, ce_id
 FROM events.cloud_event ORDER BY occurred_at`)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) ([]any, error) { return row.Values() })
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestADatabaseBesideIsMadeAndDropped(t *testing.T) {
	_, url := migrated(t)
	name := "test_beside_" + strings.ToLower(rand.Text()[:10])
	for _, raw := range []string{url, "jdbc:" + url} {
		c := pg.Config{URL: raw, DirectURL: raw}
		beside, err := pg.CreateDatabase(t.Context(), c, name)
		if err != nil {
			t.Fatal(err)
		}
		db, err := pg.Open(t.Context(), beside)
		if err != nil || beside.URL == url || beside.DirectURL != beside.URL {
			t.Fatalf("%q, direct %q: %v", beside.URL, beside.DirectURL, err)
		}
		db.Close()
		if err := pg.DropDatabase(t.Context(), c, name); err != nil {
			t.Fatal(err)
		}
		if db, err := pg.Open(t.Context(), beside); err == nil {
			db.Close()
			t.Error("it is still there")
		}
	}
}
