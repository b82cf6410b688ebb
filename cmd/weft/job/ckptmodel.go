package job

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gomlx/compute/dtypes"

	"weft/checkpoint"
	"weft/checkpoint/safetensors"
	"weft/checkpoint/storage"
	"weft/data/tokenizer"
	"weft/engine"
	"weft/engine/nn"
	"weft/engine/sharding"
	"weft/models/arch"
	"weft/models/hf"
)

// ckptModel is a checkpoint as a whole model: its trained tensors are those of the train state, the frozen ones those of
// a folder. All are read as float32.
type ckptModel struct {
	place  *ckptPlace
	entry  checkpoint.Entry
	reader *checkpoint.StateReader
	// record is of the run that wrote the checkpoint.
	record runRecord
	files  *modelFiles
	math   arch.Model
	// source has the names, dtypes and frozen tensors; nil for random weights without a folder.
	source *hf.Source
	// origin says where frozen tensors and companion files come from.
	origin string
	// notes are what the user should know.
	notes []string
	// namesOnly: no weights are opened, only the configuration.
	namesOnly bool
}

// openCkptModel opens a checkpoint as a model. modelID, when given, is the folder of the model that the run began with;
// else the checkpoint's own Hugging Face folder is taken, that of another checkpoint of the run, or the folder that the
// run names. What is not the checkpoint's own must be what the run had.
func openCkptModel(ctx context.Context, p *ckptPlace, e checkpoint.Entry, modelID string) (*ckptModel, error) {
	return (&ckptModel{place: p, entry: e}).open(ctx, modelID)
}

// openCkptNames is openCkptModel without the frozen tensors: it tells how the train state's tensors are called in a
// Hugging Face folder.
func openCkptNames(ctx context.Context, p *ckptPlace, e checkpoint.Entry) (*ckptModel, error) {
	return (&ckptModel{place: p, entry: e, namesOnly: true}).open(ctx, "")
}

func (m *ckptModel) open(ctx context.Context, modelID string) (_ *ckptModel, err error) {
	p, e := m.place, m.entry
	defer func() {
		if err != nil {
			err = errors.Join(err, m.close())
		}
	}()
	if m.reader, err = p.manager.OpenState(e); err != nil {
		return nil, err
	}
	if m.record, err = parseRecord(m.reader.Manifest().Config, p.shown(e)); err != nil {
		return nil, err
	}
	if err := m.openFolder(ctx, modelID); err != nil {
		return nil, err
	}
	return m, m.checkState()
}

// openFolder finds configuration, names and frozen tensors.
func (m *ckptModel) openFolder(ctx context.Context, modelID string) error {
	if modelID != "" {
		return m.openOrigin(ctx, modelID, "--model-id")
	}
	if m.entry.Model {
		return m.openOwn(ctx, m.entry)
	}
	for _, e := range slices.Backward(m.place.entries) {
		if !e.Model || e.Err != nil {
			continue
		}
		manifest, err := m.place.manager.Manifest(e)
		if err != nil {
			continue
		}
		record, err := parseRecord(manifest.Config, e.Dir)
		if err != nil || !m.sameModel(record) {
			continue
		}
		if err := m.openOwn(ctx, e); err == nil || ctx.Err() != nil {
			return err
		}
	}
	return m.openOrigin(ctx, m.record.ModelID, "the run's --model-id")
}

// sameModel tells whether another checkpoint's folder has the frozen tensors and companions of this one.
func (m *ckptModel) sameModel(r runRecord) bool {
	a, b := m.record.Settings, r.Settings
	return a.ModelContent == b.ModelContent && a.TokenizerContent == b.TokenizerContent && a.Freeze == b.Freeze &&
		a.ParamDType == b.ParamDType && a.RandomInit == b.RandomInit && a.Seed == b.Seed
}

// openOwn takes the Hugging Face folder of a checkpoint, all of whose bytes are verified first.
func (m *ckptModel) openOwn(ctx context.Context, e checkpoint.Entry) error {
	if !m.namesOnly {
		if err := m.place.manager.VerifyModel(ctx, e); err != nil {
			return err
		}
	}
	dir := storage.URL(m.place.fsys, e.ModelPath())
	if err := m.load(ctx, dir, false); err != nil {
		return err
	}
	m.origin = dir
	return nil
}

// openOrigin takes the folder that the run began with, or random weights made again; flag is how the user named it.
func (m *ckptModel) openOrigin(ctx context.Context, modelID, flag string) error {
	where := fmt.Sprintf("checkpoint %s was written in the middle of an epoch and holds the train state only; names, frozen tensors and tokenizer come from the model that the run began with, %s %s", m.place.shown(m.entry), flag, modelID)
	if err := m.load(ctx, modelID, m.record.Settings.RandomInit); err != nil {
		return fmt.Errorf("%s: %w; give that model's folder by --model-id", where, err)
	}
	m.origin = m.files.name
	if m.namesOnly {
		return nil
	}
	now, err := (&model{files: m.files, source: m.source}).fingerprint(ctx, nil)
	if err != nil {
		return err
	}
	if was := m.record.Settings.ModelContent; now != was {
		return fmt.Errorf("%s: it is another now: its fingerprint was %.12s, it is %.12s: give the folder of that model by --model-id", where, was, now)
	}
	return m.checkTokenizer()
}

// checkTokenizer leaves the folder's tokenizer out when the run had another one, by --tokenizer.
func (m *ckptModel) checkTokenizer() error {
	raw := m.files.files[tokenizerName]
	if raw == nil && m.record.Settings.TokenizerContent == "" {
		return nil
	}
	if raw != nil {
		tok, err := tokenizer.LoadBytes(raw)
		if err != nil {
			return fmt.Errorf("%s of %s: %w", tokenizerName, m.origin, err)
		}
		if tok.Fingerprint() == m.record.Settings.TokenizerContent {
			return nil
		}
	}
	delete(m.files.files, tokenizerName)
	m.notes = append(m.notes, fmt.Sprintf("the run's --tokenizer is not in %s: %s is left out; copy it beside the weights", m.origin, tokenizerName))
	return nil
}

// load opens configuration and weights.
func (m *ckptModel) load(ctx context.Context, modelID string, random bool) (err error) {
	if modelID == "" {
		m.files, err = demoModelFiles()
	} else {
		m.files, err = readModelFiles(modelID, random || m.namesOnly)
	}
	if err != nil {
		return err
	}
	single, err := sharding.NewMesh(sharding.Axis{Name: "fsdp", Size: 1})
	if err != nil {
		return err
	}
	if m.math, err = m.declare(single); err != nil {
		return err
	}
	if random || m.namesOnly {
		return ctx.Err()
	}
	m.source, err = hf.Load(m.files.dir, m.math)
	return err
}

// declare is the model's mathematics in float32, with the parameters under the names that the train state has.
func (m *ckptModel) declare(mesh sharding.Mesh) (arch.Model, error) {
	s := m.record.Settings
	flags := ModelFlags{Freeze: s.Freeze}
	return m.files.arch.New(arch.Options{
		Policy: nn.Policy{Mesh: mesh, DataAxes: mesh.AxisNames(), Compute: dtypes.Float32},
		Scan:   s.Scan, Remat: arch.RematNone, Freeze: flags.freezePatterns(), FrozenDType: dtypes.Float32,
	})
}

// checkState compares the train state with what the configuration makes of it.
func (m *ckptModel) checkState() error {
	wanted := map[string]bool{}
	for _, p := range m.math.Params() {
		if !p.Trainable {
			continue
		}
		wanted[p.Name] = true
		t, ok := m.reader.Lookup(p.Name)
		if !ok {
			return fmt.Errorf("checkpoint %s has no tensor %s, which the model in %s trains: give the model that the run began with by --model-id", m.place.shown(m.entry), p.Name, m.origin)
		}
		if !slices.Equal(t.Shape, p.Dims) || !safetensors.CanConvert(safetensors.F32, t.DType) {
			return fmt.Errorf("checkpoint %s: tensor %s is %s %v, the model in %s makes it float32 %v: give the model that the run began with by --model-id", m.place.shown(m.entry), p.Name, t.DType, t.Shape, m.origin, p.Dims)
		}
	}
	for _, t := range m.reader.Tensors() {
		if name, _, _ := strings.Cut(t.Name, "/"); !wanted[name] {
			return fmt.Errorf("checkpoint %s: the model in %s does not train tensor %s: give the model that the run began with by --model-id", m.place.shown(m.entry), m.origin, t.Name)
		}
	}
	return nil
}

// read writes a region of a parameter to dst, float32, row-major. It is an engine.ParamFill for parameters of declare.
func (m *ckptModel) read(p engine.Param, r sharding.Region, dst []byte) error {
	switch {
	case p.Trainable:
		return m.reader.ReadRegionAs(p.Name, safetensors.F32, r.Start, r.Size, dst)
	case m.source == nil:
		seed, err := m.record.firstSeed()
		if err != nil {
			return err
		}
		if err := m.math.Init(p, r, uint64(seed), dst); err != nil {
			return err
		}
	default:
		if err := m.source.Read(p, r, dst); err != nil {
			return err
		}
	}
	// The run held frozen tensors in this dtype.
	if d := m.record.Settings.ParamDType; d != DTypeAuto {
		return roundTrip(dst, fileDTypes[deviceDTypes[d]])
	}
	return nil
}

// roundTrip rounds float32 values to what another dtype can hold.
func roundTrip(values []byte, to safetensors.DType) error {
	if to == safetensors.F32 {
		return nil
	}
	narrow := make([]byte, len(values)/4*to.Size())
	if err := safetensors.Convert(narrow, to, values, safetensors.F32); err != nil {
		return err
	}
	return safetensors.Convert(values, safetensors.F32, narrow, to)
}

// tensors lists the Hugging Face folder, with the dtypes that the run's own folders have.
func (m *ckptModel) tensors() []hf.Tensor {
	declared := m.files.arch.Info().DType
	frozen := (&ModelFlags{ParamDType: m.record.Settings.ParamDType}).frozenDType()
	if frozen != dtypes.InvalidDType {
		declared = frozen
	}
	list := hf.Export(m.math, m.source, fileDTypes[declared])
	for i := range list {
		if frozen != dtypes.InvalidDType && list[i].Param != nil {
			list[i].DType = fileDTypes[frozen]
		}
	}
	return byParam(list)
}

// close closes the files.
func (m *ckptModel) close() error {
	var errs []error
	if m.reader != nil {
		errs = append(errs, m.reader.Close())
	}
	if m.source != nil {
		errs = append(errs, m.source.Close())
	}
	return errors.Join(errs...)
}
