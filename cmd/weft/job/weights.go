package job

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"weft/checkpoint/safetensors"
	"weft/pjrt/plugin"
)

// fingerprint tells this model from another: its configuration, and of each file of its weights the header and the CRC32C of all
// bytes. A change of a file goes unseen with odds of 1 in 4,294,967,296.
func (m *model) fingerprint(ctx context.Context, announce func(bytes int64)) (string, error) {
	parts := [][]byte{m.files.config}
	if m.source == nil {
		return sha256Hex(parts...), nil
	}
	sums := newSumCache()
	files := slices.SortedFunc(slices.Values(m.source.Set().Files()), func(a, b *safetensors.File) int {
		return strings.Compare(filepath.Base(a.Path()), filepath.Base(b.Path()))
	})
	for _, f := range files {
		sum, err := sums.of(ctx, f, announce)
		if err != nil {
			return "", err
		}
		raw, err := json.Marshal([]any{f.Size(), sum, f.Tensors()})
		if err != nil {
			return "", err
		}
		parts = append(parts, raw)
	}
	return sha256Hex(parts...), nil
}

// sumCache keeps the checksums of local files that were read, so that a start need not read them again. An entry holds for a file
// of the same path, device, inode, size, and times of its last changes to the nanosecond; a change that leaves all of these as they
// were is not seen.
type sumCache struct {
	// dir is "" when there is none.
	dir string
	// settle is how long a file must have been as it is: within one tick of the clock its times do not tell a change.
	settle time.Duration
}

// settleTime is far above the tick of any file system's clock (FAT: 2 seconds).
const settleTime = 3 * time.Second

func newSumCache() *sumCache {
	dir, err := plugin.CacheDir()
	if err != nil {
		return &sumCache{}
	}
	return &sumCache{dir: filepath.Join(dir, "weights"), settle: settleTime}
}

// fileSum is an entry.
type fileSum struct {
	File   string `json:"file"`
	CRC32C uint32 `json:"crc32c"`
}

// of is the checksum of a file: a kept one, or that of its bytes. announce, if any, is told before they are read.
func (c *sumCache) of(ctx context.Context, f *safetensors.File, announce func(bytes int64)) (uint32, error) {
	id, changed, local := f.Identity()
	entry := filepath.Join(c.dir, sha256Hex([]byte(id))+".json")
	if local && c.dir != "" {
		var kept fileSum
		if raw, err := os.ReadFile(entry); err == nil && json.Unmarshal(raw, &kept) == nil && kept.File == id {
			return kept.CRC32C, nil
		}
		if announce != nil {
			announce(f.Size())
		}
	}
	began := time.Now()
	sum, err := f.CRC32C(ctx)
	if err != nil {
		return 0, err
	}
	after, _, same := f.Identity()
	if local && same && after == id && c.dir != "" && began.Sub(changed) > c.settle {
		c.keep(entry, fileSum{File: id, CRC32C: sum})
	}
	return sum, nil
}

// keep writes an entry. Without it the file is read again next time, which is no fault.
func (c *sumCache) keep(path string, s fileSum) {
	raw, err := json.Marshal(s)
	if err != nil || os.MkdirAll(c.dir, 0o755) != nil {
		return
	}
	tmp, err := os.CreateTemp(c.dir, ".tmp-*")
	if err != nil {
		return
	}
	_, errWrite := tmp.Write(append(raw, '\n'))
	errClose := tmp.Close()
	if errWrite != nil || errClose != nil || os.Rename(tmp.Name(), path) != nil {
		_ = os.Remove(tmp.Name())
	}
}
