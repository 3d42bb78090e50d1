package generate

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"
)

// kind is one type of event.
type kind struct {
	name   string
	weight int // how often it occurs among the others
	fill   func(e *draft, n int, r *rand.Rand)
}

// draft is an event before it is written down.
type draft struct {
	id, source, subject string
	time                time.Time
	kind                kind
	data                []byte // JSON
}

// catalogue lists the types. Their lines have about 490 bytes on the average.
func catalogue() []kind {
	return []kind{
		{"com.example.device.reading.v1", 50, reading},
		{"com.example.device.alarm.v1", 5, alarm},
		{"com.example.order.placed.v1", 20, order},
		{"com.example.payment.captured.v1", 10, payment},
		{"com.example.page.viewed.v1", 15, view},
	}
}

// json writes the event as one line.
func (e *draft) json() []byte {
	return e.write(e.time, e.kind.name, e.data)
}

// write writes the event with these values in place of its own; an empty one leaves its member out.
func (e *draft) write(at time.Time, name string, data []byte) []byte {
	out := make([]byte, 0, 640)
	out = fmt.Appendf(out, `{"specversion":"1.0","id":%q,"source":%q`, e.id, e.source)
	if name != "" {
		out = fmt.Appendf(out, `,"type":%q`, name)
	}
	if !at.IsZero() {
		out = append(out, `,"time":"`...)
		out = append(at.AppendFormat(out, time.RFC3339Nano), '"')
	}
	out = fmt.Appendf(out, `,"subject":%q,"datacontenttype":"application/json","data":`, e.subject)
	return append(append(out, data...), '}')
}

func reading(e *draft, n int, r *rand.Rand) {
	device, plant := r.IntN(1000), r.IntN(20)
	e.source = fmt.Sprintf("/plants/%02d/devices/%04d", plant, device)
	e.subject = "sensor/" + strconv.Itoa(device)
	e.data = fmt.Appendf(nil, `{"temperature":%.2f,"humidity":%d,"battery":%.2f,"site":"plant-%02d","sequence":%d,`+
		`"tags":["indoor","calibrated","line-%d"],"firmware":"4.%d.%d","note":%q}`,
		r.NormFloat64()*4+21, 30+r.IntN(60), 0.2+r.Float64()*0.8, plant, n, r.IntN(9), r.IntN(12), r.IntN(30), words(r, 100))
}

func alarm(e *draft, _ int, r *rand.Rand) {
	device, plant := r.IntN(1000), r.IntN(20)
	e.source = fmt.Sprintf("/plants/%02d/devices/%04d", plant, device)
	e.subject = "sensor/" + strconv.Itoa(device)
	e.data = fmt.Appendf(nil, `{"severity":%q,"code":"E-%03d","threshold":%.1f,"measured":%.2f,"acknowledged":%t,"message":%q}`,
		one(r, "warning", "critical", "fatal"), r.IntN(400), 80.0, 80+r.Float64()*20, r.IntN(3) == 0, words(r, 160))
}

func order(e *draft, n int, r *rand.Rand) {
	region := one(r, "eu-west", "eu-north", "us-east", "ap-south")
	e.source = fmt.Sprintf("/shops/%s/stores/%03d", region, r.IntN(400))
	e.subject = fmt.Sprintf("orders/%s-%08d", region, n)
	cents := 250 + r.IntN(40_000)
	e.data = fmt.Appendf(nil, `{"order":"%s-%08d","customer":"c-%06d","currency":%q,"total":%d.%02d,"items":[`+
		`{"sku":"SKU-%05d","quantity":%d,"price":%d.%02d},{"sku":"SKU-%05d","quantity":1,"price":%d.%02d}],"comment":%q}`,
		region, n, r.IntN(900_000), one(r, "EUR", "USD", "GBP", "INR"), cents/100, cents%100,
		r.IntN(99_999), 1+r.IntN(5), cents/200, cents%100, r.IntN(99_999), cents/300, cents%100, words(r, 26))
}

func payment(e *draft, n int, r *rand.Rand) {
	e.source = fmt.Sprintf("/payments/%s/terminals/%03d", one(r, "cards", "transfers", "wallets"), r.IntN(500))
	e.subject = fmt.Sprintf("payments/p-%09d", n)
	cents := 250 + r.IntN(90_000)
	e.data = fmt.Appendf(nil, `{"payment":"p-%09d","amount":%d.%02d,"currency":%q,"method":%q,"risk":%.3f,"country":%q,"reference":%q}`,
		n, cents/100, cents%100, one(r, "EUR", "USD", "GBP"), one(r, "visa", "sepa", "paypal"), r.Float64(),
		one(r, "DE", "FR", "GB", "US", "IN"), words(r, 116))
}

func view(e *draft, _ int, r *rand.Rand) {
	e.source = fmt.Sprintf("/sites/%s/hosts/%02d", one(r, "www", "shop", "docs", "blog"), r.IntN(80))
	e.subject = fmt.Sprintf("sessions/s-%07d", r.IntN(4_000_000))
	e.data = fmt.Appendf(nil, `{"path":"/%s/%d","status":%d,"milliseconds":%d,"bytes":%d,"referrer":%q,"agent":%q,"query":%q}`,
		one(r, "products", "articles", "search", "cart"), r.IntN(90_000), one(r, 200, 200, 200, 304, 404), r.IntN(900), r.IntN(90_000),
		one(r, "direct", "search", "mail"), one(r, "Mozilla/5.0 (X11; Linux x86_64)", "Mozilla/5.0 (iPhone; CPU OS 19_1)"), words(r, 72))
}

func one[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// words returns about so many bytes of words, some with letters beyond ASCII: a payload that compresses like text does.
func words(r *rand.Rand, size int) string {
	out := make([]byte, 0, size+12)
	for len(out) < size {
		if len(out) > 0 {
			out = append(out, ' ')
		}
		out = append(out, one(r, "pump", "valve", "bearing", "within", "limits", "after", "maintenance", "Größe", "température",
			"nominal", "delivered", "checked", "café", "north", "gate", "replaced", "by", "operator", "shift", "nightly", "测量", "report")...)
	}
	return string(out)
}
