package data

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// split is a parsed split expression: NAME, NAME[from:to], with bounds in rows or percent, as in Hugging Face datasets.
type split struct {
	expr     string
	name     string
	from, to bound
}

// bound is one end of a slice.
type bound struct {
	set     bool
	n       int // negative: from the end
	percent bool
}

var splitForm = regexp.MustCompile(`^([A-Za-z0-9_.-]+)(?:\[(?:(-?\d+)(%)?)?:(?:(-?\d+)(%)?)?\])?$`)

// parseSplit reads a split expression; the empty one is all of "train".
func parseSplit(expr string) (split, error) {
	if strings.TrimSpace(expr) == "" {
		expr = "train"
	}
	m := splitForm.FindStringSubmatch(strings.TrimSpace(expr))
	if m == nil {
		return split{}, fmt.Errorf("split %q: write NAME, NAME[:100], NAME[10:20], NAME[-100:] or NAME[:10%%]", expr)
	}
	s := split{expr: expr, name: m[1]}
	var err error
	if s.from, err = parseBound(m[2], m[3]); err == nil {
		s.to, err = parseBound(m[4], m[5])
	}
	if err != nil {
		return split{}, fmt.Errorf("split %q: %w", expr, err)
	}
	if s.from.set && s.to.set && s.from.percent != s.to.percent {
		return split{}, fmt.Errorf("split %q: give both ends in rows or both in percent", expr)
	}
	return s, nil
}

func parseBound(digits, percent string) (bound, error) {
	if digits == "" {
		return bound{}, nil
	}
	n, err := strconv.Atoi(digits)
	if err != nil {
		return bound{}, fmt.Errorf("%s is no number of rows", digits)
	}
	if percent != "" && (n < -100 || n > 100) {
		return bound{}, fmt.Errorf("%d%% is beyond 100%%", n)
	}
	return bound{set: true, n: n, percent: percent != ""}, nil
}

// whole says whether the split takes every row, so that nobody needs to count them first.
func (s split) whole() bool { return !s.from.set && !s.to.set }

// rows returns the half-open range of rows that the split takes of total.
func (s split) rows(total int) (from, to int, err error) {
	from, to = 0, total
	if s.from.set {
		from = s.from.of(total)
	}
	if s.to.set {
		to = s.to.of(total)
	}
	if from < 0 || to < 0 || from > total || to > total {
		return 0, 0, fmt.Errorf("split %q is out of range: the dataset has %d rows", s.expr, total)
	}
	if from >= to {
		return 0, 0, fmt.Errorf("split %q selects no rows of the dataset's %d", s.expr, total)
	}
	return from, to, nil
}

// of counts a bound in rows. A percentage is rounded to the closest row, halves to even, as datasets does it.
func (b bound) of(total int) int {
	n := b.n
	if b.percent {
		n = int(math.RoundToEven(float64(b.n) * float64(total) / 100))
	}
	if b.n < 0 {
		n += total
	}
	return n
}
