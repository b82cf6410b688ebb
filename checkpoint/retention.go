package checkpoint

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Prune deletes the checkpoints that Options do not keep and returns them. It
// stops at the first failure; what it then returns is deleted. Before that it
// verifies from the newest back until one is whole, which it keeps too.
func (m *Manager) Prune() ([]Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.opts.ReadOnly {
		return nil, fmt.Errorf("pruning checkpoints: %w", ErrReadOnly)
	}
	plan, err := m.PlanPrune()
	if err != nil {
		return nil, err
	}
	removed, err := m.deleteAll(plan)
	if err != nil {
		return removed, fmt.Errorf("%w: %w", ErrPrune, explain(m.root, err))
	}
	return removed, nil
}

// PlanPrune returns what Prune would delete, oldest first.
func (m *Manager) PlanPrune() ([]Entry, error) {
	list, err := m.List()
	if err != nil {
		return nil, err
	}
	plan := surplus(list, m.opts.Keep, m.opts.KeepBy)
	if len(plan) == 0 {
		return nil, nil
	}
	good, ok, _, err := m.LatestGood()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(plan, func(e Entry) bool { return ok && e.Name == good.Name }), nil
}

// pruneAfterSave trusts the newest checkpoint: this process has just written it.
func (m *Manager) pruneAfterSave() ([]Entry, error) {
	list, err := m.List()
	if err != nil {
		return nil, err
	}
	return m.deleteAll(surplus(list, m.opts.Keep, m.opts.KeepBy))
}

func (m *Manager) deleteAll(plan []Entry) (removed []Entry, err error) {
	for _, e := range plan {
		if err := m.deleteEntry(e); err != nil {
			return removed, fmt.Errorf("deleting checkpoint %s: %w", e.Dir, err)
		}
		removed = append(removed, e)
	}
	return removed, nil
}

// surplus picks what to delete from a list in the order of List. Kept are the
// best keep ones, the newest, those that the user put behind a link, and those
// with an unusable manifest, of which nobody knows which files are weft's.
func surplus(list []Entry, keep int, by string) []Entry {
	usable := slices.DeleteFunc(slices.Clone(list), func(e Entry) bool { return e.Err != nil })
	if keep == 0 || len(usable) == 0 {
		return nil
	}
	// A step that was saved again counts once, with its newest revision.
	type step struct{ epoch, step int }
	newest := map[step]int{}
	for _, e := range usable {
		newest[step{e.Epoch, e.Step}] = e.Sequence
	}
	ranked := slices.DeleteFunc(slices.Clone(usable), func(e Entry) bool { return newest[step{e.Epoch, e.Step}] != e.Sequence })
	slices.Reverse(ranked) // among equals the newest is the best
	if by != KeepByStep {
		slices.SortStableFunc(ranked, func(a, b Entry) int { return cmp.Compare(rank(a, by), rank(b, by)) })
	}
	kept := map[string]bool{usable[len(usable)-1].Name: true}
	for _, e := range ranked[:min(keep, len(ranked))] {
		kept[e.Name] = true
	}
	return slices.DeleteFunc(usable, func(e Entry) bool { return kept[e.Name] || e.Linked })
}

// rank is the metric, or +Inf for one that is absent or NaN.
func rank(e Entry, by string) float64 {
	v, ok := e.Metrics[by]
	if !ok || math.IsNaN(v) {
		return math.Inf(1)
	}
	return v
}
