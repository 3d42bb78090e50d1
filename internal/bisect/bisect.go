// Package bisect finds which records of a batch a store refuses when the store can only say that it refused a batch.
package bisect

import (
	"errors"
	"fmt"
)

// ErrUnattributable is wrapped by Find where a range is refused, refused again when asked once more, and holds no record
// that is refused alone: the fault is of records together, or not of records at all.
var ErrUnattributable = errors.New("refused together, each accepted alone")

// Find returns the indices of 0 ≤ i < n that refused refuses alone, ascending. It asks for half-open ranges [lo, hi): the
// whole one first, then halves of what was refused. Where the left half of a refused range is accepted, the right half
// must hold the fault and is not asked for as a whole; but no record is called poison by inference: each one returned was
// refused alone.
//
// refused must leave nothing behind, since ranges overlap: a store probes in a transaction that it rolls back. Its error
// ends the search and is returned wrapped.
//
// A refused range in which no poison was found is asked for once more. Accepted then: the refusal had been of the moment,
// and nobody is blamed. Refused again: ErrUnattributable, and never an innocent record. The second question is also the
// bound: k poison records among n cost at most 1 + k·2·⌈log₂ n⌉ questions.
func Find(n int, refused func(lo, hi int) (bool, error)) ([]int, error) {
	if n <= 0 {
		return nil, nil
	}
	s := search{refused: refused}
	yes, err := s.ask(0, n)
	if err != nil || !yes {
		return nil, err
	}
	if err := s.within(0, n, true); err != nil {
		return nil, err
	}
	return s.poison, nil
}

// search is one run of Find.
type search struct {
	refused func(lo, hi int) (bool, error)
	poison  []int
}

func (s *search) ask(lo, hi int) (bool, error) {
	yes, err := s.refused(lo, hi)
	if err != nil {
		return false, fmt.Errorf("probe records %d to %d: %w", lo, hi-1, err)
	}
	return yes, nil
}

// within searches a range that is refused: asked says whether that was an answer or is inferred from its other half.
func (s *search) within(lo, hi int, asked bool) error {
	if hi-lo == 1 {
		return s.single(lo, asked)
	}
	found := len(s.poison)
	if err := s.halves(lo, lo+(hi-lo)/2, hi); err != nil {
		return err
	}
	if len(s.poison) > found || !asked {
		return nil
	}
	yes, err := s.ask(lo, hi)
	if err != nil {
		return err
	}
	if yes {
		return fmt.Errorf("records %d to %d: %w", lo, hi-1, ErrUnattributable)
	}
	return nil
}

func (s *search) halves(lo, mid, hi int) error {
	left, err := s.ask(lo, mid)
	if err != nil {
		return err
	}
	if !left {
		return s.within(mid, hi, false)
	}
	if err := s.within(lo, mid, true); err != nil {
		return err
	}
	right, err := s.ask(mid, hi)
	if err != nil || !right {
		return err
	}
	return s.within(mid, hi, true)
}

// single confirms an inferred record by asking for it alone.
func (s *search) single(i int, asked bool) error {
	if !asked {
		yes, err := s.ask(i, i+1)
		if err != nil || !yes {
			return err
		}
	}
	s.poison = append(s.poison, i)
	return nil
}
