package collectives

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"weft/engine"
)

// vectorLength is the number of elements that each rank adds to the sum, as in the guide.
const vectorLength = 4

// tolerance is that of torch.testing.assert_close: |got − want| ≤ Abs + Rel·|want|.
type tolerance struct{ Rel, Abs float64 }

// tolerances are the guide's for products at a device's default precision, and a closer one for float32 arithmetic, which
// is off by some 1e-6.
var tolerances = map[Precision]tolerance{Default: {1e-3, 1e-2}, Highest: {1e-4, 1e-4}}

// RankResult is what one device of this process computed.
type RankResult struct {
	Rank
	// AllReduceSum is the sum over all ranks of rank + 1, four times.
	AllReduceSum []float32 `json:"all_reduce_sum"`
	// MaxAbsDiff is how far the feed-forward block is from the host's at most, at the device's default precision;
	// MaxAbsDiffFloat32 in float32 arithmetic.
	MaxAbsDiff        float64 `json:"max_abs_diff"`
	MaxAbsDiffFloat32 float64 `json:"max_abs_diff_float32"`
	// Faults say what is wrong: what, expected and got, a sentence each.
	Faults []string `json:"faults,omitempty"`
}

// Result is the outcome of a check, as this process sees it.
type Result struct {
	// Devices is the number of ranks of all processes, ExpectedSum what the sum over them must be.
	Devices     int     `json:"devices"`
	ExpectedSum float64 `json:"expected_sum"`
	// Ranks are those of this process, in order.
	Ranks []RankResult `json:"ranks"`
	// Confirmed is the number of ranks, over all processes, that found nothing wrong; Devices if all is well.
	Confirmed int `json:"confirmed_ranks"`
}

// checker checks; its fields are changed by tests that want it to find something.
type checker struct {
	rt        *engine.Runtime
	block     *Block
	ranks     []Rank
	want      func() []float64 // the block's output
	value     func(Rank) float32
	operation string
}

// Check runs the guide's check on all devices of the runtime's mesh. Every process of the slice must call it, with the same
// block. A wrong result is not an error: see Result.Err.
func Check(rt *engine.Runtime, block *Block) (*Result, error) { return newChecker(rt, block).run() }

func newChecker(rt *engine.Runtime, block *Block) *checker {
	return &checker{
		rt: rt, block: block, ranks: Ranks(rt), want: block.Reference,
		value: func(r Rank) float32 { return float32(r.Rank + 1) }, operation: "add",
	}
}

func (c *checker) run() (*Result, error) {
	n := len(c.ranks)
	out := &Result{Devices: n, ExpectedSum: float64(n) * float64(n+1) / 2}
	for _, p := range c.rt.LocalDevices() {
		out.Ranks = append(out.Ranks, RankResult{Rank: c.ranks[p]})
	}
	slices.SortFunc(out.Ranks, func(a, b RankResult) int { return cmp.Compare(a.Rank.Rank, b.Rank.Rank) })
	if err := c.feedForward(out); err != nil {
		return nil, err
	}
	program, err := c.rt.CompileLowered(lowerReduction(c.rt.Mesh(), vectorLength, c.operation))
	if err != nil {
		return nil, err
	}
	defer program.Destroy()
	if err := c.sum(program, out); err != nil {
		return nil, err
	}
	return out, c.confirm(program, out)
}

// feedForward compares the block with the host's in both precisions.
func (c *checker) feedForward(out *Result) error {
	want := c.want()
	for _, precision := range []Precision{Default, Highest} {
		got, err := c.block.run(c.rt, precision)
		if err != nil {
			return err
		}
		for i := range out.Ranks {
			r := &out.Ranks[i]
			diff, fault := compare(got[r.Position], want, c.block.Hidden, tolerances[precision])
			if fault != "" {
				r.Faults = append(r.Faults, fmt.Sprintf("feed-forward output at %s precision, %s", map[Precision]string{Default: "default", Highest: "float32"}[precision], fault))
			}
			if precision == Default {
				r.MaxAbsDiff = diff
			} else {
				r.MaxAbsDiffFloat32 = diff
			}
		}
	}
	return nil
}

// compare returns the largest difference and, in a fault, the element that is furthest outside of the tolerance.
func compare(got []float32, want []float64, columns int, tol tolerance) (diff float64, fault string) {
	if len(got) != len(want) {
		return math.Inf(1), fmt.Sprintf("expected %d elements, got %d", len(want), len(got))
	}
	worst, at := 0.0, 0
	for i, w := range want {
		d := math.Abs(float64(got[i]) - w)
		if math.IsNaN(d) {
			d = math.Inf(1)
		}
		diff = max(diff, d)
		if over := d - tol.Abs - tol.Rel*math.Abs(w); over > worst {
			worst, at = over, i
		}
	}
	if worst > 0 {
		fault = fmt.Sprintf("row %d, column %d: expected %.7g within %g + %g·|expected|, got %.7g", at/columns, at%columns, want[at], tol.Abs, tol.Rel, got[at])
	}
	return diff, fault
}

// sum adds up rank + 1 over all ranks.
func (c *checker) sum(program *engine.Program, out *Result) error {
	got, err := c.reduce(program, c.value)
	if err != nil {
		return err
	}
	for i := range out.Ranks {
		r := &out.Ranks[i]
		r.AllReduceSum = got[r.Position]
		if slices.ContainsFunc(r.AllReduceSum, func(v float32) bool { return !isSum(float64(v), out.ExpectedSum, out.Devices) }) {
			r.Faults = append(r.Faults, fmt.Sprintf("all_reduce_sum: expected %s, got %s",
				FormatFloats(slices.Repeat([]float32{float32(out.ExpectedSum)}, vectorLength)), FormatFloats(r.AllReduceSum)))
		}
	}
	return nil
}

// isSum compares a sum of n float32 integers. It is exact as long as float32 counts that far; beyond, each addition may round.
func isSum(got, want float64, n int) bool {
	if want <= 1<<24 {
		return got == want
	}
	return math.Abs(got-want) <= want*float64(n)/(1<<24)
}

// reduce runs the reduction with what value gives each rank.
func (c *checker) reduce(program *engine.Program, value func(Rank) float32) (map[int][]float32, error) {
	in := program.Inputs[0]
	a, err := c.rt.NewArray(in.DType, in.Dims, in.Spec, ownVector(c.ranks, value))
	if err != nil {
		return nil, fmt.Errorf("send the ranks: %w", err)
	}
	defer a.Destroy()
	return runAndRead(program, a)
}

// confirm adds up how many ranks are right over all processes, so that rank 0 does not speak for ranks that it does not see.
func (c *checker) confirm(program *engine.Program, out *Result) error {
	right := map[int]bool{}
	for _, r := range out.Ranks {
		right[r.Position] = len(r.Faults) == 0
	}
	got, err := c.reduce(program, func(r Rank) float32 {
		if right[r.Position] {
			return 1
		}
		return 0
	})
	if err != nil {
		return fmt.Errorf("add up what the ranks found: %w", err)
	}
	confirmed := float64(out.Devices)
	for _, r := range out.Ranks {
		v := float64(got[r.Position][0])
		if math.IsNaN(v) {
			v = 0
		}
		confirmed = min(confirmed, max(v, 0))
	}
	out.Confirmed = int(confirmed)
	return nil
}

// maxNamed bounds the ranks that an error names.
const maxNamed = 8

// Err returns what is wrong: every rank of this process with a wrong result, expected and got; or how many ranks of other
// processes have one.
func (r *Result) Err() error {
	var faults []error
	for _, rank := range r.Ranks {
		for _, f := range rank.Faults {
			faults = append(faults, fmt.Errorf("%s: %s", rank.Rank, f))
		}
	}
	if n := len(faults); n > maxNamed {
		faults = append(faults[:maxNamed], fmt.Errorf("and %d more", n-maxNamed))
	}
	switch {
	case len(faults) > 0:
		return fmt.Errorf("the devices compute or communicate wrongly, so train on none of this slice before its hardware is checked: %w", errors.Join(faults...))
	case r.Confirmed != r.Devices:
		return fmt.Errorf("%d of %d ranks confirm a right result; the ranks of this host are right: see the output of the other hosts for those that are not", r.Confirmed, r.Devices)
	}
	return nil
}

// MaxAbsDiff is the largest difference of this process's ranks at default precision.
func (r *Result) MaxAbsDiff() float64 {
	var d float64
	for _, rank := range r.Ranks {
		d = max(d, rank.MaxAbsDiff)
	}
	return d
}

// First tells whether rank 0 is one of this process.
func (r *Result) First() bool { return len(r.Ranks) > 0 && r.Ranks[0].Rank.Rank == 0 }
