package deadletter_test

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"appliance/internal/deadletter"
)

func TestParseRefReadsWhatRefWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := deadletter.Origin{
			Topic:     rapid.StringMatching(`[a-zA-Z0-9_-][a-zA-Z0-9._-]{0,248}`).Draw(t, "topic"),
			Partition: rapid.Int32Min(0).Draw(t, "partition"),
			Offset:    rapid.Int64Min(0).Draw(t, "offset"),
		}
		got, err := deadletter.ParseRef(deadletter.Ref(want.Topic, want.Partition, want.Offset))
		if err != nil || got != want {
			t.Fatalf("ParseRef = %+v, %v; want %+v", got, err, want)
		}
	})
}

func TestParseRefReadsNothingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-z./]{1,4}/[+ 0-9-]{1,3}/[+ 0-9x]{1,3}`)).Draw(t, "ref")
		if o, err := deadletter.ParseRef(s); err == nil && deadletter.Ref(o.Topic, o.Partition, o.Offset) != s {
			t.Fatalf("ParseRef(%q) = %+v", s, o)
		}
	})
}

func TestParseRef(t *testing.T) {
	if o, err := deadletter.ParseRef("t/2147483647/9223372036854775807"); err != nil || o.Offset != math.MaxInt64 {
		t.Errorf("the last coordinates: %+v, %v", o, err)
	}
	for name, ref := range map[string]string{
		"nothing": "", "a topic alone": "t", "two parts": "t/1", "four parts": "t/1/2/3", "no topic": "/1/2",
		"no partition": "t//2", "no offset": "t/1/", "a negative partition": "t/-1/2", "a negative offset": "t/1/-2",
		"a sign": "t/+1/2", "a space": "t/1/ 2", "a leading zero": "t/01/2", "an exponent": "t/1/1e2", "hexadecimal": "t/0x1/2",
		"digits of another script": "t/1/٣", "a partition of 32 bits": "t/2147483648/0", "an offset of 64 bits": "t/0/9223372036854775808",
		"the topic .": "./1/2", "the topic ..": "../1/2", "a character Kafka refuses": "t t/1/2", "a topic of 250": strings.Repeat("t", 250) + "/1/2",
	} {
		if o, err := deadletter.ParseRef(ref); err == nil {
			t.Errorf("%s: ParseRef(%q) = %+v", name, ref, o)
		}
	}
}
