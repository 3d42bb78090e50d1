package event_test

import (
	"fmt"
	"testing"

	"appliance/internal/event"
)

// order is the payload of a shop's event; the structured event around it has 500 bytes.
const order = `{"order_id":"ord-4711","customer":{"id":"c-99812","tier":"gold"},"items":[{"sku":"A-1","qty":2,"price":19.99},` +
	`{"sku":"B-7","qty":1,"price":5.49}],"total":45.47,"currency":"EUR","note":"leave at the door"}`

func structured(payload string) event.Record {
	return event.Record{
		Headers: []event.Header{
			{Key: "content-type", Value: []byte("application/cloudevents+json; charset=UTF-8")},
			{Key: "traceparent", Value: []byte("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")},
		},
		Value: fmt.Appendf(nil, `{"specversion":"1.0","id":"4f6c1a9e-8d0f-4f6d-9a43-1f0b7b1d7a10","source":"/shops/berlin/7",`+
			`"type":"com.example.order.created","subject":"ord-4711","time":"2026-11-30T09:10:11.123456Z",`+
			`"datacontenttype":"application/json","partitionkey":"c-99812","data":%s}`, payload),
	}
}

func binaryRecord(contentType, payload string) event.Record {
	r := event.Record{Value: []byte(payload)}
	for _, h := range [][2]string{
		{"content-type", contentType},
		{"ce_specversion", "1.0"},
		{"ce_id", "4f6c1a9e-8d0f-4f6d-9a43-1f0b7b1d7a10"},
		{"ce_source", "/shops/berlin/7"},
		{"ce_type", "com.example.order.created"},
		{"ce_subject", "ord-4711"},
		{"ce_time", "2026-11-30T09:10:11.123456Z"},
		{"ce_partitionkey", "c-99812"},
		{"traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
	} {
		r.Headers = append(r.Headers, event.Header{Key: h[0], Value: []byte(h[1])})
	}
	return r
}

func benchmarkDecode(b *testing.B, r event.Record) {
	b.Helper()
	b.SetBytes(int64(len(r.Value)))
	b.ReportAllocs()
	for b.Loop() {
		if _, f := event.DecodeRecord(&r); f != nil {
			b.Fatal(f)
		}
	}
}

func BenchmarkDecodeStructured(b *testing.B) { benchmarkDecode(b, structured(order)) }
func BenchmarkDecodeBinaryJSON(b *testing.B) {
	benchmarkDecode(b, binaryRecord("application/json", order))
}

func BenchmarkDecodeBinaryText(b *testing.B) { benchmarkDecode(b, binaryRecord("text/plain", order)) }

func BenchmarkDecodeFault(b *testing.B) {
	r := structured(`{"note":"a\u0000b"}`)
	b.ReportAllocs()
	for b.Loop() {
		if e, _ := event.DecodeRecord(&r); e != nil {
			b.Fatal("stored")
		}
	}
}
