package hlo

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
)

// msg is a protobuf message under construction.
type msg []byte

func (m msg) str(num protowire.Number, s string) msg {
	return protowire.AppendString(protowire.AppendTag(m, num, protowire.BytesType), s)
}

func (m msg) num(num protowire.Number, v int64) msg {
	return protowire.AppendVarint(protowire.AppendTag(m, num, protowire.VarintType), uint64(v))
}

func (m msg) sub(num protowire.Number, s msg) msg { return m.str(num, string(s)) }

func (m msg) ints(num protowire.Number, values ...int64) msg {
	var packed []byte
	for _, v := range values {
		packed = protowire.AppendVarint(packed, uint64(v))
	}
	return m.str(num, string(packed))
}

func f32(dims ...int64) msg { return msg{}.num(2, 11).ints(3, dims...) }

// loopModule is an entry that gathers once and runs a loop 5 times, whose body gathers and reduces.
func loopModule(backendConfig string) msg {
	iota2 := msg{}.sub(2, msg{}.num(1, 2).num(2, 2).ints(3, 2, 2).ints(4, 1, 0))
	gather := msg{}.str(1, "ag").str(2, "all-gather").sub(3, f32(8, 4)).num(35, 1).ints(36, 7).sub(87, iota2)
	add := msg{}.num(5, 30).sub(2, msg{}.str(2, "add").sub(3, f32()).num(35, 9))
	reduce := msg{}.str(1, "ar").str(2, "all-reduce-start").sub(3, f32(8, 4)).num(35, 2).ints(38, 30).sub(49, msg{}.ints(1, 0, 1))
	done := msg{}.str(1, "ard").str(2, "all-reduce-done").sub(3, f32(8, 4)).num(35, 3)
	body := msg{}.str(1, "body").num(5, 20).sub(2, gather).sub(2, reduce).sub(2, done)
	loop := msg{}.str(1, "w").str(2, "while").sub(3, msg{}.num(2, 13).sub(4, f32(8, 4)).sub(4, msg{}.num(2, 4))).num(35, 4).ints(38, 20).str(43, backendConfig)
	entry := msg{}.str(1, "main").num(5, 10).sub(2, gather).sub(2, loop)
	return msg{}.str(1, "jit").num(6, 10).sub(3, add).sub(3, body).sub(3, entry)
}

func TestCollectivesCountLoops(t *testing.T) {
	m, err := Parse("hlo", loopModule(`{"known_trip_count":{"n":"5"}}`))
	require.NoError(t, err)
	list, err := m.Collectives()
	require.NoError(t, err)
	require.Equal(t, "6 × all-gather f32[8,4]\n5 × all-reduce f32[8,4]\n", FormatCollectives(list))
	require.Equal(t, [][]int64{{0, 2}, {1, 3}}, m.Computations[2].Instructions[0].Groups)
	loop := m.Computations[2].Instructions[1]
	require.Equal(t, "(f32[8,4], s32[])", loop.Shape.String())
	require.EqualValues(t, 8*4*4+4, loop.Shape.Bytes())
}

func TestEnvelope(t *testing.T) {
	m, err := Parse("hlo_with_config", msg{}.sub(1, loopModule("")).str(2, "config"))
	require.NoError(t, err)
	require.Equal(t, "jit", m.Name)
}

func TestFaultsAreNamed(t *testing.T) {
	_, err := Parse("mlir", nil)
	require.ErrorContains(t, err, `"mlir"`)
	_, err = Parse("hlo", []byte{0x0a, 0x80})
	require.Error(t, err)
	m, err := Parse("hlo", loopModule(""))
	require.NoError(t, err)
	_, err = m.Collectives()
	require.ErrorContains(t, err, "loop w communicates and its trip count is unknown")
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(loopModule("")))
	f.Fuzz(func(t *testing.T, data []byte) {
		if m, err := Parse("hlo", data); err == nil {
			require.NotEmpty(t, m.Computations)
		}
	})
}
