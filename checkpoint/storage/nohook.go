//go:build !weftfault

package storage

import "weft/checkpoint"

// hooked is where the crash test's build puts its faults; this build has none.
func hooked(fsys checkpoint.FS) checkpoint.FS { return fsys }

// File is where that build puts faults under a file that is not of an FS.
func File(_ string, f checkpoint.File) checkpoint.File { return f }

// Reach is where that build puts faults at a place of the run that is no operation of the storage.
func Reach(_, _ string) {}
