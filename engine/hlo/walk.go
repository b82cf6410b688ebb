package hlo

import "fmt"

// Site is an instruction at one place where it runs.
type Site struct {
	Computation *Computation
	Instruction *Instruction
	// Times is how often it runs in one run of the program, by the trip counts of the loops around it.
	Times int64
	// Fused tells that it is part of a fusion: what it computes need not exist in memory.
	Fused bool
	// Async is the instruction around it that begins it and lets others run meanwhile, nil when there is none.
	Async *Instruction
	// Unknown is a loop around it whose trip count could not be found and that counts once, nil when there is none.
	Unknown *Instruction
	// Branch is the conditional around it, of which one branch runs; Times is as if each did. nil outside.
	Branch *Instruction
}

// maxSites bounds a walk, should the program be damaged: a real one has some hundred thousand.
const maxSites = 1 << 24

// Walk visits every instruction that runs, in the order of its computation, callers before what they call. The
// functions of reductions, sorts, scatters and custom calls, which work on single elements, are not visited.
func (m *Module) Walk(visit func(Site) error) error {
	entry, err := m.Entry()
	if err != nil {
		return err
	}
	w := &walker{module: m, visit: visit, left: maxSites}
	return w.walk(Site{Computation: entry, Times: 1}, 0)
}

type walker struct {
	module *Module
	visit  func(Site) error
	left   int
}

// walk visits the computation of a site whose other fields say how it runs.
func (w *walker) walk(at Site, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("computation %s is called more than %d deep: the program is damaged", at.Computation.Name, maxDepth)
	}
	for _, in := range at.Computation.Instructions {
		if w.left--; w.left < 0 {
			return fmt.Errorf("more than %d instructions run: the program is damaged", maxSites)
		}
		s := at
		s.Instruction = in
		if err := w.visit(s); err != nil {
			return err
		}
		if err := w.called(s, depth); err != nil {
			return err
		}
	}
	return nil
}

// called walks the computations that an instruction runs.
func (w *walker) called(s Site, depth int) error {
	in := s.Instruction
	switch in.Opcode {
	case "fusion":
		s.Fused = true
	case "call":
	case "async-start":
		s.Async = in
	case "custom-call":
		if !w.module.Wraps(in) {
			return nil
		}
	case "conditional":
		s.Branch = in
	case "while":
		return w.loop(s, depth)
	default:
		return nil
	}
	return w.all(s, in.Calls, depth)
}

// Wraps tells whether a custom call does nothing but run a computation, elsewhere on the chip perhaps: a TPU's compiler
// gives collectives and lookups to the sparse cores in this form. Others call functions of single elements.
func (m *Module) Wraps(in *Instruction) bool {
	if in.Opcode != "custom-call" || len(in.Calls) != 1 {
		return false
	}
	callee := m.byID[in.Calls[0]]
	return callee != nil && callee.Root() != nil && callee.Root().Shape.String() == in.Shape.String()
}

func (w *walker) all(s Site, ids []int64, depth int) error {
	for _, id := range ids {
		callee := w.module.byID[id]
		if callee == nil {
			return fmt.Errorf("instruction %s calls computation %d, which is not there", s.Instruction.Name, id)
		}
		s.Computation = callee
		if err := w.walk(s, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// loop walks the body of a loop as often as it runs and its condition once more.
func (w *walker) loop(s Site, depth int) error {
	in := s.Instruction
	n, known := w.module.TripCount(s.Computation, in)
	if !known {
		n = 1
		s.Unknown = in
	}
	_, condition := w.module.loopParts(in)
	outer := s.Times
	for _, id := range in.Calls {
		s.Times = saturatingMul(outer, n)
		if condition != nil && id == condition.ID {
			s.Times = saturatingAdd(s.Times, outer)
		}
		if err := w.all(s, []int64{id}, depth); err != nil {
			return err
		}
	}
	return nil
}
