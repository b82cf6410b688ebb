package stablehlo

import (
	"fmt"
	"net/url"
	"strings"

	"weft/engine/sharding"
)

const constraintPrefix = "sdy.constraint"

// ConstraintName names an identity function of one tensor that this backend lowers, where it is called, to
// `sdy.sharding_constraint` with the spec. Other backends just run the identity. unique tells functions of one graph
// apart and may be any text.
func ConstraintName(spec sharding.Spec, unique string) string {
	var sb strings.Builder
	sb.WriteString(constraintPrefix + "[")
	for _, axes := range spec {
		sb.WriteByte('{')
		for i, axis := range axes {
			if i > 0 {
				sb.WriteByte(',')
			}
			sb.WriteString(url.QueryEscape(axis))
		}
		sb.WriteByte('}')
	}
	sb.WriteString("]#" + unique)
	return sb.String()
}

// parseConstraint reads a name made by ConstraintName. found is false for any other function.
func parseConstraint(name string) (spec sharding.Spec, found bool, err error) {
	rest, found := strings.CutPrefix(name, constraintPrefix)
	if !found {
		return nil, false, nil
	}
	malformed := fmt.Errorf("function name %q begins with %q but was not made by stablehlo.ConstraintName: rename the function", name, constraintPrefix)
	body, unique, ok := strings.Cut(rest, "]#")
	if !ok || !strings.HasPrefix(body, "[") {
		return nil, true, malformed
	}
	for body = body[1:]; body != ""; {
		dim, after, ok := strings.Cut(body, "}")
		if !ok || !strings.HasPrefix(dim, "{") {
			return nil, true, malformed
		}
		var axes []string
		if dim != "{" {
			for _, escaped := range strings.Split(dim[1:], ",") {
				axis, err := url.QueryUnescape(escaped)
				if err != nil || axis == "" {
					return nil, true, malformed
				}
				axes = append(axes, axis)
			}
		}
		spec = append(spec, axes)
		body = after
	}
	if ConstraintName(spec, unique) != name {
		return nil, true, malformed
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
