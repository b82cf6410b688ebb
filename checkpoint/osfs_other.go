//go:build !linux

package checkpoint

func renameNoReplace(oldName, newName string) error { return renameChecked(oldName, newName) }
