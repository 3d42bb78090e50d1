package ledger

import "testing"

// BenchmarkSettle is the sorting of one full batch, without the database.
func BenchmarkSettle(b *testing.B) {
	messages := decoded(batchOf(500, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := settle(messages, "persist", at); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(messages)), "ns/record")
}
