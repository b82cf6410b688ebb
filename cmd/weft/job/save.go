package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"weft/checkpoint"
	"weft/engine"
	"weft/engine/sharding"
	"weft/engine/trainer"
	"weft/models/hf"
)

// Metrics of a checkpoint.
const (
	metricLoss = "loss" // of a whole epoch; what --keep-by loss ranks
	// metricPartialLoss is that of an epoch that is not done: it is not comparable, and ranks last.
	metricPartialLoss = "partial_loss"
	metricSeconds     = "epoch_time_s"
	metricTokensPerS  = "tokens_per_s"
)

// saver writes the checkpoints of a run.
type saver struct {
	manager *checkpoint.Manager
	model   *model
	state   *engine.State
	record  json.RawMessage
	metrics *metricsLog
	report  *report
	// tokensPerStep is the number of positions of a global batch.
	tokensPerStep int
	// last is the newest checkpoint that this process wrote.
	last checkpoint.Entry
}

// save writes a checkpoint of the position at, which is that of an epoch's end or within one.
func (s *saver) save(ctx context.Context, at trainer.Position, epochEnd bool) error {
	snapshot, err := s.snapshot(at, epochEnd)
	if err != nil {
		return err
	}
	if err := s.metrics.sync(); err != nil {
		return fmt.Errorf("sync the metrics: %w", err)
	}
	entry, err := s.manager.Save(ctx, snapshot)
	if err != nil && !errors.Is(err, checkpoint.ErrPrune) {
		return err
	}
	if err != nil {
		s.report.Log.Warn(oneLineError(err))
	}
	s.last = entry
	s.report.printf("Checkpoint successfully created at: %s", entry.Dir)
	return nil
}

// failed returns, without waiting, the error of a save that was given up. The loop asks after every step.
func (s *saver) failed() error { return nil }

// finish waits until everything that save was given is written, or given up: then the error is that of the save. Every
// way out of the run calls it before the manager is closed; a cancelled context abandons what is not committed.
func (s *saver) finish(ctx context.Context) error { return ctx.Err() }

// fits reports, before the first step, that there is no room for a checkpoint: hours of training would end without one.
func (s *saver) fits(at trainer.Position) error {
	snapshot, err := s.snapshot(at, false)
	if err != nil {
		return err
	}
	return s.manager.CheckSpace(snapshot)
}

// next is where a run continues after the position of an epoch's end.
func next(at trainer.Position) trainer.Position {
	return trainer.Position{Epoch: at.Epoch + 1, Step: at.Step}
}

func (s *saver) snapshot(at trainer.Position, epochEnd bool) (*checkpoint.Snapshot, error) {
	position, metrics := at, map[string]float64{metricPartialLoss: at.Loss()}
	if epochEnd {
		position = next(at)
		metrics = map[string]float64{
			metricLoss: at.Loss(), metricSeconds: at.Seconds,
			metricTokensPerS: float64(s.tokensPerStep*at.StepInEpoch) / at.Seconds,
		}
	}
	data, err := json.Marshal(position)
	if err != nil {
		return nil, err
	}
	folder, err := s.modelFolder()
	if err != nil {
		return nil, err
	}
	return &checkpoint.Snapshot{
		Step: at.Step, Epoch: position.Epoch, Metrics: metrics, Data: data, Config: s.record,
		Versions: map[string]string{"weft": weftVersion()}, State: stateTensors(s.state), Model: folder,
	}, nil
}

// stateTensors are the trained parameters and their slots. Frozen parameters are those of the model's source.
func stateTensors(state *engine.State) []checkpoint.Tensor {
	var out []checkpoint.Tensor
	for _, e := range state.Entries() {
		if !e.Param.Trainable {
			continue
		}
		t := checkpoint.Tensor{Name: e.Name, DType: fileDTypes[e.Array.DType], Shape: e.Array.Dims}
		for _, shard := range e.Array.OwnedShards() {
			t.Shards = append(t.Shards, checkpoint.Shard{Start: shard.Region.Start, Size: shard.Region.Size, Fetch: shard.Read})
		}
		out = append(out, t)
	}
	return out
}

// modelFolder describes the Hugging Face folder: the tensors with the names and dtypes of the source.
func (s *saver) modelFolder() (*checkpoint.ModelFolder, error) {
	arrays := map[string]engine.Entry{}
	for _, e := range s.state.Entries() {
		if e.Slot == "" {
			arrays[e.Param.Name] = e
		}
	}
	folder := &checkpoint.ModelFolder{Files: s.model.files.files}
	host := newShardCache()
	for _, t := range byParam(s.model.exported) {
		if s.asItCame(t) {
			folder.Tensors = append(folder.Tensors, s.untouched(t))
			continue
		}
		entry := arrays[t.Param.Name]
		tensor := checkpoint.Tensor{Name: t.Name, DType: t.DType, Shape: t.Shape}
		for i, shard := range entry.Array.OwnedShards() {
			piece, ok := pieceOf(t, shard.Region)
			if !ok {
				continue
			}
			host.expect(t.Param.Name, i)
			tensor.Shards = append(tensor.Shards, checkpoint.Shard{
				Start: piece.Start, Size: piece.Size,
				Fetch: func(dst []byte) error { return host.fetch(t, entry, i, shard, piece, dst) },
			})
		}
		folder.Tensors = append(folder.Tensors, tensor)
	}
	return folder, nil
}

// byParam orders tensors so that those stacked in one parameter follow each other: the host then holds the shards of one
// parameter at a time.
func byParam(tensors []hf.Tensor) []hf.Tensor {
	first := map[string]int{}
	place := func(t hf.Tensor) int { return first[t.Name] }
	for i, t := range tensors {
		key := t.Name
		if t.Param != nil {
			key = "param " + t.Param.Name
		}
		if _, seen := first[key]; !seen {
			first[key] = i
		}
		first[t.Name] = first[key]
	}
	return slices.SortedStableFunc(slices.Values(tensors), func(a, b hf.Tensor) int { return place(a) - place(b) })
}

// asItCame tells whether a tensor is to have the bytes of the source: one that the model does not know, or a frozen one
// in the source's dtype, which the devices may hold in another.
func (s *saver) asItCame(t hf.Tensor) bool {
	if t.Param == nil {
		return true
	}
	if t.Param.Trainable || s.model.source == nil {
		return false
	}
	info, ok := s.model.source.Set().Lookup(t.Name)
	return ok && info.DType == t.DType
}

// untouched is a tensor copied from the source.
func (s *saver) untouched(t hf.Tensor) checkpoint.Tensor {
	zero := make([]int, len(t.Shape))
	return checkpoint.Tensor{Name: t.Name, DType: t.DType, Shape: t.Shape, Shards: []checkpoint.Shard{{
		Start: zero, Size: t.Shape,
		Fetch: func(dst []byte) error { return s.model.source.Set().ReadRegion(t.Name, zero, t.Shape, dst) },
	}}}
}

// pieceOf is the part of one tensor that a shard of its parameter holds; ok is false when it holds none of it.
func pieceOf(t hf.Tensor, shard sharding.Region) (piece sharding.Region, ok bool) {
	if len(t.Param.Sources) == 1 {
		return shard, true
	}
	piece = sharding.Region{Start: shard.Start[1:], Size: shard.Size[1:]}
	return piece, t.Index >= shard.Start[0] && t.Index < shard.Start[0]+shard.Size[0]
}

// shardCache holds the shards of a stacked parameter on the host from the first of its tensors that is written to the
// last, so that each is read from its device once.
type shardCache struct {
	held map[shardKey]*heldShard
}

type shardKey struct {
	param string
	shard int
}

type heldShard struct {
	bytes []byte
	// uses is how many tensors still need it.
	uses int
}

func newShardCache() *shardCache { return &shardCache{held: map[shardKey]*heldShard{}} }

// expect announces one fetch.
func (c *shardCache) expect(param string, shard int) {
	key := shardKey{param, shard}
	if c.held[key] == nil {
		c.held[key] = &heldShard{}
	}
	c.held[key].uses++
}

// fetch writes one tensor's part of a shard in the tensor's dtype.
func (c *shardCache) fetch(t hf.Tensor, e engine.Entry, index int, shard engine.Shard, piece sharding.Region, dst []byte) error {
	h := c.held[shardKey{e.Param.Name, index}]
	if h.bytes == nil {
		h.bytes = make([]byte, shard.Region.Elements()*e.Array.DType.Size())
		if err := shard.Read(h.bytes); err != nil {
			return fmt.Errorf("read a shard of %s from its device: %w", e.Name, err)
		}
	}
	each := piece.Elements() * e.Array.DType.Size()
	from := 0
	if len(t.Param.Sources) > 1 {
		from = (t.Index - shard.Region.Start[0]) * each
	}
	src := h.bytes[from : from+each]
	if h.uses--; h.uses == 0 {
		h.bytes = nil
	}
	have := fileDTypes[e.Array.DType]
	if have == t.DType {
		copy(dst, src)
		return nil
	}
	if err := hf.Convert(dst, t.DType, src, have); err != nil {
		return fmt.Errorf("export %s: %w", t.Name, err)
	}
	return nil
}
