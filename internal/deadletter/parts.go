package deadletter

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Part is one piece of a letter that was too large for one message.
type Part struct {
	Ref      string // origin of the letter's record
	Pipeline string
	Reason   string
	Detail   string
	At       time.Time
	Event    *Identity // as the letter's, but for members beyond 1,024 bytes
	Attempt  int
	ReplayOf string
	Part     int      // 1 to Parts
	Parts    int      // how many make the envelope
	SHA256   [32]byte // of the whole envelope: tells two letters about one ref apart
	Length   int      // of the whole envelope, bytes
	Fragment []byte
}

// ErrMixed is wrapped by Join where parts belong to different envelopes, ErrDamaged where all are there and do not make
// the envelope they state.
var (
	ErrMixed   = errors.New("parts of different dead letters")
	ErrDamaged = errors.New("damaged dead letter")
)

// MissingError says which parts Join has not seen.
type MissingError struct {
	Ref     string
	Parts   int   // how many there are
	Missing []int // their numbers, ascending
}

// Error names the parts.
func (e *MissingError) Error() string {
	return fmt.Sprintf("dead letter %s: of %d parts missing %v", e.Ref, e.Parts, e.Missing)
}

// Join restores the envelope that parts were cut from; Read reads it. Order and repeats do not matter, as a redelivery
// brings them. It errs with *MissingError, or wrapping ErrMixed or ErrDamaged.
func Join(parts []Part) ([]byte, error) {
	if len(parts) == 0 {
		return nil, fmt.Errorf("join dead letter: %w", &MissingError{})
	}
	first := parts[0]
	seen := make(map[int][]byte, len(parts))
	for _, p := range parts {
		if p.Ref != first.Ref || p.SHA256 != first.SHA256 || p.Parts != first.Parts {
			return nil, fmt.Errorf("join dead letter %s: %w: %s", first.Ref, ErrMixed, p.Ref)
		}
		seen[p.Part] = p.Fragment
	}
	missing := &MissingError{Ref: first.Ref, Parts: first.Parts}
	var whole []byte
	for i := 1; i <= first.Parts; i++ {
		fragment, ok := seen[i]
		if !ok {
			missing.Missing = append(missing.Missing, i)
		}
		whole = append(whole, fragment...)
	}
	if missing.Missing != nil {
		return nil, fmt.Errorf("join dead letter: %w", missing)
	}
	if sha256.Sum256(whole) != first.SHA256 {
		return nil, fmt.Errorf("join dead letter %s: %w", first.Ref, ErrDamaged)
	}
	return whole, nil
}

func (e envelope) part() (*Part, error) {
	var d partData
	if err := json.Unmarshal(e.Data, &d); err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	p := &Part{
		Ref: d.Ref, Pipeline: d.Pipeline, Reason: d.Reason, Detail: d.Detail, Event: d.Event, Attempt: d.Attempt,
		ReplayOf: d.ReplayOf, Part: d.Part, Parts: d.Parts, Length: d.Length,
	}
	if _, err := ParseRef(d.Ref); err != nil {
		return nil, err
	}
	if d.Pipeline == "" || d.Reason == "" || d.Attempt < 0 || d.Attempt > Exhausted {
		return nil, fmt.Errorf("pipeline %q, reason %q, attempt %d", d.Pipeline, d.Reason, d.Attempt)
	}
	if d.Part < 1 || d.Part > d.Parts || d.Parts > maxParts {
		return nil, fmt.Errorf("part %d of %d", d.Part, d.Parts)
	}
	if n, err := hex.Decode(p.SHA256[:], []byte(d.SHA256)); len(d.SHA256) != 64 || err != nil || n != len(p.SHA256) {
		return nil, fmt.Errorf("sha256 %q is none", d.SHA256)
	}
	var err error
	if p.At, err = readTime(e.Time); err != nil {
		return nil, err
	}
	if p.Fragment, err = decodeBase64(d.Fragment); err != nil {
		return nil, fmt.Errorf("fragment: %w", err)
	}
	return p, nil
}
