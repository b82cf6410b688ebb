package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"weft/checkpoint"
	"weft/checkpoint/storage"
)

// ckptPlace is what a PATH of `weft checkpoint` names: the checkpoints of a run's folder, or one of them.
type ckptPlace struct {
	fsys    checkpoint.FS
	url     string // as the user gave it
	root    string // the run's folder, as fsys knows it
	manager *checkpoint.Manager
	// entries are all checkpoints of root, oldest first; of a lone one only itself.
	entries []checkpoint.Entry
	// incomplete are folders of root that lost their manifest, of which no command can make anything.
	incomplete []checkpoint.Entry
	// one is the checkpoint that PATH names, nil for a folder of several.
	one *checkpoint.Entry
}

// openCheckpoints finds the checkpoints of a storage path, the folder of a run, its folder checkpoints, or the one
// checkpoint that url is. It takes no lock and changes nothing.
func openCheckpoints(ctx context.Context, url string) (*ckptPlace, error) {
	fsys, name, err := storage.Open(ctx, url)
	if err != nil {
		return nil, Input(err)
	}
	p := &ckptPlace{fsys: fsys, url: url, root: name}
	if path.Base(name) == checkpoint.Folder {
		p.root = path.Dir(name)
	}
	if err := p.open(name); err != nil {
		return nil, Input(err)
	}
	return p, nil
}

func (p *ckptPlace) open(name string) (err error) {
	inside := path.Dir(name)
	single := path.Base(inside) == checkpoint.Folder
	if single {
		p.root = path.Dir(inside)
	}
	if p.manager, err = checkpoint.Open(p.fsys, p.root, checkpoint.Options{ReadOnly: true}); err != nil {
		return err
	}
	there, err := p.fsys.List(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: there is no such folder: give a storage path, the folder of a run or of one checkpoint", p.url)
	case err != nil:
		return fmt.Errorf("%s: %w: give a folder that can be read", p.url, err)
	}
	if has(there, checkpoint.ManifestFile) {
		return p.openOne(name)
	}
	if p.incomplete, err = p.manager.Incomplete(); err != nil {
		return err
	}
	if single {
		for _, e := range p.incomplete {
			if e.Dir == name {
				p.one, p.entries, p.incomplete = &e, []checkpoint.Entry{e}, nil
				return nil
			}
		}
		return p.nothing(there)
	}
	if p.entries, err = p.manager.List(); err != nil {
		return err
	}
	if len(p.entries)+len(p.incomplete) == 0 && !has(there, checkpoint.Folder) && !has(there, recordName) && path.Base(name) != checkpoint.Folder {
		return p.nothing(there)
	}
	return nil
}

// openOne opens a checkpoint's own folder, which may have been copied to another place.
func (p *ckptPlace) openOne(name string) error {
	e, ok := p.manager.At(name)
	if !ok {
		return fmt.Errorf("%s: its %s went away while it was read: somebody deletes that checkpoint", p.url, checkpoint.ManifestFile)
	}
	p.one, p.entries = &e, []checkpoint.Entry{e}
	if path.Base(path.Dir(name)) != checkpoint.Folder {
		return nil
	}
	all, err := p.manager.List()
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(all, func(x checkpoint.Entry) bool { return x.Dir == name }); i >= 0 {
		p.one, p.entries = &all[i], all
	}
	return nil
}

// nothing says that a folder holds no checkpoint, and where there are some.
func (p *ckptPlace) nothing(there []checkpoint.DirEntry) error {
	var runs []string
	for _, d := range there {
		if !d.Dir {
			continue
		}
		if inside, err := p.fsys.List(path.Join(p.root, d.Name)); err == nil && has(inside, checkpoint.Folder) {
			runs = append(runs, d.Name)
		}
	}
	if len(runs) > 0 {
		return fmt.Errorf("%s holds runs: give the folder of one, such as %s (there are %s)", p.url, storage.Join(p.url, runs[0]), strings.Join(runs, ", "))
	}
	return fmt.Errorf("%s holds no checkpoint: give a storage path, the folder of a run or of one checkpoint", p.url)
}

func has(list []checkpoint.DirEntry, name string) bool {
	return slices.ContainsFunc(list, func(d checkpoint.DirEntry) bool { return d.Name == name })
}

// shown is how a folder is called in messages.
func (p *ckptPlace) shown(e checkpoint.Entry) string { return storage.URL(p.fsys, e.Dir) }

// selected are the checkpoints that PATH names, those without a manifest first.
func (p *ckptPlace) selected() []checkpoint.Entry {
	if p.one != nil {
		return []checkpoint.Entry{*p.one}
	}
	return slices.Concat(p.incomplete, p.entries)
}

// newest is the checkpoint that PATH names, for a run's folder its newest.
func (p *ckptPlace) newest() (checkpoint.Entry, error) {
	list := p.entries
	if p.one != nil {
		list = p.selected()
	}
	if len(list) == 0 {
		return checkpoint.Entry{}, Input(fmt.Errorf("%s holds no checkpoint yet", p.url))
	}
	e := list[len(list)-1]
	for _, lost := range p.incomplete {
		if lost.Step > e.Step {
			return e, fmt.Errorf("%w; or give the folder of another one of %s", lost.Err, p.url)
		}
	}
	if e.Err != nil && p.one == nil && len(list) > 1 {
		return e, fmt.Errorf("the newest checkpoint cannot be used: %w; or give another one of %s", e.Err, p.url)
	}
	return e, e.Err
}

// retention reads the rules that the run had when it was started last, from its record; a run without one has those of
// the flags' defaults.
func (p *ckptPlace) retention() checkpoint.Options {
	var record struct {
		Retention *retention `json:"retention"`
	}
	if raw, err := storage.ReadAll(p.fsys, path.Join(p.root, recordName)); err == nil && json.Unmarshal(raw, &record) == nil && record.Retention != nil {
		return record.Retention.options()
	}
	return checkpoint.Options{Keep: checkpoint.DefaultKeep, KeepBy: checkpoint.DefaultKeepBy}
}

// retention is how a record has the rules.
type retention struct {
	Keep      int    `json:"keep"`
	KeepBy    string `json:"keep_by"`
	KeepLast  int    `json:"keep_last"`
	KeepEvery int    `json:"keep_every"`
}

func (r retention) options() checkpoint.Options {
	return checkpoint.Options{Keep: r.Keep, KeepBy: r.KeepBy, KeepLast: r.KeepLast, KeepEvery: r.KeepEvery}
}

// rulesText says rules in words.
func rulesText(o checkpoint.Options) string {
	var rules []string
	if o.Keep > 0 {
		rules = append(rules, fmt.Sprintf("the best %d by %s", o.Keep, o.KeepBy))
	}
	if o.KeepLast > 0 {
		rules = append(rules, fmt.Sprintf("the last %d", o.KeepLast))
	}
	if o.KeepEvery > 0 {
		rules = append(rules, fmt.Sprintf("those at the end of every %s epoch", ordinal(o.KeepEvery)))
	}
	if len(rules) == 0 {
		return "all"
	}
	return strings.Join(append(rules, "the newest"), ", ")
}

func ordinal(n int) string {
	suffix := "th"
	if n%100 < 11 || n%100 > 13 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return fmt.Sprintf("%d%s", n, suffix)
}
