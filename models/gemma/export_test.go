package gemma

import (
	. "github.com/gomlx/gomlx/core/graph" //nolint:revive // the graph's operations read as mathematics

	"weft/engine"
)

// LossAndLogits shares one forward pass, so that tests compile it once.
func (m *Model) LossAndLogits(w map[string]*Node, b engine.BatchNodes) (sum, count, logits *Node) {
	x, p, table, spec := m.hidden(w, b.InputIDs, b.Mask), m.opts.Policy, w[shortName(nameEmbed)], m.specs[shortName(nameEmbed)]
	sum, count = p.CrossEntropy(x, table, spec, b.Labels, m.cfg.FinalSoftcap)
	return sum, count, p.Logits(x, table, spec, m.cfg.FinalSoftcap)
}
