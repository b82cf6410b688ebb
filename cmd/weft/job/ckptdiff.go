package job

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"weft/checkpoint/safetensors"
)

// Diff is what `weft checkpoint diff` found, as JSON with --json.
type Diff struct {
	A DiffSide `json:"a"`
	B DiffSide `json:"b"`
	// Equal: the same tensors with the same shapes, dtypes and bits.
	Equal bool `json:"equal"`
	// Tensors were compared, of which Same have the same bits; Elements and Changed count their elements.
	Tensors  int   `json:"tensors"`
	Same     int   `json:"same"`
	Elements int64 `json:"elements"`
	Changed  int64 `json:"changed_elements"`
	// Relative is ‖B−A‖/‖A‖ over all tensors of one shape, null when A is all zeros.
	Relative    *float64     `json:"relative_norm"`
	Differences []TensorDiff `json:"differences"` // the most changed first
	// Notes say what was not compared.
	Notes []string `json:"notes,omitempty"`
}

// DiffSide is one of the two.
type DiffSide struct {
	Path string `json:"path"`
	Kind string `json:"kind"` // checkpoint or model folder
	// Step, Epoch and Devices are a checkpoint's.
	Step    int `json:"step,omitempty"`
	Epoch   int `json:"epoch,omitempty"`
	Devices int `json:"devices,omitempty"`
}

// Changes of a tensor.
const (
	ChangeAdded   = "added"   // only in B
	ChangeRemoved = "removed" // only in A
	ChangeShape   = "shape"
	ChangeDType   = "dtype" // the values are compared after widening
	ChangeContent = "content"
)

// TensorDiff is a tensor that differs.
type TensorDiff struct {
	Name   string            `json:"name"`
	Change string            `json:"change"`
	DTypeA safetensors.DType `json:"dtype_a,omitempty"`
	DTypeB safetensors.DType `json:"dtype_b,omitempty"`
	ShapeA []int             `json:"shape_a,omitempty"`
	ShapeB []int             `json:"shape_b,omitempty"`
	// Elements is their number, Changed that of those that differ: in a bit, or where the dtypes differ in value.
	Elements int64 `json:"elements"`
	Changed  int64 `json:"changed_elements"`
	// NonFinite counts changed elements that are NaN or infinite on a side; the figures below leave them out.
	NonFinite int64 `json:"non_finite,omitempty"`
	// MaxAbs is max |B−A|, RMS the root mean square of B−A over all elements, Relative ‖B−A‖/‖A‖, null when A is all zeros.
	MaxAbs   float64  `json:"max_abs"`
	RMS      float64  `json:"rms"`
	Relative *float64 `json:"relative_norm"`

	sumA, sumD float64 // of squares
}

// DiffCheckpoints compares two checkpoints, model folders, or one of each; of a run's folder the newest checkpoint. Two
// checkpoints are compared by what was trained, with state also by the optimizer's moments; a checkpoint and a model
// folder by all tensors. Regions are read, so that memory is bounded whatever the size and the number of devices.
func DiffCheckpoints(ctx context.Context, a, b string, state bool) (_ *Diff, err error) {
	var sides [2]*diffSource
	defer func() {
		for _, s := range sides {
			if s != nil {
				err = errors.Join(err, s.close())
			}
		}
	}()
	for i, url := range []string{a, b} {
		if sides[i], err = openDiffSource(ctx, url); err != nil {
			return nil, err
		}
	}
	d := &Diff{A: sides[0].side, B: sides[1].side, Differences: []TensorDiff{}}
	if state && (sides[0].place == nil || sides[1].place == nil) {
		return nil, errors.New("--state compares the optimizer's moments, which a model folder does not have: give two checkpoints, or leave it out")
	}
	listA, listB, notes, err := pairUp(ctx, sides[0], sides[1], state)
	if err != nil {
		return nil, err
	}
	d.Notes = notes
	return d, d.compare(ctx, listA, listB)
}

// compare compares tensors by name.
func (d *Diff) compare(ctx context.Context, listA, listB []diffTensor) error {
	inB := make(map[string]*diffTensor, len(listB))
	for i := range listB {
		inB[listB[i].name] = &listB[i]
	}
	seen := map[string]bool{}
	var sumA, sumD float64
	for i := range listA {
		a := &listA[i]
		seen[a.name] = true
		t, err := compareTensors(ctx, a, inB[a.name])
		if err != nil {
			return err
		}
		d.Tensors++
		d.Elements += t.Elements
		d.Changed += t.Changed
		sumA, sumD = sumA+t.sumA, sumD+t.sumD
		if t.Change == "" {
			d.Same++
			continue
		}
		d.Differences = append(d.Differences, t)
	}
	for i := range listB {
		if b := &listB[i]; !seen[b.name] {
			d.Differences = append(d.Differences, TensorDiff{Name: b.name, Change: ChangeAdded, DTypeB: b.dtype, ShapeB: b.shape})
		}
	}
	d.Relative, d.Equal = relative(sumA, sumD), len(d.Differences) == 0
	slices.SortStableFunc(d.Differences, byChange)
	return nil
}

// byChange sorts what has no counterpart or another shape first, then by relative change.
func byChange(a, b TensorDiff) int {
	rank := func(t TensorDiff) float64 {
		switch {
		case t.Change != ChangeContent && t.Change != ChangeDType, t.NonFinite > 0:
			return math.Inf(1)
		case t.Relative == nil && t.Changed > 0:
			return math.MaxFloat64
		case t.Relative == nil:
			return 0
		}
		return *t.Relative
	}
	if ra, rb := rank(a), rank(b); ra != rb {
		if ra > rb {
			return -1
		}
		return 1
	}
	return strings.Compare(a.Name, b.Name)
}

func relative(sumA, sumD float64) *float64 {
	if sumA == 0 && sumD > 0 {
		return nil
	}
	r := 0.0
	if sumD > 0 {
		r = math.Sqrt(sumD) / math.Sqrt(sumA)
	}
	return &r
}

// compareTensors compares region by region; b is nil when there is none of the name.
func compareTensors(ctx context.Context, a, b *diffTensor) (t TensorDiff, err error) {
	t = TensorDiff{Name: a.name, DTypeA: a.dtype, ShapeA: a.shape}
	if b == nil {
		t.Change = ChangeRemoved
		return t, nil
	}
	t.DTypeB, t.ShapeB = b.dtype, b.shape
	if !slices.Equal(a.shape, b.shape) {
		t.Change = ChangeShape
		return t, nil
	}
	var bufs [2][]byte
	for r := range regionsOf(a.shape, diffElements) {
		if err := ctx.Err(); err != nil {
			return t, err
		}
		for i, s := range []*diffTensor{a, b} {
			n := r.Elements() * s.dtype.Size()
			if cap(bufs[i]) < n {
				bufs[i] = make([]byte, n)
			}
			bufs[i] = bufs[i][:n]
			if err := s.read(r, bufs[i]); err != nil {
				return t, err
			}
		}
		t.add(bufs[0], bufs[1])
	}
	switch {
	case a.dtype != b.dtype:
		t.Change = ChangeDType
	case t.Changed > 0:
		t.Change = ChangeContent
	}
	if t.Elements > 0 {
		t.RMS = math.Sqrt(t.sumD / float64(t.Elements))
	}
	t.Relative = relative(t.sumA, t.sumD)
	return t, nil
}

// add takes the elements of a region in.
func (t *TensorDiff) add(rawA, rawB []byte) {
	sizeA, sizeB, same := t.DTypeA.Size(), t.DTypeB.Size(), t.DTypeA == t.DTypeB
	decodeA, decodeB := decoder(t.DTypeA), decoder(t.DTypeB)
	for n := len(rawA) / sizeA; n > 0; n-- {
		ea, eb := rawA[:sizeA], rawB[:sizeB]
		rawA, rawB = rawA[sizeA:], rawB[sizeB:]
		t.Elements++
		x := decodeA(ea)
		finite := !math.IsNaN(x) && !math.IsInf(x, 0)
		if finite {
			t.sumA += x * x
		}
		if same && string(ea) == string(eb) {
			continue
		}
		y := decodeB(eb)
		if !same && (x == y || math.IsNaN(x) && math.IsNaN(y)) {
			continue
		}
		t.Changed++
		delta := y - x
		if !finite || math.IsNaN(delta) || math.IsInf(delta, 0) {
			t.NonFinite++
			continue
		}
		t.MaxAbs = max(t.MaxAbs, math.Abs(delta))
		t.sumD += delta * delta
	}
}

// Write prints the difference.
func (d *Diff) Write(w io.Writer) error {
	fmt.Fprintf(w, "A  %s\nB  %s\n", d.A.text(), d.B.text())
	for _, n := range d.Notes {
		fmt.Fprintf(w, "note: %s\n", n)
	}
	if d.Equal {
		_, err := fmt.Fprintf(w, "equal: %d tensors, %s elements, the same bits\n", d.Tensors, count(int(d.Elements)))
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "TENSOR\tCHANGE\tMAX |Δ|\tRMS Δ\t‖Δ‖/‖A‖\tCHANGED")
	for _, x := range d.Differences {
		fmt.Fprintf(t, "%s\t%s\t%s\n", x.Name, x.changeText(), x.figures())
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "different: %d of %d tensors of A have the same bits; %s of %s elements changed, ‖Δ‖/‖A‖ %s\n",
		d.Same, d.Tensors, count(int(d.Changed)), count(int(d.Elements)), ratioText(d.Relative))
	return err
}

func (s DiffSide) text() string {
	if s.Kind == kindFolder {
		return fmt.Sprintf("%s (model folder)", s.Path)
	}
	return fmt.Sprintf("%s (checkpoint: epoch %d, step %d, written by %d devices)", s.Path, s.Epoch, s.Step, s.Devices)
}

func (t *TensorDiff) changeText() string {
	switch t.Change {
	case ChangeAdded:
		return fmt.Sprintf("only in B: %s %v", t.DTypeB, t.ShapeB)
	case ChangeRemoved:
		return fmt.Sprintf("only in A: %s %v", t.DTypeA, t.ShapeA)
	case ChangeShape:
		return fmt.Sprintf("shape %v, in B %v", t.ShapeA, t.ShapeB)
	case ChangeDType:
		return fmt.Sprintf("%s, in B %s", t.DTypeA, t.DTypeB)
	}
	return t.Change
}

func (t *TensorDiff) figures() string {
	if t.Change != ChangeContent && t.Change != ChangeDType {
		return "-\t-\t-\t-"
	}
	changed := fmt.Sprintf("%s of %s", count(int(t.Changed)), count(int(t.Elements)))
	if t.NonFinite > 0 {
		changed += fmt.Sprintf(" (%s not finite)", count(int(t.NonFinite)))
	}
	return fmt.Sprintf("%s\t%s\t%s\t%s", figure(t.MaxAbs), figure(t.RMS), ratioText(t.Relative), changed)
}

func figure(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }

func ratioText(r *float64) string {
	if r == nil {
		return "∞ (A is 0)"
	}
	return figure(*r)
}
