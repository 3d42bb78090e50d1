package audit

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"slices"

	"appliance/internal/event"
	"appliance/internal/offset"
)

// Sum is a hash of all that a dead letter has to keep of a record: key, value and headers, in their order, with what is
// absent told apart from what is empty. The timestamp is left out: a letter keeps its milliseconds, a broker may set it.
type Sum [sha256.Size]byte

// SumOf hashes a record.
func SumOf(r *event.Record) Sum {
	h := sha256.New()
	add(h, r.Key)
	add(h, r.Value)
	for _, header := range r.Headers {
		add(h, []byte(header.Key))
		add(h, header.Value)
	}
	return Sum(h.Sum(nil))
}

// add writes a length before the bytes, so that no two records run together; nil has a length that nothing has.
func add(h hash.Hash, b []byte) {
	var length [8]byte
	n := uint64(len(b))
	if b == nil {
		n = 1 << 63
	}
	binary.BigEndian.PutUint64(length[:], n)
	h.Write(length[:])
	h.Write(b)
}

// bitmap has a bit for each offset of a range.
type bitmap []uint64

func newBitmap(n int64) bitmap { return make(bitmap, (n+63)/64) }

func (b bitmap) set(i int64)      { b[i/64] |= 1 << (i % 64) }
func (b bitmap) has(i int64) bool { return b[i/64]>>(i%64)&1 == 1 }

// book keeps what is known of the offsets [from, until) of one partition: seven bits each, and a hash for each dead letter.
type book struct {
	from, until int64
	kept        int64 // first offset that retention left
	frontier    int64 // first offset that need not be processed yet

	rows, letters, equal, seen, duplicates bitmap // seen: the record was read
	altered, others                        bitmap // rows, and rows of duplicates, of other bytes than the record
	deep                                   bool   // rows are compared too

	sums     map[int64][]Sum  // of the letters of an offset, each once
	hints    map[int64]string // what may explain an offset that nothing accounts for, at most maxHints
	copies   int64            // letters that were read, repeated ones too
	repeated int64            // rows beyond the first of an offset
}

// inform is hint for what is no failure, which leaves half of the room to failures.
func (b *book) inform(offset int64, text string) {
	if len(b.hints) < maxHints/2 {
		b.hint(offset, text)
	}
}

// maxHints bounds the explanations that are kept: beyond it nobody reads them one by one.
const maxHints = 1000

func newBook(from, until, kept, frontier int64) *book {
	n := max(0, until-from)
	return &book{
		from: from, until: max(from, until), kept: kept, frontier: frontier,
		rows: newBitmap(n), letters: newBitmap(n), equal: newBitmap(n), seen: newBitmap(n), duplicates: newBitmap(n),
		altered: newBitmap(n), others: newBitmap(n),
		sums: map[int64][]Sum{}, hints: map[int64]string{},
	}
}

func (b *book) within(offset int64) bool { return offset >= b.from && offset < b.until }

// row notes that a row names the offset as its origin.
func (b *book) row(offset int64) {
	if !b.within(offset) {
		return
	}
	if b.rows.has(offset - b.from) {
		b.repeated++
	}
	b.rows.set(offset - b.from)
}

// letter notes a complete dead letter of the offset.
func (b *book) letter(offset int64, sum Sum) {
	if !b.within(offset) {
		return
	}
	b.copies++
	b.letters.set(offset - b.from)
	if !slices.Contains(b.sums[offset], sum) {
		b.sums[offset] = append(b.sums[offset], sum)
	}
}

// hint notes what may explain the offset, should nothing account for it. The first one stands.
func (b *book) hint(offset int64, text string) {
	if !b.within(offset) || len(b.hints) >= maxHints || b.hints[offset] != "" {
		return
	}
	b.hints[offset] = text
}

// merge is the most offsets that need no reading and are read nevertheless, because beginning anew behind them costs more.
const merge = 20_000

// unproven returns the ranges that have to be read, in order: every kept offset that is no row, and every letter, whose
// bytes have to be compared; all of them where rows are compared too. Ranges less than merge apart are one.
func (b *book) unproven() []offset.Log {
	var ranges []offset.Log
	if start := max(b.from, b.kept); b.deep && start < b.until {
		return append(ranges, offset.Log{Start: start, End: b.until})
	}
	for o := max(b.from, b.kept); o < b.until; o++ {
		i := o - b.from
		if i%64 == 0 && b.rows[i/64] == ^uint64(0) && b.letters[i/64] == 0 {
			o += 63
			continue
		}
		if b.rows.has(i) && !b.letters.has(i) {
			continue
		}
		if last := len(ranges) - 1; last >= 0 && o-ranges[last].End < merge {
			ranges[last].End = o + 1
			continue
		}
		ranges = append(ranges, offset.Log{Start: o, End: o + 1})
	}
	return ranges
}

// read compares a record with the letters of its offset, and reports whether its event has to be looked for: it was
// processed and is neither a row nor a letter, or it is a row that has to be compared.
func (b *book) read(r *event.Record) (asked bool) {
	if !b.within(r.Offset) {
		return false
	}
	i := r.Offset - b.from
	b.seen.set(i)
	if b.letters.has(i) && slices.Contains(b.sums[r.Offset], SumOf(r)) {
		b.equal.set(i)
	}
	if b.rows.has(i) {
		return b.deep
	}
	return !b.letters.has(i) && r.Offset < b.frontier
}

// duplicate notes that the event of the offset is in a row of another origin, which holds its bytes or others.
func (b *book) duplicate(offset int64, equal bool) {
	b.duplicates.set(offset - b.from)
	if !equal {
		b.others.set(offset - b.from)
	}
}

// differs notes that the row of the offset does not hold what its record does.
func (b *book) differs(offset int64, how string) {
	b.altered.set(offset - b.from)
	b.hint(offset, how)
}

// isRow reports whether a row names the offset as its origin.
func (b *book) isRow(offset int64) bool { return b.within(offset) && b.rows.has(offset-b.from) }

func (b *book) facts(offset int64) facts {
	i := offset - b.from
	return facts{
		row: b.rows.has(i), altered: b.altered.has(i), duplicate: b.duplicates.has(i), other: b.others.has(i),
		letter: b.letters.has(i), equal: b.equal.has(i),
		read: b.seen.has(i), kept: offset >= b.kept, processed: offset < b.frontier,
	}
}

// Counts are offsets by verdict, and what is worth a warning among them.
type Counts struct {
	Offsets     int64 `json:"offsets"` // of the range
	Rows        int64 `json:"rows"`
	Duplicates  int64 `json:"duplicates"`             // of the same bytes as the row
	OtherBytes  int64 `json:"duplicates_other_bytes"` // of other ones: perhaps another event under the same identity
	DeadLetters int64 `json:"dead_letters"`
	Gaps        int64 `json:"gaps"`
	Pruned      int64 `json:"pruned"`
	Pending     int64 `json:"pending"`
	Missing     int64 `json:"missing"`
	Unequal     int64 `json:"unequal"`

	LetterCopies int64 `json:"dead_letter_copies"` // messages on the topic for those dead letters, the first ones too
	Unverified   int64 `json:"unverified"`         // dead letters whose record is gone, so that nothing could be compared
	Both         int64 `json:"both"`               // offsets that are a row and have a dead letter
	RepeatedRows int64 `json:"repeated_rows"`      // rows beyond the first of one origin
}

func (c *Counts) add(o Counts) {
	c.Offsets += o.Offsets
	c.Rows += o.Rows
	c.Duplicates += o.Duplicates
	c.OtherBytes += o.OtherBytes
	c.DeadLetters += o.DeadLetters
	c.Gaps += o.Gaps
	c.Pruned += o.Pruned
	c.Pending += o.Pending
	c.Missing += o.Missing
	c.Unequal += o.Unequal
	c.LetterCopies += o.LetterCopies
	c.Unverified += o.Unverified
	c.Both += o.Both
	c.RepeatedRows += o.RepeatedRows
}

// tally counts, and calls found for each offset that breaks the promise, or is in two places, or is a duplicate of other
// bytes.
func (b *book) tally(found func(offset int64, v Verdict, both bool)) Counts {
	c := Counts{Offsets: b.until - b.from, LetterCopies: b.copies, RepeatedRows: b.repeated}
	by := map[Verdict]*int64{
		Row: &c.Rows, Duplicate: &c.Duplicates, OtherBytes: &c.OtherBytes, DeadLetter: &c.DeadLetters, Gap: &c.Gaps, Pruned: &c.Pruned,
		Pending: &c.Pending, Missing: &c.Missing, Unequal: &c.Unequal,
	}
	for o := b.from; o < b.until; o++ {
		f := b.facts(o)
		v := classify(f)
		*by[v]++
		if v == DeadLetter && !f.read {
			c.Unverified++
		}
		both := f.row && f.letter
		if both {
			c.Both++
		}
		if both || v == Missing || v == Unequal || v == OtherBytes {
			found(o, v, both)
		}
	}
	return c
}
