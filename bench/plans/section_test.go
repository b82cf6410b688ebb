package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"weft/bench/internal/sections"
)

func sample() []*figures {
	fits, not := &figures{name: "small", Topology: "v6e:4x4", Fits: true, WireBytes: 100}, &figures{name: "large", Topology: "v6e:4x4", Error: "out of memory"}
	fits.HBM.Peak, fits.HBM.Limit = 3<<30, 31<<30
	fits.FLOPs.Executed, fits.FLOPs.Useful = 4, 3
	fits.Collectives = append(fits.Collectives, struct {
		Kind  string `json:"kind"`
		DType string `json:"dtype"`
		Count int64  `json:"count"`
		Bytes int64  `json:"bytes"`
		Async bool   `json:"async"`
	}{Bytes: 25, Async: true})
	not.Tried = append(not.Tried, struct {
		Change   string `json:"change"`
		Fits     bool   `json:"fits"`
		Compiled bool   `json:"compiled"`
		Peak     int64  `json:"peak_bytes"`
	}{Change: "--topology v6e:4x8", Fits: true, Compiled: true, Peak: 5 << 30})
	return []*figures{fits, not}
}

func TestSection(t *testing.T) {
	text := section(sample(), "default", "abc")
	require.Contains(t, text, "| small | v6e:4x4 | 0 | 0 | yes | 3.00 | 31.00 |")
	require.Contains(t, text, "| small | v6e:4x4 | 1.333 | 0.0 | 0.00 | 25% |")
	require.Contains(t, text, "large on v6e:4x4 does not fit. Tried `--topology v6e:4x8`: fits, 5.00 GiB.")
	require.Equal(t, 1, strings.Count(text, "| large |"), "no figures of a program that there is not")
}

// Only the section is replaced; without one it is added.
func TestWriteSection(t *testing.T) {
	path := filepath.Join(t.TempDir(), "BENCHMARKS.md")
	one, two := released.Begin+"\none\n"+released.End+"\n", released.Begin+"\ntwo\n"+released.End+"\n"
	require.NoError(t, sections.Write(path, released, one))
	require.NoError(t, os.WriteFile(path, []byte("before\n\n"+one+"after\n"), 0o644))
	require.NoError(t, sections.Write(path, released, two))
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "before\n\n"+two+"after\n", string(raw))
	got, err := sections.Replace("# Title\n", released, one)
	require.NoError(t, err)
	require.Equal(t, "# Title\n\n"+one, got)
	_, err = sections.Replace(released.Begin+"\n", released, one)
	require.ErrorContains(t, err, "put that line back")
}

// The section that compares has a column for each setting, and leaves the other section alone.
func TestComparedSection(t *testing.T) {
	plans := sample()
	plans[1].Setting = "batch=8"
	text := comparedSection(plans, "O0", "abc")
	require.Contains(t, text, "\n\n| | as given | batch=8 |\n|---|---|---|\n| fits | yes | no |\n| peak of a device, GiB | 3.00 | 0.00 |\n")
	require.Contains(t, text, "| executed ÷ useful FLOPs | 1.333 | – |")
	require.Contains(t, text, "| of it asynchronous | 25% | – |")
	got, err := sections.Replace(released.Begin+"\n"+released.End+"\n", compared("O0"), text)
	require.NoError(t, err)
	require.Equal(t, released.Begin+"\n"+released.End+"\n\n"+text, got)
}
