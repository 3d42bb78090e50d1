package pg

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// Row is one event as it is written. What is generated from Raw is not written: Source, ID and Type only put rows into
// the order in which every writer takes them.
type Row struct {
	OccurredAt       time.Time // UTC, whole microseconds
	Source, ID, Type string
	Raw              []byte // the event as one JSON object
	SHA256           [32]byte
	TopicID          [16]byte // zero where the broker gave none
	Partition        int32
	Offset           int64
	Traceparent      string // "" where there is none
}

// Identity is the key that an event is stored once under.
type Identity struct {
	OccurredAt time.Time
	Source, ID string
}

// Identity returns the row's key.
func (r *Row) Identity() Identity {
	return Identity{OccurredAt: r.OccurredAt, Source: r.Source, ID: r.ID}
}

func compareIdentity(a, b *Row) int {
	return cmp.Or(a.OccurredAt.Compare(b.OccurredAt), cmp.Compare(a.Source, b.Source), cmp.Compare(a.ID, b.ID))
}

// inOrder returns the rows sorted by identity. Two writers that insert the same events in opposite order wait for one
// another for ever (40P01), also where conflicts do nothing.
func inOrder(rows []Row) []*Row {
	sorted := make([]*Row, len(rows))
	for i := range rows {
		sorted[i] = &rows[i]
	}
	slices.SortStableFunc(sorted, compareIdentity)
	return sorted
}

// maxStatementBytes bounds the raw bytes of one statement. One array value may not exceed 1 GiB on the server, and a few
// copies of it are made there; more rows are more statements of the same transaction.
const maxStatementBytes = 16 << 20

// chunk returns how many of the rows one statement takes: at least one.
func chunk(rows []*Row) int {
	size := 0
	for i, r := range rows {
		if size += len(r.Raw); size > maxStatementBytes && i > 0 {
			return i
		}
	}
	return len(rows)
}

// columns are the rows as one array a written column.
type columns struct {
	occurredAt  pgtype.FlatArray[time.Time]
	raw         pgtype.FlatArray[[]byte]
	sha256      pgtype.FlatArray[[]byte]
	topicID     pgtype.FlatArray[pgtype.UUID]
	partition   pgtype.FlatArray[int32]
	offset      pgtype.FlatArray[int64]
	traceparent pgtype.FlatArray[pgtype.Text]
}

func columnsOf(rows []*Row) columns {
	n := len(rows)
	c := columns{
		occurredAt: make([]time.Time, n), raw: make([][]byte, n), sha256: make([][]byte, n), topicID: make([]pgtype.UUID, n),
		partition: make([]int32, n), offset: make([]int64, n), traceparent: make([]pgtype.Text, n),
	}
	for i, r := range rows {
		c.occurredAt[i], c.raw[i], c.sha256[i] = r.OccurredAt, r.Raw, r.SHA256[:]
		c.topicID[i] = pgtype.UUID{Bytes: r.TopicID, Valid: r.TopicID != [16]byte{}}
		c.partition[i], c.offset[i] = r.Partition, r.Offset
		c.traceparent[i] = pgtype.Text{String: r.Traceparent, Valid: r.Traceparent != ""}
	}
	return c
}

func (c columns) params(m *pgtype.Map) (*params, error) {
	size := 0
	for i := range c.raw {
		size += len(c.raw[i]) + 4
	}
	p := newParams(m, 7)
	p.add(pgtype.TimestamptzArrayOID, c.occurredAt, 12*len(c.raw))
	p.add(pgtype.TextArrayOID, c.raw, size)
	p.add(pgtype.ByteaArrayOID, c.sha256, 36*len(c.raw))
	p.add(pgtype.UUIDArrayOID, c.topicID, 20*len(c.raw))
	p.add(pgtype.Int4ArrayOID, c.partition, 8*len(c.raw))
	p.add(pgtype.Int8ArrayOID, c.offset, 12*len(c.raw))
	p.add(pgtype.TextArrayOID, c.traceparent, 60*len(c.raw))
	return p, p.err
}

// params are the parameters of one statement in PostgreSQL's binary format, with their types stated: the server is not
// asked for them first, which saves a round trip.
type params struct {
	types   *pgtype.Map
	values  [][]byte
	oids    []uint32
	formats []int16
	err     error
}

func newParams(types *pgtype.Map, n int) *params {
	return &params{
		types: types, values: make([][]byte, 0, n), oids: make([]uint32, 0, n), formats: make([]int16, 0, n),
	}
}

// add appends one parameter; size is about what it takes.
func (p *params) add(oid uint32, value any, size int) {
	const arrayHeader = 32
	encoded, err := p.types.Encode(oid, pgtype.BinaryFormatCode, value, make([]byte, 0, size+arrayHeader))
	if err != nil && p.err == nil {
		p.err = fmt.Errorf("encode parameter %d: %w", len(p.values)+1, err)
	}
	p.values, p.oids = append(p.values, encoded), append(p.oids, oid)
	p.formats = append(p.formats, pgtype.BinaryFormatCode)
}
