package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"weft/checkpoint"
	"weft/checkpoint/safetensors"
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
	// metricEvalLoss is that of the evaluation at the checkpoint's step, if there was one.
	metricEvalLoss   = "eval_loss"
	metricSeconds    = "epoch_time_s"
	metricTokensPerS = "tokens_per_s"
)

// saver writes the checkpoints of a run.
type saver struct {
	folder  place
	manager *checkpoint.Manager
	model   *model
	state   *engine.State
	record  json.RawMessage
	metrics *metricsLog
	report  *report
	// tokensPerStep is the number of positions of a global batch.
	tokensPerStep int
	// several tells that other hosts save the rest of the state, first that this one is host 0.
	several, first bool
	// fault, in tests, changes what is saved.
	fault func(*checkpoint.Snapshot)

	async *checkpoint.Async // from the first use on
	// last is the newest checkpoint that this process committed; see newest. figures are those that no line has yet.
	mu      sync.Mutex
	last    checkpoint.Entry
	figures saveFigures
}

// save takes a checkpoint of the position at, which is that of an epoch's end or within one: it returns when the state is
// on the host; writing goes on beside the training. At an epoch's end the checkpoint has a Hugging Face folder, else it is
// the state alone, which is written sooner. The error may be that of the save before it.
func (s *saver) save(ctx context.Context, at trainer.Position, epochEnd bool) error {
	snapshot, err := s.snapshot(at, epochEnd)
	if err != nil {
		return err
	}
	if snapshot.Before, err = s.metrics.beforeSave(); err != nil {
		err = fmt.Errorf("sync the metrics: %w", err)
		s.saves().Refuse(ctx, snapshot, err)
		return err
	}
	return s.saves().Save(ctx, snapshot)
}

func (s *saver) saves() *checkpoint.Async {
	if s.async == nil {
		s.async = checkpoint.NewAsync(s.manager, checkpoint.AsyncOptions{Staged: s.staged, Done: s.saved})
	}
	return s.async
}

// saved is told of every write that ended, by the goroutine that wrote.
func (s *saver) saved(out checkpoint.Saved) {
	if out.Err != nil && !errors.Is(out.Err, checkpoint.ErrPrune) {
		return // failed or finish return it
	}
	if out.Err != nil {
		s.report.Log.Warn(OneLine(out.Err))
	}
	s.mu.Lock()
	s.last = out.Entry
	s.figures.writes = append(s.figures.writes, out.Stats.Write.Seconds())
	s.mu.Unlock()
	s.report.printf("Checkpoint successfully created at: %s\n%s", s.folder.of(out.Entry), saveLine(out.Stats))
}

// staged is told of every save that training waits for no more.
func (s *saver) staged(stats checkpoint.AsyncStats) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.figures.staged = &stats
}

// stepLine is the line of a step, with what is known of the saves since the line before.
func (s *saver) stepLine(r trainer.StepRecord) stepLine {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.figures.line(r)
}

// saveLine shows the figures of one save.
func saveLine(s checkpoint.AsyncStats) string {
	line := fmt.Sprintf("%-9s %s | training waited %.2fs | written in %.2fs, %s/s | host memory %s of %s", "save", size(int(s.WrittenBytes)),
		s.Stall.Seconds(), s.Write.Seconds(), size(int(s.BytesPerSecond())), size(int(s.PeakBytes)), size(int(s.LimitBytes)))
	if s.Tries > 1 {
		line += fmt.Sprintf(" | at try %d", s.Tries)
	}
	return line
}

// newest is the newest checkpoint that this process committed.
func (s *saver) newest() checkpoint.Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// failed returns, without waiting, the error of a save that was given up. The loop asks after every step.
func (s *saver) failed() error {
	if s.async == nil {
		return nil
	}
	return s.async.Err()
}

// finish waits until everything that save was given is written, or given up: then the error is that of the save. Every
// way out of the run calls it before the manager is closed; a cancelled context abandons what is not committed.
func (s *saver) finish(ctx context.Context) error {
	if s.async == nil {
		return nil
	}
	// The exports have read tensors of the source that the devices did not need.
	return errors.Join(s.async.Close(ctx), s.model.loaded())
}

// fits reports, before the first step, that there is no room for a checkpoint: hours of training would end without one. It
// takes the host memory for saving, too.
func (s *saver) fits(at trainer.Position) error {
	snapshot, err := s.snapshot(at, true)
	if err != nil {
		return err
	}
	if err := s.manager.CheckSpace(snapshot); err != nil {
		return err
	}
	return s.saves().Prepare(snapshot)
}

func (s *saver) snapshot(at trainer.Position, epochEnd bool) (*checkpoint.Snapshot, error) {
	position, metrics := at, map[string]float64{metricPartialLoss: at.Loss()}
	if epochEnd {
		position = at.Next()
		metrics = map[string]float64{
			metricLoss: at.Loss(), metricSeconds: at.Seconds,
			metricTokensPerS: float64(s.tokensPerStep*at.StepInEpoch) / at.Seconds,
		}
	}
	if at.Evaluated > 0 && at.Evaluated == at.Step {
		metrics[metricEvalLoss] = at.EvalLoss
	}
	data, err := json.Marshal(position)
	if err != nil {
		return nil, err
	}
	snapshot := &checkpoint.Snapshot{
		Step: at.Step, Epoch: position.Epoch, Metrics: metrics, Data: data, Config: s.record,
		Versions: map[string]string{"weft": Version()}, State: stateTensors(s.state),
	}
	switch {
	case epochEnd && !s.several:
		snapshot.Model = s.modelFolder()
	case epochEnd && s.first:
		snapshot.Model = s.sharedFolder()
	}
	if s.fault != nil {
		s.fault(snapshot)
	}
	return snapshot, nil
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

// modelFolder describes the Hugging Face folder: the tensors with the names and dtypes of the source. Trained ones are made
// of the state's slices. Frozen ones come from the source, or, where it has no such bytes, from the devices, on which
// nothing changes them.
func (s *saver) modelFolder() *checkpoint.ModelFolder {
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
			piece, offset, ok := pieceOf(t, shard.Region)
			if !ok {
				continue
			}
			out := checkpoint.Shard{Start: piece.Start, Size: piece.Size}
			if entry.Param.Trainable {
				out.Part = &checkpoint.Part{Tensor: entry.Name, Shard: i, Offset: int64(offset)}
			} else {
				host.expect(t.Param.Name, i)
				out.Fetch = func(dst []byte) error { return host.fetch(t, entry, i, shard, piece, offset, dst) }
			}
			tensor.Shards = append(tensor.Shards, out)
		}
		folder.Tensors = append(folder.Tensors, tensor)
	}
	return folder
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

// untouchedBlock bounds, in bytes, what of an untouched tensor is on the host at once.
const untouchedBlock = 64 << 20

// untouched is a tensor copied from the source, some rows at a time.
func (s *saver) untouched(t hf.Tensor) checkpoint.Tensor {
	out := checkpoint.Tensor{Name: t.Name, DType: t.DType, Shape: t.Shape}
	for _, r := range rowBlocks(t.Shape, t.DType.Size(), untouchedBlock) {
		out.Shards = append(out.Shards, checkpoint.Shard{Start: r.Start, Size: r.Size, Fetch: func(dst []byte) error {
			return s.model.source.Set().ReadRegion(t.Name, r.Start, r.Size, dst)
		}})
	}
	return out
}

// rowBlocks cuts a tensor along its first dimension into regions of at most limit bytes, but of one row at least.
func rowBlocks(shape []int, elem, limit int) []sharding.Region {
	whole := sharding.Region{Start: make([]int, len(shape)), Size: shape}
	n := whole.Elements() * elem
	if len(shape) == 0 || n <= limit {
		return []sharding.Region{whole}
	}
	rows := max(1, limit/(n/shape[0]))
	var out []sharding.Region
	for at := 0; at < shape[0]; at += rows {
		r := sharding.Region{Start: make([]int, len(shape)), Size: slices.Clone(shape)}
		r.Start[0], r.Size[0] = at, min(rows, shape[0]-at)
		out = append(out, r)
	}
	return out
}

// pieceOf is the part of one tensor that a shard of its parameter holds, and where in the shard it begins, in elements; ok
// is false when it holds none of it.
func pieceOf(t hf.Tensor, shard sharding.Region) (piece sharding.Region, offset int, ok bool) {
	if len(t.Param.Sources) == 1 {
		return shard, 0, true
	}
	piece = sharding.Region{Start: shard.Start[1:], Size: shard.Size[1:]}
	at := t.Index - shard.Start[0]
	return piece, at * piece.Elements(), at >= 0 && at < shard.Size[0]
}

// shardCache holds the shards of a frozen stacked parameter on the host from the first of its tensors that is written to
// the last, so that each is read from its device once in a write.
type shardCache struct {
	mu   sync.Mutex
	held map[shardKey]*heldShard
}

type shardKey struct {
	param string
	shard int
}

type heldShard struct {
	bytes []byte
	// uses is how many tensors need it, left how many still do in this write.
	uses, left int
}

func newShardCache() *shardCache { return &shardCache{held: map[shardKey]*heldShard{}} }

// expect announces one fetch.
func (c *shardCache) expect(param string, shard int) {
	key := shardKey{param, shard}
	if c.held[key] == nil {
		c.held[key] = &heldShard{}
	}
	c.held[key].uses++
	c.held[key].left++
}

// fetch writes one tensor's part of a shard, which begins at offset, in the tensor's dtype.
func (c *shardCache) fetch(t hf.Tensor, e engine.Entry, index int, shard engine.Shard, piece sharding.Region, offset int, dst []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.held[shardKey{e.Param.Name, index}]
	size := e.Array.DType.Size()
	if h.bytes == nil {
		h.bytes = make([]byte, shard.Region.Elements()*size)
		if err := shard.Read(h.bytes); err != nil {
			h.bytes = nil
			return fmt.Errorf("read a shard of %s from its device: %w", e.Name, err)
		}
	}
	src := h.bytes[offset*size : (offset+piece.Elements())*size]
	if h.left--; h.left <= 0 {
		// A write that was tried again counted some of them twice: then the shard goes early and is read once more.
		h.bytes, h.left = nil, h.uses
	}
	if err := safetensors.Convert(dst, t.DType, src, fileDTypes[e.Array.DType]); err != nil {
		return fmt.Errorf("export %s: %w", t.Name, err)
	}
	return nil
}
