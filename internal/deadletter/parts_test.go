package deadletter_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"appliance/internal/deadletter"
	"appliance/internal/event"
)

// tester is what *testing.T and *rapid.T have in common.
type tester interface {
	Helper()
	Fatalf(format string, args ...any)
}

// partsOf reads messages that are parts.
func partsOf(t tester, messages []deadletter.Message) []deadletter.Part {
	t.Helper()
	parts := make([]deadletter.Part, len(messages))
	for i, m := range messages {
		r := deadletter.Read(m.Value, m.Headers)
		if r.Part == nil {
			t.Fatalf("message %d is no part: %+v", i, r)
		}
		parts[i] = *r.Part
	}
	return parts
}

func TestPartsRestoreTheEnvelopeBitByBit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := anyLetter().Draw(t, "letter")
		whole, err := l.Encode(16 << 20)
		if err != nil {
			t.Fatal(err)
		}
		limit := rapid.IntRange(700, max(700, whole[0].Size()+1)).Draw(t, "limit")
		messages, err := l.Encode(limit)
		if errors.Is(err, deadletter.ErrNoRoom) {
			return // the attributes of this letter alone are larger
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range messages {
			if m.Size() > limit || string(m.Key) != l.Ref() {
				t.Fatalf("message of %d bytes and key %s, limit %d", m.Size(), m.Key, limit)
			}
		}
		if len(messages) == 1 {
			return
		}
		parts := partsOf(t, messages)
		parts = append(parts, parts[rapid.IntRange(0, len(parts)-1).Draw(t, "repeated")])
		parts = rapid.Permutation(parts).Draw(t, "order")
		got, err := deadletter.Join(parts)
		if err != nil || !bytes.Equal(got, whole[0].Value) {
			t.Fatalf("Join = %d bytes, %v; want %d", len(got), err, len(whole[0].Value))
		}
	})
}

// large is a letter in five parts of 10,000 bytes.
func large(t *testing.T) []deadletter.Part {
	t.Helper()
	l := poison()
	l.Record.Value = bytes.Repeat([]byte{0xFF, 'a'}, 12_000)
	messages, err := l.Encode(10_000)
	if err != nil || len(messages) != 5 {
		t.Fatalf("Encode = %d messages, %v", len(messages), err)
	}
	return partsOf(t, messages)
}

func TestAValueOfTheBrokersLimitLosesNothing(t *testing.T) { // DL-01
	l := poison()
	l.Record.Value = bytes.Repeat([]byte{0xFF}, 900<<10)
	messages, err := l.Encode(mebibyte)
	if err != nil || len(messages) != 2 {
		t.Fatalf("Encode = %d messages, %v", len(messages), err)
	}
	whole, err := deadletter.Join(partsOf(t, messages))
	if err != nil {
		t.Fatal(err)
	}
	r := deadletter.Read(whole, nil)
	if r.Letter == nil || difference(l, *r.Letter) != "" {
		t.Errorf("the letter came back otherwise: %s", r.Problem)
	}
}

func TestEachPartNamesItsLetterAndHasAnIdOfItsOwn(t *testing.T) {
	l := poison()
	l.Record.Value = bytes.Repeat([]byte("a"), 20_000)
	messages, err := l.Encode(10_000)
	if err != nil {
		t.Fatal(err)
	}
	ids := map[any]bool{}
	for i, m := range messages {
		ids[member(t, m.Value, "id")] = true
		if member(t, m.Value, "type") != "appliance.deadletter.part.v1" || member(t, m.Value, "data", "part") != float64(i+1) ||
			member(t, m.Value, "data", "reason") != "bad-attribute" || member(t, m.Value, "data", "event", "id") != "a" || member(t, m.Value, "data", "ref") != l.Ref() {
			t.Errorf("part %d: %.300s", i, m.Value)
		}
	}
	if len(ids) != len(messages) {
		t.Errorf("%d parts have %d ids", len(messages), len(ids))
	}
}

func TestAPartSaysWhatTheLetterSays(t *testing.T) {
	l := poison()
	l.Record.Value = bytes.Repeat([]byte("a"), 20_000)
	l.Event = &deadletter.Identity{ID: string(bytes.Repeat([]byte("i"), 1025)), Type: "t", Source: "\xff"}
	l.Record.Headers = []event.Header{
		{Key: deadletter.HeaderAttempt, Value: []byte("2")}, {Key: deadletter.HeaderReplayOf, Value: []byte("t/0/7")},
	}
	messages, err := l.Encode(10_000)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range partsOf(t, messages) {
		if p.Ref != l.Ref() || p.Pipeline != l.Pipeline || p.Reason != l.Reason || p.Detail != l.Detail || !p.At.Equal(l.At) ||
			*p.Event != (deadletter.Identity{Type: "t"}) || p.Attempt != 2 || p.ReplayOf != "t/0/7" {
			t.Errorf("part %+v", p)
		}
	}
}

func TestJoinSaysWhichPartsAreMissing(t *testing.T) {
	parts := large(t)
	_, err := deadletter.Join([]deadletter.Part{parts[3], parts[0], parts[3]})
	var missing *deadletter.MissingError
	if !errors.As(err, &missing) || !slices.Equal(missing.Missing, []int{2, 3, 5}) || missing.Parts != 5 {
		t.Errorf("Join: %v", err)
	}
	if _, err := deadletter.Join(nil); !errors.As(err, &missing) {
		t.Errorf("Join of nothing: %v", err)
	}
}

func TestJoinRefusesWhatIsNotOneEnvelope(t *testing.T) {
	parts := large(t)
	for name, spoil := range map[string]func(*deadletter.Part){
		"another ref":      func(p *deadletter.Part) { p.Ref = "t/0/1" },
		"another envelope": func(p *deadletter.Part) { p.SHA256 = sha256.Sum256(nil) },
		"another cut":      func(p *deadletter.Part) { p.Parts++ },
	} {
		mixed := slices.Clone(parts)
		spoil(&mixed[2])
		if _, err := deadletter.Join(mixed); !errors.Is(err, deadletter.ErrMixed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	damaged := slices.Clone(parts)
	damaged[1].Fragment = append([]byte{damaged[1].Fragment[0] ^ 1}, damaged[1].Fragment[1:]...)
	if _, err := deadletter.Join(damaged); !errors.Is(err, deadletter.ErrDamaged) {
		t.Errorf("a flipped bit: %v", err)
	}
}

func TestEncodeIntoNoRoomErrs(t *testing.T) {
	for _, limit := range []int{-1, 0, 1, 500} {
		if _, err := poison().Encode(limit); !errors.Is(err, deadletter.ErrNoRoom) {
			t.Errorf("limit %d: %v", limit, err)
		}
	}
}
