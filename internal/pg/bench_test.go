package pg_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"appliance/internal/pg"
)

// BenchmarkWrite stores batches of new events of about 500 bytes with their checkpoint, on some connections at once.
// APPLIANCE_TEST_POSTGRES names the server; rows/s is the figure to read.
func BenchmarkWrite(b *testing.B) {
	for _, c := range []struct{ lanes, size int }{{1, 500}, {4, 500}, {1, 5000}, {4, 5000}} {
		b.Run(fmt.Sprintf("lanes=%d/rows=%d", c.lanes, c.size), func(b *testing.B) { benchmarkWrite(b, c.lanes, c.size) })
	}
}

func benchmarkWrite(b *testing.B, lanes, size int) {
	b.Helper()
	db, _ := migrated(b)
	epochs := make([]int64, lanes)
	for p := range epochs {
		c, err := db.Claim(b.Context(), group, "topic", topicID, int32(p), "bench")
		if err != nil {
			b.Fatal(err)
		}
		epochs[p] = c.Epoch
	}
	note := strings.Repeat("x", 200)
	var lane, serial atomic.Int64
	b.SetParallelism(lanes) // times GOMAXPROCS goroutines; those beyond lanes do nothing
	b.ResetTimer()
	started := time.Now()
	b.RunParallel(func(next *testing.PB) {
		p := int(lane.Add(1)) - 1
		if p >= lanes {
			return
		}
		rows := make([]pg.Row, size)
		for next.Next() {
			from := serial.Add(int64(size)) - int64(size)
			for i := range rows {
				rows[i] = benchmarkEvent(int(from)+i, p, note)
			}
			at := pg.Position{Topic: "topic", TopicID: topicID, Partition: int32(p), Epoch: epochs[p], Next: from + int64(size)}
			if n, err := db.Write(b.Context(), group, rows, []pg.Position{at}); err != nil || n != size {
				b.Errorf("%d written, %v", n, err)
				return
			}
		}
	})
	b.ReportMetric(float64(serial.Load())/time.Since(started).Seconds(), "rows/s")
}

func benchmarkEvent(k, partition int, note string) pg.Row {
	at := now.Add(time.Duration(k) * 137 * time.Microsecond)
	source, id := fmt.Sprintf("/devices/%d", k%1000), fmt.Sprintf("evt-%09d", k)
	raw := fmt.Sprintf(`{"specversion":"1.0","id":"%s","source":"%s","type":"com.example.reading.v%d","time":"%s","subject":"sensor/%d",`+
		`"datacontenttype":"application/json","data":{"temperature":%d.5,"humidity":%d,"battery":0.87,"site":"plant-%d","tags":["a","b","c"],"note":"%s"}}`,
		id, source, k%7, at.Format(time.RFC3339Nano), k%1000, k%40, k%100, k%20, note)
	r := row(at, source, id, raw, int64(k))
	r.Partition = int32(partition)
	return r
}
