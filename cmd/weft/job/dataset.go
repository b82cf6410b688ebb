package job

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"

	"weft/checkpoint/storage"
	"weft/data"
	"weft/data/tokenizer"
	"weft/engine"
	"weft/models/arch"
)

// prefetch is how many batches are made ahead of the step that runs.
const prefetch = 2

// openDataset tokenises the records of the run.
func openDataset(c *Config, tok *tokenizer.Tokenizer, info arch.Info) (*data.Dataset, error) {
	if err := c.checkLength(info); err != nil {
		return nil, err
	}
	o := c.dataOptions(info.VocabSize)
	var ds *data.Dataset
	var err error
	if c.Demo {
		ds, err = openDemoDataset(tok, o)
	} else {
		ds, err = openRecords(c.Dataset, tok, o)
	}
	switch {
	case err != nil && tok == nil && strings.Contains(err.Error(), "need a tokenizer"):
		return nil, fmt.Errorf("--model-id %s has no tokenizer.json, which the records of %s need: give one with --tokenizer FILE", c.ModelID, c.Dataset)
	case err != nil && tok != nil && tok.VocabSize() > info.VocabSize && strings.Contains(err.Error(), "outside the vocabulary"):
		return nil, fmt.Errorf("%w: the tokenizer has %d tokens, the model %d; give the tokenizer that belongs to the model", err, tok.VocabSize(), info.VocabSize)
	}
	return ds, err
}

// openRecords reads the records of a path or a gs:// URL. Bytes that changed on their way are known at the end only: then they
// are transferred once more.
func openRecords(url string, tok *tokenizer.Tokenizer, o data.Options) (ds *data.Dataset, err error) {
	if err := storage.Check(url); err != nil {
		return nil, fmt.Errorf("dataset: %w", err)
	}
	if !storage.IsRemote(url) {
		return data.Open(url, tok, o)
	}
	for range 2 {
		if ds, err = data.OpenStore(remoteFiles{}, url, tok, o); !errors.Is(err, storage.ErrChecksum) {
			break
		}
	}
	return ds, err
}

// remoteFiles is the data.Store of Cloud Storage.
type remoteFiles struct{}

// Open implements data.Store.
func (remoteFiles) Open(url string) (io.ReadCloser, error) {
	return storage.Stream(context.Background(), url)
}

func (c *Config) dataOptions(vocab int) data.Options {
	return data.Options{
		Split: c.DatasetSplit, MaxSeqLen: c.MaxSeqLen, LossOn: c.LossOn, VocabSize: vocab,
		// A shell makes a line break in an argument hard to write.
		Template: strings.ReplaceAll(c.Template, `\n`, "\n"),
	}
}

// openLoader cuts the data set into the batches of this process.
func openLoader(c *Config, ds *data.Dataset, pad int32, globalBatch int, rows []engine.RowRange) (*data.Loader, error) {
	if c.DropLast && ds.Len() < globalBatch {
		return nil, fmt.Errorf("the split %s has %d rows, fewer than the global batch of %d (%d a device × %d devices), and --drop-last leaves no step: lower --batch-size-per-device or --devices, take more rows, or add --no-drop-last",
			c.DatasetSplit, ds.Len(), globalBatch, c.BatchSizePerDevice, globalBatch/c.BatchSizePerDevice)
	}
	config := data.LoaderConfig{
		GlobalBatch: globalBatch, SeqLen: c.MaxSeqLen, PadID: pad, Seed: uint64(c.Seed),
		Shuffle: c.Shuffle, DropLast: c.DropLast, Prefetch: prefetch,
	}
	for _, r := range rows {
		config.Rows = append(config.Rows, data.RowRange{Start: r.Start, End: r.End})
	}
	return data.NewLoader(ds, config)
}

// batches makes a loader the source of a training loop.
type batches struct {
	*data.Loader
	rows []engine.RowRange
	// began, where there is one, is the loader of this one epoch: it began in another order.
	began *data.Loader
	epoch int
	// took, if set, is told how long each batch was waited for.
	took func(time.Duration)
}

// Batches yields the batches of an epoch from step first on.
func (b batches) Batches(ctx context.Context, epoch, first int) iter.Seq2[engine.Batch, error] {
	loader := b.Loader
	if b.began != nil && epoch == b.epoch {
		loader = b.began
	}
	return func(yield func(engine.Batch, error) bool) {
		asked := time.Now()
		for batch, err := range loader.Batches(ctx, epoch, first) {
			if err != nil {
				yield(engine.Batch{}, err)
				return
			}
			if b.took != nil {
				b.took(time.Since(asked))
			}
			if !yield(engine.Batch{InputIDs: batch.InputIDs, Labels: batch.Labels, Mask: batch.Mask, Rows: b.rows}, nil) {
				return
			}
			asked = time.Now()
		}
	}
}

// padID is the id that fills rows: its value is masked everywhere.
func padID(tok *tokenizer.Tokenizer, info arch.Info) int32 {
	if tok != nil {
		if id, ok := tok.PAD(); ok && int(id) < info.VocabSize {
			return id
		}
	}
	return int32(max(info.Pad, 0))
}
