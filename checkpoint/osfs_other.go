//go:build !linux

package checkpoint

import "os"

func renameNoReplace(oldName, newName string) error { return renameChecked(oldName, newName) }

func inPageCache(*os.File, int64) bool { return false }
