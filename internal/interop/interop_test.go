package interop_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"appliance/internal/event"
	"appliance/internal/pg"
	"appliance/internal/testservices"
)

const patience = 60 * time.Second

// sent is an event as a client is asked to send it: at most one of Data, Text and Base64.
type sent struct {
	API        string            `json:"api"`
	Mode       string            `json:"mode"` // binary or structured
	Attributes map[string]string `json:"attributes"`
	Data       json.RawMessage   `json:"data,omitempty"`
	Text       string            `json:"text,omitempty"`
	Base64     string            `json:"base64,omitempty"`
}

const (
	binary     = "binary"
	structured = "structured"
)

// events are the same for every client, in both modes: a JSON object, a JSON type by suffix, text, bytes, no payload.
func events(api string) []sent {
	base := func(id string, more ...string) map[string]string {
		a := map[string]string{
			"specversion": "1.0", "id": id, "source": "https://example.com/shops/7?a=b#c", "type": "com.example.order.created",
			"time": "2026-11-30T09:10:11.123456Z",
		}
		for i := 0; i < len(more); i += 2 {
			a[more[i]] = more[i+1]
		}
		return a
	}
	var all []sent
	for _, mode := range []string{binary, structured} {
		all = append(all,
			sent{
				API: api, Mode: mode, Data: json.RawMessage(`{"b":"<&>","a":[1,2.5,null,true],"c":"Euro € 😀 \"quoted\\\""}`),
				Attributes: base(mode+"-json", "datacontenttype", "application/json", "subject", "Euro € 😀 100%",
					"dataschema", "https://example.com/schema", "partitionkey", "k-1", "comexampleext", "x \"y\" \\z"),
			},
			sent{
				API: api, Mode: mode, Data: json.RawMessage(`{"suffix":true}`),
				Attributes: base(mode+"-suffix", "datacontenttype", "application/vnd.example+json; charset=utf-8"),
			},
			sent{
				API: api, Mode: mode, Text: "line one\nline \"two\"\t\\ é",
				Attributes: base(mode+"-text", "datacontenttype", "text/plain"),
			},
			sent{
				API: api, Mode: mode, Base64: "AP/+gA==",
				Attributes: base(mode+"-bytes", "datacontenttype", "application/octet-stream"),
			},
			sent{API: api, Mode: mode, Attributes: base(mode + "-nothing")},
			sent{API: api, Mode: mode, Attributes: base(mode+"-nothing-json", "datacontenttype", "application/json")},
		)
	}
	return all
}

// payload is the event's payload as bytes: compact JSON where it is JSON.
func (s sent) payload() string {
	switch {
	case s.Base64 != "":
		b, err := base64.StdEncoding.DecodeString(s.Base64)
		if err != nil {
			return err.Error()
		}
		return string(b)
	case s.Data != nil:
		return normal(s.Data)
	}
	return s.Text
}

// received is what a row's raw column says: the attributes, and the payload as bytes.
func received(t *testing.T, raw []byte) (map[string]string, string) {
	t.Helper()
	var members map[string]any
	if err := json.Unmarshal(raw, &members); err != nil {
		t.Fatalf("raw is no JSON: %v: %s", err, raw)
	}
	attributes, payload := map[string]string{}, ""
	for name, v := range members {
		switch name {
		case "data":
			text, isText := v.(string)
			if payload = text; !isText {
				b, err := json.Marshal(v)
				if err != nil {
					t.Fatal(err)
				}
				payload = normal(b)
			}
		case "data_base64":
			b, err := base64.StdEncoding.DecodeString(fmt.Sprint(v))
			if err != nil {
				t.Fatal(err)
			}
			payload = string(b)
		default:
			attributes[name] = fmt.Sprint(v)
		}
	}
	return attributes, payload
}

// normal is JSON with sorted names and without spaces.
func normal(text []byte) string {
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		return string(text)
	}
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func compare(t *testing.T, want sent, r *event.Record, table map[string]stored) {
	t.Helper()
	e, f := event.DecodeRecord(r)
	if f != nil {
		t.Errorf("%s: %v\nheaders %s\nvalue %q", want.Attributes["id"], f, r.Headers, r.Value)
		return
	}
	row := table[e.ID]
	attributes, payload := received(t, row.raw)
	expected := maps.Clone(want.Attributes)
	for _, a := range []map[string]string{attributes, expected} {
		at, err := time.Parse(time.RFC3339Nano, a["time"])
		if err != nil {
			t.Fatal(err)
		}
		a["time"] = at.UTC().Format(time.RFC3339Nano)
	}
	if got, want := fmt.Sprint(attributes), fmt.Sprint(expected); got != want {
		t.Errorf("attributes\n got %s\nwant %s", got, want)
	}
	if payload != want.payload() {
		t.Errorf("%s: payload %q, want %q", want.Attributes["id"], payload, want.payload())
	}
	own := []string{row.id, row.source, row.eventType, row.subject, row.contentType, row.occurredAt.UTC().Format(time.RFC3339Nano)}
	if sum := sha256.Sum256(r.Value); !bytes.Equal(row.sha256, sum[:]) {
		t.Errorf("%s: the row's hash is not that of the bytes received", want.Attributes["id"])
	}
	for i, name := range []string{"id", "source", "type", "subject", "datacontenttype", "time"} {
		if own[i] != expected[name] {
			t.Errorf("%s is %q, want %q", name, own[i], expected[name])
		}
	}
	if got := want.Mode == structured; got != bytes.Equal(e.Raw, r.Value) {
		t.Errorf("%s: a structured event's raw is its value, a binary one's isn't: %q", want.Attributes["id"], r.Value)
	}
}

// stored is a row as the database gives it back.
type stored struct {
	raw, sha256                                 []byte
	id, source, eventType, subject, contentType string
	occurredAt                                  time.Time
}

// rows stores the records as the ledger does and reads the table, by id. A record that is no event is left out.
func rows(t *testing.T, records []event.Record) map[string]stored {
	t.Helper()
	conf := pg.Config{URL: testservices.Postgres(t)}
	if _, err := pg.Migrate(t.Context(), conf); err != nil {
		t.Fatal(err)
	}
	db, err := pg.Open(t.Context(), conf)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.EnsureMonths(t.Context(), time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC), 1, 1); err != nil {
		t.Fatal(err)
	}
	var events []pg.Row
	for i := range records {
		if e, _ := event.DecodeRecord(&records[i]); e != nil {
			events = append(events, pg.Row{
				OccurredAt: e.OccurredAt, Source: e.Source, ID: e.ID, Type: e.Type, Raw: e.Raw, SHA256: e.SHA256, Offset: records[i].Offset,
			})
		}
	}
	if written, err := db.Write(t.Context(), "interop", events, nil); err != nil || written != len(events) {
		t.Fatalf("%d of %d rows written: %v", written, len(events), err)
	}
	return table(t, conf.URL)
}

func table(t *testing.T, url string) map[string]stored {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	found, err := conn.Query(t.Context(), `SELECT raw::text, payload_sha256, ce_id, ce_source, ce_type, coalesce(ce_subject, ''),
 coalesce(ce_datacontenttype, ''), occurred_at FROM events.cloud_event`)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]stored{}
	var s stored
	var raw string
	_, err = pgx.ForEachRow(found, []any{&raw, &s.sha256, &s.id, &s.source, &s.eventType, &s.subject, &s.contentType, &s.occurredAt}, func() error {
		s.raw = []byte(raw)
		all[s.id] = s
		s.sha256 = nil
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// topic makes a topic of one partition for this test.
func topic(t *testing.T, bootstrap string) string {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(bootstrap, ",")...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	admin, name := kadm.NewClient(client), fmt.Sprintf("interop-%d", time.Now().UnixNano())
	if answer, err := admin.CreateTopic(context.Background(), 1, 1, nil, name); err != nil || answer.Err != nil {
		t.Fatalf("create topic: %v, %v", err, answer.Err)
	}
	t.Cleanup(func() {
		if _, err := admin.DeleteTopics(context.Background(), name); err != nil {
			t.Errorf("delete topic: %v", err)
		}
	})
	return name
}

// read returns the first n records of the topic.
func read(t *testing.T, bootstrap, topic string, n int) []event.Record {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(bootstrap, ",")...), kgo.ConsumeTopics(topic))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var records []event.Record
	for len(records) < n {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("read %d of %d records: %v", len(records), n, err)
		}
		fetches.EachRecord(func(k *kgo.Record) {
			r := event.Record{Topic: k.Topic, Partition: k.Partition, Offset: k.Offset, Key: k.Key, Value: k.Value}
			for _, h := range k.Headers {
				r.Headers = append(r.Headers, event.Header{Key: h.Key, Value: h.Value})
			}
			records = append(records, r)
		})
	}
	return records
}

// exchange lets a client send all events and compares what arrives; it returns the records for further checks.
func exchange(t *testing.T, all []sent, send func(bootstrap, topic string)) []event.Record {
	t.Helper()
	bootstrap := testservices.Kafka(t)
	name := topic(t, bootstrap)
	send(bootstrap, name)
	records := read(t, bootstrap, name, len(all))
	if len(records) != len(all) {
		t.Fatalf("%d records arrived of %d", len(records), len(all))
	}
	table := rows(t, records)
	for i := range all {
		compare(t, all[i], &records[i], table)
	}
	return records
}

// keyed checks CEK-11: the key is the partition key, and an event without one has no key.
func keyed(t *testing.T, all []sent, records []event.Record) {
	t.Helper()
	for i, s := range all {
		if key := s.Attributes["partitionkey"]; string(records[i].Key) != key {
			t.Errorf("%s: key %q, want %q", s.Attributes["id"], records[i].Key, key)
		}
	}
}
