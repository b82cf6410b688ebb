package checkpoint

import (
	"context"
	"encoding/json"
	"maps"
	"math"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"weft/checkpoint/internal/region"
	"weft/checkpoint/safetensors"
	"weft/internal/property"
)

// drawGrid cuts shape into a grid of cells, uneven and partly empty ones too.
func drawGrid(t *rapid.T, shape []int, label string) [][2][]int {
	cells := [][2][]int{{nil, nil}}
	for _, n := range shape {
		cuts := []int{0, n}
		for range rapid.IntRange(0, 3).Draw(t, label+"cuts") {
			cuts = append(cuts, rapid.IntRange(0, n).Draw(t, label+"cut"))
		}
		slices.Sort(cuts)
		var next [][2][]int
		for _, c := range cells {
			for i := range len(cuts) - 1 {
				next = append(next, [2][]int{append(slices.Clone(c[0]), cuts[i]), append(slices.Clone(c[1]), cuts[i+1]-cuts[i])})
			}
		}
		cells = next
	}
	return cells
}

// State written in random grids reads back in other random grids, and the
// model folder holds the same bytes.
func TestReshard(t *testing.T) {
	ctx := context.Background()
	property.Check(t, func(t *rapid.T) {
		m, err := Open(newMemFS(), "/run", Options{})
		require.NoError(t, err)
		data := map[string][]byte{}
		s := &Snapshot{Step: 1, Model: &ModelFolder{MaxShardSize: int64(rapid.IntRange(0, 300).Draw(t, "max shard"))}}
		for i := range rapid.IntRange(1, 4).Draw(t, "tensors") {
			name := string(rune('a' + i))
			dtype := rapid.SampledFrom([]DType{safetensors.U8, safetensors.BF16, safetensors.F32, safetensors.F64}).Draw(t, "dtype")
			shape := rapid.SliceOfN(rapid.IntRange(0, 7), 0, 3).Draw(t, "shape")
			n, err := region.Bytes(shape, dtype.Size())
			require.NoError(t, err)
			data[name] = rapid.SliceOfN(rapid.Byte(), int(n), int(n)).Draw(t, "data")
			s.State = append(s.State, cutTensor(name, dtype, shape, data[name], drawGrid(t, shape, "state")))
			s.Model.Tensors = append(s.Model.Tensors, cutTensor(name, dtype, shape, data[name], drawGrid(t, shape, "model")))
		}
		e, err := m.Save(ctx, s)
		require.NoError(t, err)
		require.NoError(t, m.Verify(e))
		r, err := m.OpenState(e)
		require.NoError(t, err)
		defer r.Close()
		for round := range 2 { // unverified slices, then verified ones
			for _, want := range s.State {
				for _, c := range drawGrid(t, want.Shape, "load") {
					n, _ := region.Bytes(c[1], want.DType.Size())
					got, expect := make([]byte, n), make([]byte, n)
					zero := make([]int, len(want.Shape))
					region.Copy(expect, data[want.Name], zero, want.Shape, c[0], c[1], c[0], c[1], want.DType.Size())
					require.NoError(t, r.ReadRegion(want.Name, c[0], c[1], got))
					require.Equal(t, expect, got, "round %d %s %v", round, want.Name, c)
				}
			}
		}
		checkModel(t, m.fs.(*memFS).tree(), e.ModelPath(), data)
	})
}

// checkModel parses the weights files of a folder and compares their tensors.
func checkModel(t require.TestingT, tree map[string]string, dir string, data map[string][]byte) {
	found := map[string]string{}
	for name, content := range tree {
		if path.Dir(name) != dir || !strings.HasSuffix(name, ".safetensors") {
			continue
		}
		h, err := safetensors.ReadHeader(strings.NewReader(content), int64(len(content)), name)
		require.NoError(t, err)
		require.Equal(t, safetensors.MetadataPT(), h.Metadata)
		for _, i := range h.Tensors {
			require.Equal(t, string(data[i.Name]), content[h.DataStart+i.Start:h.DataStart+i.End])
			found[i.Name] = path.Base(name)
		}
	}
	require.Len(t, found, len(data))
	index, sharded := tree[path.Join(dir, safetensors.IndexFile)]
	if _, single := tree[path.Join(dir, safetensors.SingleFile)]; single {
		require.False(t, sharded)
		return
	}
	var doc struct {
		Metadata  map[string]int64  `json:"metadata"`
		WeightMap map[string]string `json:"weight_map"`
	}
	require.NoError(t, json.Unmarshal([]byte(index), &doc))
	require.Equal(t, found, doc.WeightMap)
	var total int64
	for _, d := range data {
		total += int64(len(d))
	}
	require.Equal(t, total, doc.Metadata["total_size"])
}

// savedOnce is a storage path with one checkpoint.
func savedOnce(t *testing.T) (*memFS, *Manager, Entry) {
	m := newMemFS()
	mgr, err := Open(m, "/run", Options{})
	require.NoError(t, err)
	e, err := mgr.Save(context.Background(), snapshotOf(oldStep, 2))
	require.NoError(t, err)
	return m, mgr, e
}

// readAll reads every state tensor and returns the first error.
func readAll(m *Manager, e Entry) error {
	r, err := m.OpenState(e)
	if err != nil {
		return err
	}
	defer r.Close()
	for _, i := range r.Tensors() {
		n, _ := region.Bytes(i.Shape, i.DType.Size())
		if err := r.ReadRegion(i.Name, make([]int, len(i.Shape)), i.Shape, make([]byte, n)); err != nil {
			return err
		}
	}
	return nil
}

// Every bit of every file: Verify finds it and names the file; reading the
// state finds it in manifest and state files; Latest in the manifest.
func TestEveryBitFlip(t *testing.T) {
	m, mgr, e := savedOnce(t)
	require.NoError(t, readAll(mgr, e))
	flips := 0
	for name := range m.tree() {
		if !strings.HasPrefix(name, e.Dir) {
			continue
		}
		n, err := m.find(name)
		require.NoError(t, err)
		rel := strings.TrimPrefix(name, e.Dir+"/")
		for bit := range 8 * len(n.data) {
			n.data[bit/8] ^= 1 << (bit % 8)
			flips++
			errs := []error{mgr.Verify(e)}
			if rel == ManifestFile || strings.HasPrefix(rel, StateDir) {
				errs = append(errs, readAll(mgr, e))
			}
			if rel == ManifestFile {
				_, ok, err := mgr.Latest()
				require.True(t, ok)
				errs = append(errs, err)
			}
			for _, err := range errs {
				require.Error(t, err, "%s bit %d", rel, bit)
				require.ErrorContains(t, err, rel)
				if rel != ManifestFile {
					var de *DamagedError
					require.ErrorAs(t, err, &de)
					require.Equal(t, rel, de.File)
				}
			}
			n.data[bit/8] ^= 1 << (bit % 8)
		}
	}
	require.NoError(t, mgr.Verify(e))
	t.Logf("%d bits", flips)
}

func TestCutLongerAndMissingFiles(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(m *memFS, file string)
	}{
		{"cut", func(m *memFS, file string) { n, _ := m.find(file); n.data = n.data[:len(n.data)-1] }},
		{"empty", func(m *memFS, file string) { n, _ := m.find(file); n.data = nil }},
		{"longer", func(m *memFS, file string) { n, _ := m.find(file); n.data = append(n.data, 0) }},
		{"missing", func(m *memFS, file string) { d, b, _ := m.parent(file); delete(d.entries, b) }},
	} {
		m, _, e := savedOnce(t)
		for name := range m.tree() {
			rel, ours := strings.CutPrefix(name, e.Dir+"/")
			if !ours || rel == ManifestFile && c.name == "missing" {
				continue
			}
			bad := m.clone()
			mgr, err := Open(bad, "/run", Options{})
			require.NoError(t, err)
			c.change(bad, name)
			_, ok, latestErr := mgr.Latest()
			require.True(t, ok)
			errs := []error{mgr.Verify(e), latestErr}
			if !strings.HasPrefix(rel, ModelDir) {
				_, err := mgr.OpenState(e)
				errs = append(errs, err)
			}
			for _, err := range errs {
				var de *DamagedError
				require.ErrorAs(t, err, &de, "%s %s", rel, c.name)
				require.Equal(t, rel, de.File)
				require.Equal(t, e.Dir, de.Dir)
			}
		}
	}
}

// A file that changes its size between OpenState and reading is found too, and
// so is a failing read; the one is damage, the other is not.
func TestReadFaults(t *testing.T) {
	m, mgr, e := savedOnce(t)
	r, err := mgr.OpenState(e)
	require.NoError(t, err)
	file := r.Manifest().State[0].Slices[0].File
	n, err := m.find(path.Join(e.Dir, file))
	require.NoError(t, err)
	whole := n.data
	n.data = whole[:len(whole)-1]
	require.ErrorIs(t, r.ReadRegion("w", []int{0, 0}, []int{1, 1}, make([]byte, 4)), ErrDamaged)
	n.data = whole
	for i := 1; ; i++ {
		r, err := mgr.OpenState(e)
		require.NoError(t, err)
		m.arm(i, failBefore, syscall.EIO, 0)
		err = r.ReadRegion("w", []int{0, 0}, []int{4, 6}, make([]byte, 96))
		if !m.fired() {
			require.NoError(t, err)
			break
		}
		require.ErrorIs(t, err, syscall.EIO)
		require.NotErrorIs(t, err, ErrDamaged)
		require.NoError(t, r.ReadRegion("w", []int{0, 0}, []int{4, 6}, make([]byte, 96)), "the fault was passing")
	}
	for _, c := range []struct {
		tensor      string
		start, size []int
		dst         int
		say         string
	}{
		{"x", nil, nil, 0, `no tensor "x"`},
		{"w", []int{0, 0}, []int{5, 6}, 120, "outside of shape [4 6]"},
		{"w", []int{0}, []int{5}, 20, "rank"},
		{"w", []int{0, 0}, []int{1, 6}, 20, "24 bytes, the buffer has 20"},
	} {
		err := r.ReadRegion(c.tensor, c.start, c.size, make([]byte, c.dst))
		require.ErrorContains(t, err, c.say)
		require.ErrorContains(t, err, e.Dir)
	}
}

// Only the slices asked for are read, and of a verified one only the bytes.
func TestReadsOnlyWhatIsNeeded(t *testing.T) {
	m := newMemFS()
	mgr, err := Open(m, "/run", Options{})
	require.NoError(t, err)
	shape := []int{4, 1 << 20}
	data := payload("w", 1, 4<<20)
	var cells [][2][]int
	for i := range 4 {
		cells = append(cells, [2][]int{{i, 0}, {1, 1 << 20}})
	}
	e, err := mgr.Save(context.Background(), &Snapshot{Step: 1, State: []Tensor{cutTensor("w", safetensors.U8, shape, data, cells)}})
	require.NoError(t, err)
	r, err := mgr.OpenState(e)
	require.NoError(t, err)
	opened := func() (files []string, reads int) {
		for _, op := range m.trace {
			if f, ok := strings.CutPrefix(op, "open "); ok {
				files = append(files, path.Base(f))
			}
			if strings.HasPrefix(op, "read ") {
				reads++
			}
		}
		m.trace = nil
		return files, reads
	}
	opened()
	dst := make([]byte, 2000)
	require.NoError(t, r.ReadRegion("w", []int{2, 500}, []int{1, 2000}, dst))
	require.Equal(t, data[2<<20+500:2<<20+2500], dst)
	files, reads := opened()
	require.Equal(t, []string{"process-0000-shard-00002.safetensors"}, files)
	require.Equal(t, 2, reads, "the header and the slice")
	require.NoError(t, r.ReadRegion("w", []int{2, 700}, []int{1, 2000}, dst))
	require.Equal(t, data[2<<20+700:2<<20+2700], dst)
	files, reads = opened()
	require.Empty(t, files)
	require.Equal(t, 1, reads)
}

func TestConcurrentReads(t *testing.T) {
	_, mgr, e := savedOnce(t)
	r, err := mgr.OpenState(e)
	require.NoError(t, err)
	want := payload("w", oldStep, 96)
	var wg sync.WaitGroup
	errs := make([]error, 16)
	got := make([][]byte, 16)
	for i := range 16 {
		wg.Go(func() {
			got[i] = make([]byte, 96)
			errs[i] = r.ReadRegion("w", []int{0, 0}, []int{4, 6}, got[i])
		})
	}
	wg.Wait()
	for i := range 16 {
		require.NoError(t, errs[i])
		require.Equal(t, want, got[i])
	}
}

func TestManifest(t *testing.T) {
	m, mgr, e := savedOnce(t)
	r, err := mgr.OpenState(e)
	require.NoError(t, err)
	man := r.Manifest()
	require.Equal(t, oldStep, man.Step)
	require.JSONEq(t, `{"position":1}`, string(man.Data))
	require.JSONEq(t, `{"lr":2e-5}`, string(man.Config))
	require.Equal(t, map[string]string{"weft": "test"}, man.Versions)
	require.Equal(t, Metrics{"loss": 2}, man.Metrics)
	require.Len(t, man.State[0].Slices, 2)
	require.Equal(t, e.Bytes, man.Bytes())
	paths := []string{}
	for _, f := range man.Files {
		paths = append(paths, f.Path)
	}
	slices.Sort(paths)
	require.Equal(t, []string{
		"model/config.json", "model/model-00001-of-00002.safetensors", "model/model-00002-of-00002.safetensors", "model/model.safetensors.index.json",
		"state/process-0000-shard-00000.safetensors", "state/process-0000-shard-00001.safetensors",
	}, paths)
	ours := slices.DeleteFunc(slices.Collect(maps.Keys(m.tree())), func(n string) bool { return !strings.HasPrefix(n, e.Dir) })
	require.Len(t, ours, len(paths)+1, "nothing but the manifest beside them")
}

// manifestWith encodes a manifest that another writer could have made.
func manifestWith(t *testing.T, change func(*Manifest)) []byte {
	m := &Manifest{Sequence: 1, Step: 20, Epoch: 2,
		State: []StateTensor{{Name: "w", DType: safetensors.U8, Shape: []int{4}, Slices: []Slice{{File: "state/a", Start: []int{0}, Size: []int{4}, Offset: 16}}}},
		Files: []FileEntry{{Path: "state/a", Size: 20, HeaderSize: 16}},
	}
	change(m)
	b, err := m.encode()
	require.NoError(t, err)
	return b
}

func TestManifestFaults(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Manifest)
		say    string
	}{
		{"file outside", func(m *Manifest) { m.Files[0].Path = "../../etc/passwd" }, "not allowed"},
		{"absolute file", func(m *Manifest) { m.Files[0].Path = "/etc/passwd" }, "not allowed"},
		{"deep file", func(m *Manifest) { m.Files[0].Path = "a/b/c" }, "not allowed"},
		{"the manifest itself", func(m *Manifest) { m.Files[0].Path = ManifestFile }, "not allowed"},
		{"file twice", func(m *Manifest) { m.Files = append(m.Files, m.Files[0]) }, "twice"},
		{"slice in no file", func(m *Manifest) { m.State[0].Slices[0].File = "state/b" }, "not inside"},
		{"slice in the header", func(m *Manifest) { m.State[0].Slices[0].Offset = 15 }, "not inside"},
		{"slice past the end", func(m *Manifest) { m.State[0].Slices[0].Offset = 17 }, "not inside"},
		{"slices with a hole", func(m *Manifest) { m.State[0].Shape[0] = 5 }, "4 of 5"},
		{"slice of another rank", func(m *Manifest) { m.State[0].Slices[0].Start = nil }, "rank"},
		{"tensor twice", func(m *Manifest) { m.State = append(m.State, m.State[0]) }, "twice"},
		{"dtype", func(m *Manifest) { m.State[0].DType = "F31" }, "dtype"},
	} {
		_, err := decodeManifest("/d", manifestWith(t, c.change))
		require.ErrorIs(t, err, ErrDamaged, c.name)
		require.ErrorContains(t, err, c.say, c.name)
	}
	b := manifestWith(t, func(*Manifest) {})
	_, err := decodeManifest("/d", b)
	require.NoError(t, err)
	newer := strings.Replace(string(b), `"format_version":1`, `"format_version":2`, 1)
	_, err = decodeManifest("/d", []byte(newer))
	require.ErrorIs(t, err, ErrNewerFormat)
	require.ErrorContains(t, err, "/d/manifest.json has format 2, this weft reads up to 1")
	_, err = decodeManifest("/d", []byte(`{"format":"other"}`))
	require.ErrorContains(t, err, "not a manifest of weft")
}

func TestMetricsKeepNaN(t *testing.T) {
	m := newMemFS()
	mgr, err := Open(m, "/run", Options{})
	require.NoError(t, err)
	s := snapshotOf(oldStep, math.NaN())
	s.Metrics["up"], s.Metrics["down"], s.Metrics["third"] = math.Inf(1), math.Inf(-1), 1.0/3
	_, err = mgr.Save(context.Background(), s)
	require.NoError(t, err)
	list, err := mgr.List()
	require.NoError(t, err)
	got := list[0].Metrics
	require.True(t, math.IsNaN(got["loss"]))
	delete(got, "loss")
	require.Equal(t, Metrics{"up": math.Inf(1), "down": math.Inf(-1), "third": 1.0 / 3}, got)
}
