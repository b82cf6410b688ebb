package hf

import (
	"slices"

	"weft/checkpoint/safetensors"
	"weft/engine"
	"weft/engine/sharding"
	"weft/models/arch"
)

// Tensor is one tensor of a folder to be written: a parameter or one of a stack, or a tensor of the source that the
// model does not touch.
type Tensor struct {
	// Name and Shape as the file has them.
	Name  string
	Shape []int
	// DType is the source's, or that of the model's configuration when there is no source.
	DType safetensors.DType
	// Param is the parameter that holds the values; nil for an untouched tensor, which the source's Set reads.
	Param *engine.Param
	// Index is the position in the parameter's stack; 0 for a parameter that is no stack.
	Index int
}

// Region places a region of the tensor in its parameter.
func (t Tensor) Region(r sharding.Region) sharding.Region {
	if len(t.Param.Sources) == 1 {
		return r
	}
	return sharding.Region{Start: slices.Concat([]int{t.Index}, r.Start), Size: slices.Concat([]int{1}, r.Size)}
}

// Export lists the tensors of the model's Hugging Face folder. With a source they have its names and dtypes, the
// multimodal prefix too, and its untouched tensors (vision, audio) are listed, so that the folder is complete; a head
// saved beside a tied embedding is not. Without one (random weights) they have the first of the model's prefixes and
// the dtype given.
func Export(model arch.Model, s *Source, dtype safetensors.DType) []Tensor {
	var out []Tensor
	params := model.Params()
	for i := range params {
		p := &params[i]
		for index, source := range p.Sources {
			t := Tensor{Shape: tensorDims(*p), DType: dtype, Param: p, Index: index}
			if s == nil {
				t.Name = (&Source{prefix: model.TextPrefixes()[0]}).Name(source)
			} else {
				t.Name = s.Name(source)
				info, _ := s.set.Lookup(t.Name)
				t.DType = info.DType
			}
			out = append(out, t)
		}
	}
	if s != nil {
		for _, info := range s.untouched {
			out = append(out, Tensor{Name: info.Name, Shape: info.Shape, DType: info.DType})
		}
	}
	return out
}
