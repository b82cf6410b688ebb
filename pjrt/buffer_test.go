package pjrt_test

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"weft/pjrt"
)

// hostTypes are those that go to a device and back.
var hostTypes = []pjrt.DType{pjrt.Bool, pjrt.Int8, pjrt.Int16, pjrt.Int32, pjrt.Int64, pjrt.Uint8, pjrt.Uint16, pjrt.Uint32, pjrt.Uint64,
	pjrt.Float16, pjrt.Float32, pjrt.Float64, pjrt.BFloat16, pjrt.Complex64, pjrt.Complex128, pjrt.Float8E5M2, pjrt.Float8E4M3FN}

// randomBytes are those of an array of any bits that its dtype may have.
func randomBytes(t *testing.T, random *rand.ChaCha8, dt pjrt.DType, dims []int) []byte {
	t.Helper()
	n, err := pjrt.ByteSize(dt, dims)
	require.NoError(t, err)
	raw := make([]byte, n)
	_, _ = random.Read(raw)
	if dt == pjrt.Bool {
		for i := range raw {
			raw[i] &= 1
		}
	}
	return raw
}

func TestBufferRoundTrip(t *testing.T) {
	shapes := [][]int{nil, {5}, {0}, {2, 3}, {3, 0, 2}, {2, 3, 4}, {1, 2, 3, 4}}
	eachCPU(t, 2, func(t *testing.T, c *pjrt.Client) {
		random := rand.NewChaCha8([32]byte{7})
		for _, dt := range hostTypes {
			for _, dims := range shapes {
				raw := randomBytes(t, random, dt, dims)
				want := bytes.Clone(raw)
				b := put(t, c, raw, dt, dims, 1)
				clear(raw) // the caller may reuse its memory at once
				require.Equal(t, dt, b.DType())
				require.Len(t, b.Dims(), len(dims))
				require.Same(t, c.Devices()[1], b.Device())
				require.Equal(t, want, read(t, b), "%s%v", dt, dims)
				require.NoError(t, b.Destroy())
			}
		}
	})
}

// A bf16 array keeps its bits, and the arithmetic is that of bf16: 1 + 2^-8 rounds to 1, 1 + 2^-7 does not.
func TestBFloat16(t *testing.T) {
	const program = `module @add { func.func public @main(%a: tensor<2xbf16>, %b: tensor<2xbf16>) -> tensor<2xbf16> {
    %c = stablehlo.add %a, %b : tensor<2xbf16>
    return %c : tensor<2xbf16> } }`
	eachCPU(t, 1, func(t *testing.T, c *pjrt.Client) {
		l := compile(t, c, program, pjrt.CompileOptions{})
		a := put(t, c, []byte{0x80, 0x3f, 0x80, 0x3f}, pjrt.BFloat16, []int{2}, 0) // 1, 1
		b := put(t, c, []byte{0x80, 0x3b, 0x00, 0x3c}, pjrt.BFloat16, []int{2}, 0) // 2^-8, 2^-7
		outs := run(t, l, [][]*pjrt.Buffer{{a, b}}, pjrt.ExecuteOptions{})
		require.Equal(t, pjrt.BFloat16, outs[0][0].DType())
		require.Equal(t, []byte{0x80, 0x3f, 0x81, 0x3f}, read(t, outs[0][0]))
		destroyAll(t, append(outs, []*pjrt.Buffer{a, b}))
	})
}

// Whatever layout the compiler gives an output, the host gets it row-major.
func TestToHostIsRowMajor(t *testing.T) {
	const program = `module @t { func.func public @main(%a: tensor<2x3xf16>) -> tensor<3x2xf16> {
    %b = stablehlo.transpose %a, dims = [1, 0] : (tensor<2x3xf16>) -> tensor<3x2xf16>
    return %b : tensor<3x2xf16> } }`
	eachCPU(t, 1, func(t *testing.T, c *pjrt.Client) {
		var raw, want []byte
		half := func(v int) []byte {
			bits := float16.Fromfloat32(float32(v)).Bits()
			return []byte{byte(bits), byte(bits >> 8)}
		}
		for i := range 6 {
			raw = append(raw, half(i)...)
		}
		for _, v := range []int{0, 3, 1, 4, 2, 5} {
			want = append(want, half(v)...)
		}
		a := put(t, c, raw, pjrt.Float16, []int{2, 3}, 0)
		outs := run(t, compile(t, c, program, pjrt.CompileOptions{}), [][]*pjrt.Buffer{{a}}, pjrt.ExecuteOptions{})
		require.Equal(t, []int{3, 2}, outs[0][0].Dims())
		require.Equal(t, want, read(t, outs[0][0]))
		destroyAll(t, append(outs, []*pjrt.Buffer{a}))
	})
}

// The binding keeps the memory of running transfers, also when the caller keeps neither data nor event.
func TestAsyncTransfersKeepTheirMemory(t *testing.T) {
	eachCPU(t, 1, func(t *testing.T, c *pjrt.Client) {
		const n = 1 << 20
		var buffers []*pjrt.Buffer
		var events []*pjrt.Event
		for i := range 8 {
			raw := bytes.Repeat([]byte{byte(i + 1)}, n)
			b, e, err := c.BufferFromHostAsync(raw, pjrt.Uint8, []int{n}, c.Devices()[0])
			require.NoError(t, err)
			buffers, events = append(buffers, b), append(events, e)
		}
		runtime.GC()
		_ = bytes.Repeat([]byte{0xff}, 8*n) // would land in memory that was let go
		require.NoError(t, pjrt.AwaitAll(events))
		var dsts [][]byte
		events = nil
		for _, b := range buffers {
			dst := make([]byte, n)
			e, err := b.ToHostAsync(dst)
			require.NoError(t, err)
			dsts, events = append(dsts, dst), append(events, e)
		}
		for i, e := range events {
			require.NoError(t, e.Await())
			require.NoError(t, e.Await(), "a second Await answers the same")
			ready, err := e.IsReady()
			require.NoError(t, err)
			require.True(t, ready)
			require.NoError(t, e.Destroy())
			require.NoError(t, e.Destroy())
			require.ErrorContains(t, e.Await(), "destroyed")
			require.Equal(t, bytes.Repeat([]byte{byte(i + 1)}, n), dsts[i])
		}
		destroyAll(t, [][]*pjrt.Buffer{buffers})
	})
}

// An event that is destroyed early is awaited first: its transfer writes into the caller's memory.
func TestDestroyOfARunningTransferWaits(t *testing.T) {
	eachCPU(t, 1, func(t *testing.T, c *pjrt.Client) {
		want := bytes.Repeat([]byte{9}, 1<<22)
		b := put(t, c, want, pjrt.Uint8, []int{1 << 22}, 0)
		dst := make([]byte, len(want))
		e, err := b.ToHostAsync(dst)
		require.NoError(t, err)
		require.NoError(t, e.Destroy())
		require.Equal(t, want, dst)
		require.NoError(t, b.Destroy())
	})
}

func TestBufferState(t *testing.T) {
	eachCPU(t, 2, func(t *testing.T, c *pjrt.Client) {
		b := put(t, c, floats(1, 2, 3), pjrt.Float32, []int{3}, 0)
		size, err := b.OnDeviceSize()
		require.NoError(t, err)
		require.Equal(t, int64(12), size)
		ready, err := b.ReadyEvent()
		require.NoError(t, err)
		require.NoError(t, pjrt.AwaitAll([]*pjrt.Event{ready, nil}))
		other, err := b.CopyToDevice(c.Devices()[1])
		require.NoError(t, err)
		require.Same(t, c.Devices()[1], other.Device())
		require.False(t, b.IsDeleted())
		require.NoError(t, b.Destroy())
		require.NoError(t, b.Destroy())
		require.True(t, b.IsDeleted())
		require.Equal(t, []float32{1, 2, 3}, readFloats(t, other))
		require.NoError(t, other.Destroy())
		for _, use := range []func() error{
			func() error { return b.ToHost(make([]byte, 12)) },
			func() error { _, err := b.ReadyEvent(); return err },
			func() error { _, err := b.OnDeviceSize(); return err },
			func() error { _, err := b.CopyToDevice(c.Devices()[1]); return err },
		} {
			require.ErrorContains(t, use(), "the buffer was destroyed")
		}
	})
}

func TestBufferErrors(t *testing.T) {
	eachCPU(t, 1, func(t *testing.T, c *pjrt.Client) {
		dev := c.Devices()[0]
		for _, tc := range []struct {
			raw  []byte
			dt   pjrt.DType
			dims []int
			dev  *pjrt.Device
			want string
		}{
			{floats(1, 2), pjrt.Float32, []int{3}, dev, "8 bytes given for f32[3], which takes 12"},
			{nil, pjrt.Float32, nil, dev, "0 bytes given for f32[], which takes 4"},
			{nil, pjrt.Int4, []int{2}, dev, "elements of type i4 are not transferred"},
			{floats(1), pjrt.Float32, []int{-1}, dev, "negative dimension"},
			{floats(1), pjrt.Float32, []int{1}, nil, "not an addressable device"},
		} {
			_, err := c.BufferFromHost(tc.raw, tc.dt, tc.dims, tc.dev)
			require.ErrorContains(t, err, tc.want)
		}
		b := put(t, c, floats(1, 2), pjrt.Float32, []int{2}, 0)
		require.ErrorContains(t, b.ToHost(make([]byte, 4)), "4 bytes of room for f32[2], which takes 8")
		require.NoError(t, b.Destroy())
	})
}
