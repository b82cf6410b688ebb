package tpuvm_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"weft/launch/tpuvm"
)

// program puts a gcloud on the PATH.
func program(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "gcloud"), []byte("#!/bin/sh\n"+script), 0o755))
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}

func TestWaitSeesStatesAndIsInterrupted(t *testing.T) {
	slice := tpuvm.Slice{Name: "s", Zone: "us-east1-d", Number: 1, Queued: true}
	wait := tpuvm.Step{What: "wait", Args: []string{"describe"}, Wait: true}

	seen := filepath.Join(t.TempDir(), "seen")
	program(t, `echo x >> "`+seen+`"; case $(wc -l < "`+seen+`") in 1) echo WAITING_FOR_RESOURCES;; 2) echo PROVISIONING;; *) echo ACTIVE;; esac`)
	var out, errs bytes.Buffer
	r := &tpuvm.Runner{Out: &out, Err: &errs, Every: time.Millisecond}
	require.NoError(t, r.Run(t.Context(), []tpuvm.Step{wait}))
	require.Empty(t, out.String())
	require.Regexp(t, `(?s)WAITING_FOR_RESOURCES\n.*PROVISIONING\n.*ACTIVE\n`, errs.String())

	ctx, cancel := context.WithCancel(t.Context())
	program(t, "echo WAITING_FOR_RESOURCES")
	r.Every = time.Hour
	r.Err = writer(func([]byte) { cancel() })
	var failed *tpuvm.StepError
	err := r.Run(ctx, []tpuvm.Step{wait, {What: "never", Args: []string{"never"}}})
	require.ErrorAs(t, err, &failed)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, wait, failed.Step)
	require.Contains(t, slice.Left(), "weft tpuvm delete s --zone us-east1-d --queued --run")
}

// A step that is under way is ended when the context is.
func TestStepIsInterrupted(t *testing.T) {
	program(t, "echo begun; exec sleep 60")
	ctx, cancel := context.WithCancel(t.Context())
	r := &tpuvm.Runner{Out: writer(func([]byte) { cancel() }), Err: &bytes.Buffer{}}
	err := r.Run(ctx, []tpuvm.Step{{What: "run weft", Args: []string{"ssh"}}})
	require.ErrorContains(t, err, "run weft: interrupted")
}

// writer calls a function at each write.
type writer func([]byte)

func (w writer) Write(p []byte) (int, error) {
	w(p)
	return len(p), nil
}
