// Package hf carries weights between a Hugging Face folder and a model's parameters.
//
// Load checks every tensor of the folder against the model before a byte is read. Source.Read then gives any region of
// any parameter in the parameter's dtype, touching only the bytes of that region. Export lists the tensors of a folder
// to be written, with the names that they came with.
package hf

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/gomlx/compute/dtypes"

	"weft/checkpoint/safetensors"
	"weft/checkpoint/storage"
	"weft/engine"
	"weft/engine/sharding"
	"weft/models/arch"
)

// Source is an open folder of weights that fits a model. Its methods may be called from several goroutines at once.
type Source struct {
	set    *safetensors.Set
	prefix string
	// untouched are the tensors without a parameter that an export carries over, in the order of the files.
	untouched []safetensors.Info
}

// textPrefix begins the names in Param.Sources.
const textPrefix = "model."

// Load opens the weights in dir, a local folder or one on Cloud Storage (gs://), and checks them against the model: a missing,
// unexpected or misshaped tensor, or one of an unknown dtype, is an error that names it. Close the source when done.
func Load(dir string, model arch.Model) (*Source, error) {
	set, err := storage.OpenWeights(context.Background(), dir)
	if err != nil {
		return nil, err
	}
	s := &Source{set: set}
	if err := s.check(model); err != nil {
		set.Close()
		return nil, fmt.Errorf("weights in %s: %w", dir, err)
	}
	return s, nil
}

// Close unmaps or closes the files.
func (s *Source) Close() error { return s.set.Close() }

// Set returns the open files.
func (s *Source) Set() *safetensors.Set { return s.set }

// Name spells a name of Param.Sources as the folder does.
func (s *Source) Name(source string) string {
	return s.prefix + strings.TrimPrefix(source, textPrefix)
}

func (s *Source) check(model arch.Model) error {
	params := model.Params()
	s.prefix = findPrefix(s.set, model.TextPrefixes(), params[0].Sources[0])
	wanted := map[string]bool{}
	var missing []string
	for _, p := range params {
		for _, source := range p.Sources {
			name := s.Name(source)
			wanted[name] = true
			info, ok := s.set.Lookup(name)
			if !ok {
				missing = append(missing, name)
				continue
			}
			if err := fits(info, p); err != nil {
				return err
			}
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("tensor %s is missing%s: download the folder again, or use the config.json that belongs to it", missing[0], more(missing))
	}
	var unexpected []string
	for _, info := range s.set.Tensors() {
		if wanted[info.Name] {
			continue
		}
		text := ""
		if rest, ok := strings.CutPrefix(info.Name, s.prefix); ok {
			text = textPrefix + rest
		}
		switch model.Classify(info.Name, text) {
		case arch.Untouched:
			s.untouched = append(s.untouched, info)
		case arch.Unexpected:
			unexpected = append(unexpected, info.Name)
		}
	}
	if len(unexpected) > 0 {
		return fmt.Errorf("tensor %s is unexpected%s: config.json describes a model without it; use the config.json that belongs to the weights", unexpected[0], more(unexpected))
	}
	return nil
}

func more(names []string) string {
	if len(names) == 1 {
		return ""
	}
	return fmt.Sprintf(" (and %d more)", len(names)-1)
}

// findPrefix picks the prefix under which the first tensor is there, else the likeliest.
func findPrefix(set *safetensors.Set, prefixes []string, source string) string {
	for _, p := range prefixes {
		if _, ok := set.Lookup(p + strings.TrimPrefix(source, textPrefix)); ok {
			return p
		}
	}
	return prefixes[0]
}

// tensorDims is the shape of one source tensor of a parameter.
func tensorDims(p engine.Param) []int {
	if len(p.Sources) > 1 {
		return p.Dims[1:]
	}
	return p.Dims
}

func fits(info safetensors.Info, p engine.Param) error {
	if dims := tensorDims(p); !slices.Equal(info.Shape, dims) {
		return fmt.Errorf("tensor %s has shape %v, config.json makes it %v: use the config.json that belongs to the weights", info.Name, info.Shape, dims)
	}
	switch info.DType {
	case safetensors.F32, safetensors.BF16, safetensors.F16:
		return nil
	}
	return fmt.Errorf("tensor %s has dtype %s: F32, BF16 and F16 are supported; convert the folder", info.Name, info.DType)
}

// Read writes one region of a parameter to dst, row-major, in the parameter's dtype. It is an engine.ParamFill.
func (s *Source) Read(p engine.Param, r sharding.Region, dst []byte) error {
	if want := r.Elements() * p.DType.Size(); len(dst) != want {
		return fmt.Errorf("read %s: the buffer has %d bytes, the region %v needs %d", p.Name, len(dst), r.Size, want)
	}
	if len(p.Sources) == 1 {
		return s.readTensor(p, p.Sources[0], r.Start, r.Size, dst)
	}
	each := len(dst) / max(r.Size[0], 1)
	for i := range r.Size[0] {
		if err := s.readTensor(p, p.Sources[r.Start[0]+i], r.Start[1:], r.Size[1:], dst[i*each:(i+1)*each]); err != nil {
			return err
		}
	}
	return nil
}

func (s *Source) readTensor(p engine.Param, source string, start, size []int, dst []byte) error {
	name := s.Name(source)
	info, ok := s.set.Lookup(name)
	if !ok {
		return fmt.Errorf("read %s: tensor %s is missing", p.Name, name)
	}
	if info.DType == fileDType(p.DType) {
		return s.set.ReadRegion(name, start, size, dst)
	}
	raw := make([]byte, len(dst)/p.DType.Size()*info.DType.Size())
	if err := s.set.ReadRegion(name, start, size, raw); err != nil {
		return err
	}
	if err := Convert(dst, fileDType(p.DType), raw, info.DType); err != nil {
		return fmt.Errorf("read %s from %s: %w", p.Name, name, err)
	}
	return nil
}

// fileDType spells a device dtype as the files do, "" when they cannot.
func fileDType(d dtypes.DType) safetensors.DType {
	switch d {
	case dtypes.Float32:
		return safetensors.F32
	case dtypes.BFloat16:
		return safetensors.BF16
	case dtypes.Float16:
		return safetensors.F16
	}
	return ""
}

// Convert writes src, of one float dtype, to dst in another, through float32. Their lengths must fit.
func Convert(dst []byte, to safetensors.DType, src []byte, from safetensors.DType) error {
	return safetensors.Convert(dst, to, src, from)
}
