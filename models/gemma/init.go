package gemma

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"strings"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/dtypes/bfloat16"
	"github.com/x448/float16"

	"weft/engine"
	"weft/engine/sharding"
)

// Init writes the random values of one region of a parameter, in its dtype, as transformers initialises the model:
// matrices and embeddings from a normal distribution of standard deviation initializer_range (the padding row of an
// embedding is zero), norms at rest (weight 0 where the norm scales by 1+w, else 1), layer scalars 1. A value depends
// on the seed, the checkpoint's name of the tensor and the position in it, not on the region or the stacking.
func (m *Model) Init(p engine.Param, r sharding.Region, seed uint64, dst []byte) error {
	if want := r.Elements() * p.DType.Size(); len(dst) != want || len(r.Size) != len(p.Dims) {
		return fmt.Errorf("initialise %s: %d bytes for a region of %v of %v, which has %d", p.Name, len(dst), r.Size, p.Dims, want)
	}
	put, err := putter(p.DType)
	if err != nil {
		return fmt.Errorf("initialise %s: %w", p.Name, err)
	}
	start, size, dims, first, count := r.Start, r.Size, p.Dims, 0, 1
	if len(p.Sources) > 1 {
		first, count = start[0], size[0]
		start, size, dims = start[1:], size[1:], dims[1:]
	}
	each := len(dst) / max(count, 1)
	for i := range count {
		m.initTensor(p.Sources[first+i], dims, start, size, seed, dst[i*each:(i+1)*each], put)
	}
	return nil
}

// initTensor fills the region of one tensor of the checkpoint.
func (m *Model) initTensor(source string, dims, start, size []int, seed uint64, dst []byte, put func([]byte, float32) []byte) {
	value := m.initialiser(source, dims, seed)
	index := make([]int, len(dims))
	for len(dst) > 0 {
		at := 0
		for d := range dims {
			at = at*dims[d] + start[d] + index[d]
		}
		dst = put(dst, value(at))
		for d := len(dims) - 1; d >= 0; d-- {
			if index[d]++; index[d] < size[d] {
				break
			}
			index[d] = 0
		}
	}
}

// initialiser gives the value at a row-major position of a tensor.
func (m *Model) initialiser(source string, dims []int, seed uint64) func(at int) float32 {
	switch {
	case strings.HasSuffix(source, layerScalar), len(dims) == 1 && m.cfg.Generation == 4:
		return func(int) float32 { return 1 }
	case len(dims) == 1:
		return func(int) float32 { return 0 }
	}
	h := fnv.New64a()
	h.Write([]byte(source))
	key := mix(seed ^ mix(h.Sum64()))
	padded := source == nameEmbed || source == namePerLayerTable
	return func(at int) float32 {
		if padded && at/dims[1] == m.cfg.Pad {
			return 0
		}
		return float32(m.cfg.InitializerRange * normal(key, uint64(at)))
	}
}

// normal is the at-th number of a stream of independent standard normal numbers (Box and Muller's transform).
func normal(key, at uint64) float64 {
	a, b := mix(key+2*at), mix(key+2*at+1)
	u := (float64(a>>11) + 1) / (1 << 53) // in (0, 1]
	v := float64(b>>11) / (1 << 53)
	return math.Sqrt(-2*math.Log(u)) * math.Cos(2*math.Pi*v)
}

// mix is the output function of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014) after one step of its counter.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// putter writes one value little-endian in a dtype and returns the rest of the buffer.
func putter(d dtypes.DType) (func([]byte, float32) []byte, error) {
	switch d {
	case dtypes.Float32:
		return func(b []byte, v float32) []byte {
			binary.LittleEndian.PutUint32(b, math.Float32bits(v))
			return b[4:]
		}, nil
	case dtypes.BFloat16:
		return func(b []byte, v float32) []byte {
			binary.LittleEndian.PutUint16(b, bfloat16.FromFloat32(v).Bits())
			return b[2:]
		}, nil
	case dtypes.Float16:
		return func(b []byte, v float32) []byte {
			binary.LittleEndian.PutUint16(b, float16.Fromfloat32(v).Bits())
			return b[2:]
		}, nil
	}
	return nil, fmt.Errorf("dtype %s cannot be filled with random values: use Float32, BFloat16 or Float16", d)
}
