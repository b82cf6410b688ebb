package safetensors

import (
	"container/list"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"weft/checkpoint/internal/region"
)

// How a file that is not mapped is read.
const (
	// readSize is the largest single read.
	readSize = 8 << 20
	// blockSize is the unit in which scattered regions are read: bytes between
	// the runs of one region are those of another, which is asked for next.
	blockSize = 4 << 20
	// directRun is the length from which a run is read by itself.
	directRun = 1 << 20
	// parallelReads is the number of reads on their way at once, of a whole Set.
	parallelReads = 16
	// maxBlocks bounds the host memory of the blocks that are kept, of a whole Set.
	maxBlocks = 1 << 30 / blockSize
)

// pool is what the files of a Set share.
type pool struct {
	reads  chan struct{} // one for each read on its way
	mu     sync.Mutex
	blocks map[blockKey]*block
	order  *list.List // of *block, the one used last in front
	keep   int
}

type blockKey struct {
	file   *ranges
	tensor int64 // its offset
	index  int64
}

// block is blockSize bytes of a tensor, or its rest.
type block struct {
	key   blockKey
	place *list.Element
	ready chan struct{}
	data  []byte
	err   error
}

func newPool() *pool {
	return &pool{reads: make(chan struct{}, parallelReads), blocks: map[blockKey]*block{}, order: list.New(), keep: maxBlocks}
}

// drop forgets the blocks that are kept.
func (p *pool) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.blocks)
	p.order.Init()
}

// get returns a block that is read or being read; n is its size.
func (p *pool) get(key blockKey, n int64) *block {
	p.mu.Lock()
	defer p.mu.Unlock()
	if b, ok := p.blocks[key]; ok {
		p.order.MoveToFront(b.place)
		return b
	}
	b := &block{key: key, ready: make(chan struct{})}
	b.place = p.order.PushFront(b)
	p.blocks[key] = b
	if p.order.Len() > p.keep {
		last := p.order.Back()
		p.order.Remove(last)
		delete(p.blocks, last.Value.(*block).key)
	}
	go func() {
		defer close(b.ready)
		data := make([]byte, n)
		if b.err = key.file.read(data, key.tensor+key.index*blockSize); b.err == nil {
			b.data = data
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.blocks[key] == b { // the next one who asks tries again
			p.order.Remove(b.place)
			delete(p.blocks, key)
		}
	}()
	return b
}

// ranges reads one file.
type ranges struct {
	Reader
	path   string
	pool   *pool
	seen   coverage
	closed atomic.Bool
}

// ReadAt makes the header's bytes count as read too.
func (r *ranges) ReadAt(p []byte, off int64) (int, error) {
	n, err := r.Reader.ReadAt(p, off)
	if n == len(p) {
		if err := r.seen.add(r.path, off, p); err != nil {
			return 0, err
		}
	}
	return n, err
}

// read reads up to readSize bytes in one piece.
func (r *ranges) read(p []byte, off int64) error {
	r.pool.reads <- struct{}{}
	defer func() { <-r.pool.reads }()
	return readFullAt(r, p, off, r.path)
}

// readRun reads any number of bytes, in pieces at once.
func (r *ranges) readRun(g *errgroup.Group, p []byte, off int64) {
	for len(p) > 0 {
		n := min(len(p), readSize)
		piece, at := p[:n], off
		g.Go(func() error { return r.read(piece, at) })
		p, off = p[n:], off+int64(n)
	}
}

// readRegion reads a region of a tensor whose bytes begin at the offset base of
// the file. Long runs go to dst directly; short ones over blocks, which the next
// region of the tensor is likely to need too.
func (r *ranges) readRegion(info Info, base int64, start, size []int, dst []byte) error {
	zero := make([]int, len(start))
	newRuns := func() *region.Runs {
		return region.NewRuns(zero, info.Shape, start, size, start, size, info.DType.Size())
	}
	runs := newRuns()
	_, _, n, ok := runs.Next()
	if !ok {
		return nil
	}
	if n < directRun && n < int64(len(dst)) {
		return r.readBlocks(newRuns, info.Size(), base, dst)
	}
	var g errgroup.Group
	g.SetLimit(parallelReads)
	for runs := newRuns(); ; {
		src, d, n, ok := runs.Next()
		if !ok {
			return g.Wait()
		}
		r.readRun(&g, dst[d:d+n], base+src)
	}
}

// readBlocks copies runs out of blocks, of which the next ones are read meanwhile.
func (r *ranges) readBlocks(newRuns func() *region.Runs, total, base int64, dst []byte) error {
	w := window{touched: touchedBlocks(newRuns()), get: func(index int64) *block {
		return r.pool.get(blockKey{r, base, index}, min(blockSize, total-index*blockSize))
	}}
	for runs := newRuns(); ; {
		src, d, n, ok := runs.Next()
		if !ok {
			return nil
		}
		for n > 0 {
			data, err := w.block(src / blockSize)
			if err != nil {
				return err
			}
			k := int64(copy(dst[d:d+n], data[src%blockSize:]))
			src, d, n = src+k, d+k, n-k
		}
	}
}

// touchedBlocks lists the blocks that hold a byte of the runs, in their order.
func touchedBlocks(runs *region.Runs) []int64 {
	var list []int64
	for {
		src, _, n, ok := runs.Next()
		if !ok {
			return list
		}
		first, last := src/blockSize, (src+n-1)/blockSize
		if k := len(list); k > 0 {
			first = max(first, list[k-1]+1)
		}
		for i := first; i <= last; i++ {
			list = append(list, i)
		}
	}
}

// window walks over blocks with some on their way.
type window struct {
	touched []int64 // those still to come; the first ones are ahead
	ahead   []*block
	get     func(index int64) *block
}

// block returns the bytes of a block; the walk does not go back.
func (w *window) block(index int64) ([]byte, error) {
	for w.touched[0] != index {
		w.touched, w.ahead = w.touched[1:], w.ahead[1:]
	}
	for len(w.ahead) < min(parallelReads/2, len(w.touched)) {
		w.ahead = append(w.ahead, w.get(w.touched[len(w.ahead)]))
	}
	b := w.ahead[0]
	<-b.ready
	return b.data, b.err
}
