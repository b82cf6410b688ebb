package job

import (
	"testing"

	"github.com/stretchr/testify/require"

	"weft/engine"
	"weft/models/hf"
)

// Tensors stacked in one parameter follow each other, so that the host holds one parameter's shards at a time; the rest
// keeps its order.
func TestTensorsOfAParameterAreWrittenTogether(t *testing.T) {
	up, down := &engine.Param{Name: "up"}, &engine.Param{Name: "down"}
	tensors := []hf.Tensor{
		{Name: "embed", Param: &engine.Param{Name: "embed"}}, {Name: "0.up", Param: up}, {Name: "0.down", Param: down}, {Name: "vision"},
		{Name: "1.up", Param: up}, {Name: "1.down", Param: down}, {Name: "norm", Param: &engine.Param{Name: "norm"}},
	}
	var got []string
	for _, s := range byParam(tensors) {
		got = append(got, s.Name)
	}
	require.Equal(t, []string{"embed", "0.up", "1.up", "0.down", "1.down", "vision", "norm"}, got)
}
