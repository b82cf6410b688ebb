package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFilesAreCurrent runs the generator twice: the same bytes, and those that are embedded.
func TestFilesAreCurrent(t *testing.T) {
	first, err := generate()
	require.NoError(t, err)
	second, err := generate()
	require.NoError(t, err)
	require.Len(t, first, 3)
	for name, content := range first {
		require.True(t, bytes.Equal(content, second[name]), "%s differs between two runs", name)
		onDisk, err := os.ReadFile(filepath.Join("..", name))
		require.NoError(t, err)
		require.True(t, bytes.Equal(content, onDisk), "%s is out of date: run go generate in data/demo", name)
	}
}

func TestCut(t *testing.T) {
	require.Equal(t, []string{"What", "▁is", "▁", "1", "2", "▁", "+", "▁b", "?", "\n"}, cut("What is 12 + b?\n"))
}

func TestTrainOrdersTies(t *testing.T) {
	base, merges := train([]string{"ab cd ab cd"}, 200)
	require.Contains(t, base, "~")
	// All pairs occur twice or once ("▁a"); the first in the alphabet goes first.
	require.Equal(t, []pair{{"a", "b"}, {"c", "d"}, {"▁", "cd"}}, merges)
}
