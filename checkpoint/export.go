package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"syscall"
)

// WriteModelFolder writes a Hugging Face folder at dir, which must not exist or
// be empty (ErrNotEmpty): it appears there whole, by one rename, or not at all. On
// an object store the files appear one by one, config.json last, and a list of
// what is to come lies beside them until all are whole.
func WriteModelFolder(ctx context.Context, fsys FS, dir string, model *ModelFolder) error {
	return WriteCheckedFolder(ctx, fsys, dir, model, func(string) error { return nil })
}

// WriteCheckedFolder is WriteModelFolder that shows the finished folder to check
// before it gets its name: tmp is where it lies until then. An error of check
// takes the folder away again.
func WriteCheckedFolder(ctx context.Context, fsys FS, dir string, model *ModelFolder, check func(tmp string) error) error {
	if err := exportModel(ctx, fsys, path.Clean(dir), model, check); err != nil {
		return fmt.Errorf("writing model folder %s: %w", where(fsys, dir), explainExport(path.Dir(path.Clean(dir)), err))
	}
	return nil
}

// explainExport is explain for a folder that the user chose for this one.
func explainExport(parent string, err error) error {
	switch {
	case advised(err):
		return err
	case errors.Is(err, ErrNoSpace):
		return fmt.Errorf("%w under %s: nothing is left of the folder; free space there or give a folder on a larger disk", ErrNoSpace, parent)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w: %w; nothing is left of the folder: free space under %s or give a folder on a larger disk", ErrNoSpace, err, parent)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%w; weft needs to write under %s: change its permissions or give another folder", err, parent)
	}
	return err
}

func exportModel(ctx context.Context, fsys FS, dir string, model *ModelFolder, check func(tmp string) error) error {
	if err := model.check(nil); err != nil {
		return err
	}
	plan, err := planModel(model, "", nil)
	if err != nil {
		return err
	}
	if store, ok := fsys.(ObjectStore); ok {
		return exportObjects(ctx, store, dir, plan, check)
	}
	parent, base := path.Dir(dir), path.Base(dir)
	there, err := fsys.List(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	exists := err == nil
	if len(there) > 0 {
		return fmt.Errorf("%w: it holds %s; give a new folder or empty it", ErrNotEmpty, there[0].Name)
	}
	if err := fsys.MkdirAll(parent); err != nil {
		return err
	}
	files, need := make([]*planned, len(plan)), int64(0)
	for i := range plan {
		files[i] = &plan[i]
		need += plan[i].size()
	}
	cleanExports(fsys, parent, base)
	if err := checkSpace(fsys, parent, need); err != nil {
		return err
	}
	var temps int
	tmp, err := makeTemp(fsys, parent, tempExport, base, &temps)
	if err != nil {
		return err
	}
	return fillExport(ctx, fsys, tmp, dir, exists, files, check)
}

// cleanExports removes what dead exports to the same folder left; a live one
// holds the lock file inside of its temporary folder.
func cleanExports(fsys FS, parent, base string) {
	list, err := fsys.List(parent)
	if err != nil {
		return
	}
	for _, d := range list {
		kind, target, ok := parseTemp(d.Name)
		if !ok || kind != tempExport || target != base || !d.Dir || d.Link {
			continue
		}
		dir := path.Join(parent, d.Name)
		lock, err := fsys.Lock(path.Join(dir, LockFile), nil)
		if err != nil {
			continue
		}
		_, _ = removeOwned(fsys, dir)
		_ = lock.Close()
	}
}

// fillExport writes the files of an export into tmp, has them checked, moves tmp to dir and takes
// lock and list of intent out of it.
func fillExport(ctx context.Context, fsys FS, tmp, dir string, replace bool, files []*planned, check func(tmp string) error) (err error) {
	renamed := false
	lock, err := fsys.Lock(path.Join(tmp, LockFile), nil)
	if err == nil {
		defer lock.Close()
		err = writeAll(ctx, fsys, tmp, files)
	}
	if err == nil {
		err = check(tmp)
	}
	if err == nil && replace {
		err = fsys.Remove(dir)
	}
	if err == nil {
		err = fsys.Rename(tmp, dir)
		renamed = err == nil
	}
	if err != nil {
		if !renamed {
			_, _ = removeOwned(fsys, tmp)
			if replace {
				_ = fsys.MkdirAll(dir) // the user's empty folder
			}
		}
		return err
	}
	if err := fsys.SyncDir(path.Dir(dir)); err != nil {
		return err
	}
	if _, err := removeNamed(fsys, dir, map[string]bool{intentFile: true, LockFile: true}); err != nil {
		return err
	}
	return fsys.SyncDir(dir)
}

func writeAll(ctx context.Context, fsys FS, tmp string, files []*planned) error {
	if err := writeIntent(fsys, tmp, files, 1); err != nil {
		return err
	}
	buf := newBuffers(nil)
	for _, f := range files {
		if _, _, err := f.write(ctx, fsys, tmp, buf); err != nil {
			return err
		}
	}
	return fsys.SyncDir(tmp)
}
