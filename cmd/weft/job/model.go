package job

import (
	"fmt"

	"github.com/gomlx/compute/dtypes"

	"weft/checkpoint/safetensors"
	"weft/engine"
	"weft/engine/sharding"
	"weft/models/arch"
	"weft/models/hf"
)

// model is the model of a run: its mathematics on the mesh, and where its weights come from.
type model struct {
	arch.Model
	files *modelFiles
	// source is nil for random weights.
	source *hf.Source
	seed   uint64
	// exported lists the tensors of the folder that a checkpoint writes.
	exported []hf.Tensor
}

// deviceDTypes are the values of --param-dtype and --compute-dtype on the devices.
var deviceDTypes = map[string]dtypes.DType{"float32": dtypes.Float32, "bfloat16": dtypes.BFloat16, "float16": dtypes.Float16}

// fileDTypes are the same in files.
var fileDTypes = map[dtypes.DType]safetensors.DType{dtypes.Float32: safetensors.F32, dtypes.BFloat16: safetensors.BF16, dtypes.Float16: safetensors.F16}

// openModel declares the model for the mesh and opens and checks its weights, without reading them.
func openModel(c *Config, files *modelFiles, mesh sharding.Mesh) (*model, error) {
	math, err := c.declare(files, mesh)
	if err != nil {
		return nil, err
	}
	frozen := c.frozenDType()
	m := &model{Model: math, files: files, seed: uint64(c.Seed)}
	if trained, _ := countParameters(math.Params()); trained == 0 {
		return nil, fmt.Errorf("--freeze %s freezes every tensor: leave some to train", c.Freeze)
	}
	if !c.RandomInit {
		if m.source, err = hf.Load(files.dir, math); err != nil {
			return nil, fmt.Errorf("--model-id: %w", err)
		}
	}
	declared := files.arch.Info().DType
	if frozen != dtypes.InvalidDType {
		declared = frozen
	}
	m.exported = hf.Export(math, m.source, fileDTypes[declared])
	if frozen != dtypes.InvalidDType {
		for i := range m.exported {
			if m.exported[i].Param != nil {
				m.exported[i].DType = fileDTypes[frozen]
			}
		}
	}
	files.declareDType(c.ParamDType)
	return m, nil
}

// close unmaps or closes the weights.
func (m *model) close() error {
	if m.source == nil {
		return nil
	}
	return m.source.Close()
}

// fill gives the parameters their first values.
func (m *model) fill(p engine.Param, r sharding.Region, dst []byte) error {
	if m.source != nil {
		return m.source.Read(p, r, dst)
	}
	return m.Init(p, r, m.seed, dst)
}

// loaded is called when weights were read. Those of which a file was read to the last byte are compared with the checksum of
// their store.
func (m *model) loaded() error {
	if m.source == nil {
		return nil
	}
	m.source.Set().Release()
	if _, err := m.source.Set().Check(); err != nil {
		return fmt.Errorf("--model-id: %w", err)
	}
	return nil
}

// countParameters counts the elements of the trained and the frozen parameters.
func countParameters(params []engine.Param) (trained, frozen int) {
	for _, p := range params {
		n := 1
		for _, d := range p.Dims {
			n *= d
		}
		if p.Trainable {
			trained += n
		} else {
			frozen += n
		}
	}
	return trained, frozen
}
