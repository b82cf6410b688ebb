package checkpoint

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Reason says why a checkpoint stays.
type Reason string

// The reasons. A checkpoint is deleted only when it has none of them.
const (
	KeptAll    Reason = "all"         // no rule is set
	KeptNewest Reason = "newest"      // a resume begins there
	KeptWhole  Reason = "newest good" // the newest one that was seen to be whole
	KeptBest   Reason = "best"        // among the best Options.Keep by Options.KeepBy
	KeptLast   Reason = "last"        // among the last Options.KeepLast
	KeptEvery  Reason = "every"       // of an epoch that Options.KeepEvery divides
	KeptLinked Reason = "link"        // behind a symbolic link: not weft's to delete
	KeptFaulty Reason = "unreadable"  // its manifest is unusable: nobody knows which files are weft's
)

// Decision is what retention makes of one checkpoint.
type Decision struct {
	Entry Entry
	Keep  []Reason // empty: it goes
}

// check refuses rules that mean nothing.
func (o Options) check() error {
	for _, n := range []struct {
		name  string
		value int
	}{{"keep", o.Keep}, {"keep-last", o.KeepLast}, {"keep-every", o.KeepEvery}} {
		if n.value < 0 {
			return fmt.Errorf("%s %d is negative; 0 is no such rule", n.name, n.value)
		}
	}
	if o.several() && (o.Process < 0 || o.Process >= o.Processes) {
		return fmt.Errorf("process %d is none of %d", o.Process, o.Processes)
	}
	if o.Keep > 0 && o.KeepBy == "" {
		return errors.New("keeping the best needs the name of a metric or \"step\"")
	}
	return nil
}

// everything tells that no rule is set, which keeps all.
func (o Options) everything() bool { return o.Keep == 0 && o.KeepLast == 0 && o.KeepEvery == 0 }

// Decide applies the rules of Options to a list in the order of List. A
// checkpoint stays when any rule keeps it, and in any case the newest usable
// one, those behind a link and those whose manifest is unusable. A step that
// was saved again counts for the rules with its newest revision only, and one
// behind a link, which stays whatever they say, takes no place among those that
// they keep: else the same rules would choose others after the first prune.
func (o Options) Decide(list []Entry) []Decision {
	out := make([]Decision, len(list))
	byName := make(map[string]*Decision, len(list))
	keep := func(e Entry, why Reason) { byName[e.Name].Keep = append(byName[e.Name].Keep, why) }
	var usable []Entry
	for i, e := range list {
		out[i] = Decision{Entry: e}
		byName[e.Name] = &out[i]
		if e.Err != nil {
			keep(e, KeptFaulty)
		} else {
			usable = append(usable, e)
		}
	}
	if len(usable) > 0 {
		keep(usable[len(usable)-1], KeptNewest)
	}
	standing := newestRevisions(usable)
	for _, e := range o.best(standing) {
		keep(e, KeptBest)
	}
	for _, e := range standing[max(0, len(standing)-o.KeepLast):] {
		keep(e, KeptLast)
	}
	for _, e := range standing {
		if o.KeepEvery > 0 && e.Model && e.Epoch > 0 && e.Epoch%o.KeepEvery == 0 {
			keep(e, KeptEvery)
		}
	}
	for i := range out {
		if e := out[i].Entry; e.Err == nil && e.Linked {
			keep(e, KeptLinked)
		}
		if o.everything() && len(out[i].Keep) == 0 {
			keep(out[i].Entry, KeptAll)
		}
	}
	return out
}

// newestRevisions leaves out what a later save of the same step replaces, and
// what lies behind a link.
func newestRevisions(usable []Entry) []Entry {
	type step struct{ epoch, step int }
	newest := map[step]int{}
	for _, e := range usable {
		newest[step{e.Epoch, e.Step}] = e.Sequence
	}
	return slices.DeleteFunc(slices.Clone(usable), func(e Entry) bool { return e.Linked || newest[step{e.Epoch, e.Step}] != e.Sequence })
}

// Best ranks checkpoints by a metric, smaller is better, or by KeepByStep. One
// without the metric, or with NaN, ranks last; among equals the newer is better.
func Best(list []Entry, by string) []Entry {
	ranked := newestRevisions(slices.DeleteFunc(slices.Clone(list), func(e Entry) bool { return e.Err != nil }))
	slices.Reverse(ranked)
	if by != KeepByStep {
		slices.SortStableFunc(ranked, func(a, b Entry) int { return cmp.Compare(rank(a, by), rank(b, by)) })
	}
	return ranked
}

func (o Options) best(standing []Entry) []Entry {
	ranked := Best(standing, o.KeepBy)
	return ranked[:min(o.Keep, len(ranked))]
}

// rank is the metric, or +Inf for one that is absent or NaN.
func rank(e Entry, by string) float64 {
	v, ok := e.Metrics[by]
	if !ok || math.IsNaN(v) {
		return math.Inf(1)
	}
	return v
}

// surplus is what Decide lets go of, oldest first.
func surplus(decisions []Decision) []Entry {
	var out []Entry
	for _, d := range decisions {
		if len(d.Keep) == 0 {
			out = append(out, d.Entry)
		}
	}
	return out
}

// Prune deletes the checkpoints that Options do not keep and returns them. It
// stops at the first failure; what it then returns is deleted. Before that it
// verifies from the newest back until one is whole, which it keeps too.
func (m *Manager) Prune() ([]Entry, error) {
	return m.PruneAs(func([]Decision) error { return nil })
}

// PruneAs is Prune that tells the caller first what will become of every
// checkpoint; an error of tell leaves all of them.
func (m *Manager) PruneAs(tell func([]Decision) error) ([]Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.opts.ReadOnly || m.opts.part() {
		return nil, fmt.Errorf("pruning checkpoints: %w", ErrReadOnly)
	}
	plan, err := m.PlanPrune()
	if err != nil {
		return nil, err
	}
	if err := tell(plan); err != nil {
		return nil, err
	}
	removed, err := m.deleteAll(surplus(plan))
	if err != nil {
		return removed, fmt.Errorf("%w: %w", ErrPrune, explain(m.root, err))
	}
	return removed, nil
}

// PlanPrune returns what Prune would do with every checkpoint, in the order of
// List. When something would go it reads every byte of the newest checkpoint,
// and of older ones until one is whole; with none whole, nothing goes.
func (m *Manager) PlanPrune() ([]Decision, error) {
	list, err := m.List()
	if err != nil {
		return nil, err
	}
	plan := m.opts.Decide(list)
	if len(surplus(plan)) == 0 {
		return plan, nil
	}
	good, ok, _, err := m.LatestGood()
	if err != nil {
		return nil, err
	}
	for i := range plan {
		if d := &plan[i]; len(d.Keep) == 0 && (!ok || d.Entry.Name == good.Name) {
			d.Keep = append(d.Keep, KeptWhole)
		}
	}
	return plan, nil
}

// pruneAfterSave trusts the newest checkpoint: this process has just written it.
func (m *Manager) pruneAfterSave() ([]Entry, error) {
	list, err := m.List()
	if err != nil {
		return nil, err
	}
	return m.deleteAll(surplus(m.opts.Decide(list)))
}

func (m *Manager) deleteAll(plan []Entry) (removed []Entry, err error) {
	for _, e := range plan {
		if err := m.deleteEntry(e); err != nil {
			return removed, fmt.Errorf("deleting checkpoint %s: %w", where(m.fs, e.Dir), err)
		}
		removed = append(removed, e)
	}
	return removed, nil
}
