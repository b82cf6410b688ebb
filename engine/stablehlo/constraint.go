package stablehlo

import (
	"fmt"
	"strings"

	"weft/engine/sharding"
)

const constraintPrefix = "sdy.constraint"

// ConstraintName names an identity function of one tensor that this backend lowers, where it is called, to
// `sdy.sharding_constraint` with the spec. Other backends just run the identity. unique tells functions of one graph
// apart and may be any text.
func ConstraintName(spec sharding.Spec, unique string) string {
	return specialName(constraintPrefix, unique, specText(spec))
}

// parseConstraint reads a name made by ConstraintName. found is false for any other function.
func parseConstraint(name string) (spec sharding.Spec, found bool, err error) {
	fields, unique, found, err := specialFields(name, constraintPrefix, 1)
	if !found || err != nil {
		return nil, found, err
	}
	spec, ok := parseSpec(fields[0])
	if !ok || ConstraintName(spec, unique) != name {
		return nil, true, malformedName(name, constraintPrefix)
	}
	return spec, true, nil
}

// shardingText prints `<@mesh, [{"fsdp"}, {}]>` for a tensor of the given rank.
func shardingText(mesh sharding.Mesh, spec sharding.Spec, rank int) string {
	dims := make([]string, rank)
	for d := range dims {
		axes := make([]string, len(spec.Axes(d)))
		for i, a := range spec.Axes(d) {
			axes[i] = quote(a)
		}
		dims[d] = "{" + strings.Join(axes, ", ") + "}"
	}
	return "<" + symbol(mesh.Name) + ", [" + strings.Join(dims, ", ") + "]>"
}

// meshText prints the sdy.mesh operation.
func meshText(mesh sharding.Mesh) string {
	axes := make([]string, len(mesh.Axes))
	for i, a := range mesh.Axes {
		axes[i] = fmt.Sprintf("%s=%d", quote(a.Name), a.Size)
	}
	return "sdy.mesh " + symbol(mesh.Name) + " = <[" + strings.Join(axes, ", ") + "]>"
}
