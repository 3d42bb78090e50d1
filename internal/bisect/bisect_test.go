package bisect_test

import (
	"errors"
	"math/bits"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"appliance/internal/bisect"
)

// store refuses ranges that hold one of its poison records, or all records of one of its conflicts.
type store struct {
	poison    []int
	conflicts [][]int
	asked     [][2]int
}

func (s *store) refused(lo, hi int) (bool, error) {
	s.asked = append(s.asked, [2]int{lo, hi})
	inside := func(i int) bool { return lo <= i && i < hi }
	if slices.ContainsFunc(s.poison, inside) {
		return true, nil
	}
	return slices.ContainsFunc(s.conflicts, func(together []int) bool {
		return !slices.ContainsFunc(together, func(i int) bool { return !inside(i) })
	}), nil
}

func TestFind(t *testing.T) {
	for name, tc := range map[string]struct {
		n       int
		poison  []int
		atMost  int
		exactly bool
	}{
		"an empty batch is not asked for":                   {0, nil, 0, true},
		"a clean batch costs one question":                  {500, nil, 1, true},
		"a batch of one is asked for once":                  {1, []int{0}, 1, true},
		"a pair with a poison left asks all":                {2, []int{0}, 3, true},
		"a pair with a poison right asks all":               {2, []int{1}, 3, true},
		"PG-32: four poison records among 500":              {500, []int{0, 250, 251, 499}, 47, false},
		"one poison record of 500 costs one path":           {500, []int{250}, 19, false},
		"the last of 500 costs no question of right halves": {500, []int{499}, 11, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &store{poison: tc.poison}
			got, err := bisect.Find(tc.n, s.refused)
			if err != nil || !slices.Equal(got, tc.poison) {
				t.Fatalf("Find(%d) = %v, %v; want %v", tc.n, got, err, tc.poison)
			}
			if len(s.asked) > tc.atMost || tc.exactly && len(s.asked) != tc.atMost {
				t.Errorf("asked %d times, want %d: %v", len(s.asked), tc.atMost, s.asked)
			}
		})
	}
}

func TestFindAgainstTheOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 700).Draw(t, "n")
		poison := rapid.SliceOfNDistinct(rapid.IntRange(0, n-1), 0, min(n, 20), rapid.ID[int]).Draw(t, "poison")
		slices.Sort(poison)
		s := &store{poison: poison}
		got, err := bisect.Find(n, s.refused)
		if err != nil || !slices.Equal(got, poison) {
			t.Fatalf("Find(%d) = %v, %v; want %v", n, got, err, poison)
		}
		if bound := 1 + len(poison)*2*bits.Len(uint(n-1)); len(s.asked) > bound {
			t.Fatalf("asked %d times for %d poison of %d, want at most %d", len(s.asked), len(poison), n, bound)
		}
		for _, i := range got {
			if !slices.Contains(s.asked, [2]int{i, i + 1}) {
				t.Fatalf("record %d was never refused alone", i)
			}
		}
	})
}

func TestFindNeverBlamesARecordThatIsAcceptedAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 200).Draw(t, "n")
		index := rapid.IntRange(0, n-1)
		s := &store{
			poison:    rapid.SliceOfNDistinct(index, 0, 3, rapid.ID[int]).Draw(t, "poison"),
			conflicts: rapid.SliceOfN(rapid.SliceOfNDistinct(index, 2, 3, rapid.ID[int]), 0, 3).Draw(t, "conflicts"),
		}
		got, err := bisect.Find(n, s.refused)
		if err != nil && !errors.Is(err, bisect.ErrUnattributable) {
			t.Fatalf("Find: %v", err)
		}
		for _, i := range got {
			if !slices.Contains(s.poison, i) {
				t.Fatalf("record %d is accepted alone and was blamed", i)
			}
		}
		if len(s.asked) > 4*n {
			t.Fatalf("asked %d times for %d records", len(s.asked), n)
		}
	})
}

func TestFindWhereTheFaultIsOfRecordsTogether(t *testing.T) {
	for name, conflict := range map[string][]int{
		"two neighbours":            {4, 5},
		"two of different halves":   {0, 9},
		"all of them":               {0, 1, 2, 3, 4, 5, 6, 7, 8, 9},
		"two of the right half":     {6, 9},
		"neighbours across a halve": {4, 7},
	} {
		t.Run(name, func(t *testing.T) {
			s := &store{conflicts: [][]int{conflict}}
			got, err := bisect.Find(10, s.refused)
			if !errors.Is(err, bisect.ErrUnattributable) || got != nil {
				t.Fatalf("Find = %v, %v; want ErrUnattributable", got, err)
			}
		})
	}
}

func TestFindWhereTheRefusalWasOfTheMoment(t *testing.T) {
	asked := 0
	got, err := bisect.Find(8, func(int, int) (bool, error) {
		asked++
		return asked == 1, nil
	})
	if err != nil || got != nil {
		t.Fatalf("Find = %v, %v; want nobody blamed", got, err)
	}
}

func TestFindEndsWithTheFirstError(t *testing.T) {
	down := errors.New("connection refused")
	for at := 1; at <= 12; at++ {
		s, asked := &store{poison: []int{0, 3, 7}}, 0
		got, err := bisect.Find(8, func(lo, hi int) (bool, error) {
			if asked++; asked == at {
				return true, down
			}
			return s.refused(lo, hi)
		})
		if !errors.Is(err, down) || got != nil || asked != at {
			t.Errorf("error at question %d: Find = %v, %v after %d", at, got, err, asked)
		}
	}
}
