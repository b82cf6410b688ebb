package checkpoint

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"time"
)

// How several processes write one checkpoint. Process 0 owns the storage path. For each attempt it makes the folder, whose
// list of intent says how many processes write there, and announces it in togetherFile; each other one writes the files of
// its slices, syncs them, and last its part manifest, which describes them or says why there are none. Process 0 waits for
// all parts, merges them into the manifest, makes the model folder of what all have written, commits, and announces the outcome.

// togetherFile lies beside the checkpoints and says which save is under way, and how it and the one before it ended.
const togetherFile = ".weft-save.json"

const (
	togetherFormat = "weft-save"
	partFormat     = "weft-part"
)

// DefaultHostWait is how long a process waits for the others.
const DefaultHostWait = 15 * time.Minute

// The states of an announced save.
const (
	saveNone      = "none" // the session begins: its processes meet
	saveWriting   = "writing"
	saveFailed    = "failed"    // this attempt: there may be another
	saveGivenUp   = "given up"  // there is none
	saveCommitted = "committed" // Sequence is set
)

// announced is one save as process 0 tells of it.
type announced struct {
	Step     int    `json:"step"`
	Epoch    int    `json:"epoch"`
	Attempt  int    `json:"attempt"` // counted over all saves of the session, from 1
	State    string `json:"state"`
	Dir      string `json:"dir"`                // name of the folder that is written, or of the checkpoint
	Sequence int    `json:"sequence,omitempty"` // of the checkpoint
	Error    string `json:"error,omitempty"`
	Culprit  int    `json:"culprit,omitempty"` // the process whose part Error is of, 0 for process 0 itself
}

func (a announced) of(s *Snapshot) bool { return a.Step == s.Step && a.Epoch == s.Epoch }

// together is the content of togetherFile.
type together struct {
	Format  string     `json:"format"`
	Session int64      `json:"session"`
	Save    announced  `json:"save"`
	Before  *announced `json:"before,omitempty"` // the save before it: who waits for that may look late
}

// several tells that other processes write checkpoints together with this one.
func (o Options) several() bool { return o.Processes > 1 }

// part tells that this process only adds to the checkpoints of process 0.
func (o Options) part() bool { return o.several() && o.Process > 0 }

func (o Options) wait() time.Duration {
	if o.HostWait > 0 {
		return o.HostWait
	}
	return DefaultHostWait
}

func (o Options) hostName(process int) string {
	if o.HostName != nil {
		return o.HostName(process)
	}
	return fmt.Sprintf("host %d", process)
}

// HostError is the failure of another host's part of a save.
type HostError struct {
	Host   string
	Reason string
	// Final tells that the host cannot try again.
	Final bool

	process int
}

// culprit is the process whose part an error is of.
func culprit(err error) int {
	var host *HostError
	if errors.As(err, &host) {
		return host.process
	}
	return 0
}

func (e *HostError) Error() string { return e.Host + ": " + e.Reason }

// partManifest is what one process has added to a checkpoint.
type partManifest struct {
	Session int64         `json:"session"`
	Attempt int           `json:"attempt"`
	Process int           `json:"process"`
	State   []StateTensor `json:"state,omitempty"`
	Files   []FileEntry   `json:"files,omitempty"`
	// Error is why there is no part; Final that there will be none.
	Error string `json:"error,omitempty"`
	Final bool   `json:"final,omitempty"`
}

func partName(process int) string { return fmt.Sprintf(".weft-host-%04d.json", process) }

// partNames are those of all processes but the first.
func partNames(processes int) (names []string) {
	for p := 1; p < processes; p++ {
		names = append(names, partName(p))
	}
	return names
}

func (p *partManifest) encode() ([]byte, error) {
	body, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", partName(p.Process), err)
	}
	return envelope(partFormat, FormatVersion, body), nil
}

// readPart reads a part manifest; ok is false while there is none that is whole.
func readPart(fsys FS, dir string, process int) (p *partManifest, ok bool, err error) {
	b, err := readSmall(fsys, path.Join(dir, partName(process)), maxManifest)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	var env struct {
		Body json.RawMessage `json:"body"`
	}
	if json.Unmarshal(b, &env) != nil || !bytes.Equal(b, envelope(partFormat, FormatVersion, env.Body)) {
		return nil, false, nil // being written
	}
	p = &partManifest{}
	return p, json.Unmarshal(env.Body, p) == nil && p.Process == process, nil
}

// readTogether reads what process 0 announced in this session.
func (m *Manager) readTogether() (t together, ok bool, err error) {
	b, err := readSmall(m.fs, path.Join(m.dir, togetherFile), 1<<20)
	if errors.Is(err, fs.ErrNotExist) {
		return t, false, nil
	}
	if err != nil {
		return t, false, err
	}
	ok = json.Unmarshal(b, &t) == nil && t.Format == togetherFormat && t.Session == m.opts.Session
	return t, ok, nil
}

// tell announces a save, or how it ended.
func (m *Manager) tell(a announced) error {
	if err := m.holds(); err != nil {
		return err
	}
	t := together{Format: togetherFormat, Session: m.opts.Session, Save: a}
	switch last := m.told; {
	case last == nil:
	case last.Save.Step == a.Step && last.Save.Epoch == a.Epoch:
		t.Before = last.Before
	default:
		t.Before = &last.Save
	}
	b, err := json.Marshal(t)
	if err != nil {
		return err
	}
	if err := m.fs.Replace(path.Join(m.dir, togetherFile), append(b, '\n')); err != nil {
		return err
	}
	m.told = &t
	return nil
}

// Meet makes sure that all processes have the same storage path, at most limit after process 0 came: a path that each host has
// for itself would be found out by the first save alone. Process 0 announces the session, which each other one waits to read.
func (m *Manager) Meet(ctx context.Context, limit time.Duration) error {
	if !m.opts.several() {
		return nil
	}
	if !m.opts.part() {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.tell(announced{State: saveNone})
	}
	return m.poll(ctx, limit, func() (bool, error) {
		_, ok, err := m.readTogether()
		return ok, err
	}, func() error {
		return fmt.Errorf("%s is not the folder that %s writes to: what it wrote there did not come within %v: give all hosts one --storage-path that they share, such as gs://BUCKET/PREFIX or a network disk",
			where(m.fs, m.root), m.opts.hostName(0), limit)
	})
}

// tellCommitted announces what is committed, come what may: whoever does not hear of it takes the save for lost.
func (m *Manager) tellCommitted(a announced) {
	for range maxReadErrors {
		if m.tell(a) == nil {
			return
		}
	}
}

// giveUp tells the other processes that a save is not tried again. Those that do not hear of it end their wait by themselves.
func (m *Manager) giveUp(s *Snapshot, why error) {
	if !m.opts.several() || m.opts.part() {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	_ = m.tell(announced{Step: s.Step, Epoch: s.Epoch, Attempt: m.attempts, State: saveGivenUp, Error: why.Error(), Culprit: culprit(why)})
}

// maxReadErrors is how many times in a row a look at what another process wrote may fail.
const maxReadErrors = 5

// poll calls look until it is done, for at most so long. late makes the error of a wait that was too long.
func (m *Manager) poll(ctx context.Context, limit time.Duration, look func() (done bool, err error), late func() error) error {
	pause, longest := 10*time.Millisecond, 500*time.Millisecond
	if m.store != nil {
		pause, longest = 200*time.Millisecond, 2*time.Second
	}
	if m.opts.poll > 0 {
		pause, longest = m.opts.poll, m.opts.poll
	}
	end := time.Now().Add(limit)
	failures := 0
	for {
		done, err := look()
		switch {
		case done:
			return err
		case err == nil:
			failures = 0
		default:
			if failures++; failures == maxReadErrors || errors.Is(err, fs.ErrPermission) {
				return err
			}
		}
		if time.Now().After(end) {
			return errors.Join(err, late())
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		pause = min(longest, pause*3/2)
	}
}

// beginTogether announces the folder that job is written into, and has job wait for the others.
func (m *Manager) beginTogether(job *saveJob, dir string) error {
	if !m.opts.several() {
		return nil
	}
	job.others = func(ctx context.Context, dir string) error {
		parts, err := m.gather(ctx, dir)
		if err != nil {
			return err
		}
		return job.merge(parts, m.opts.hostName)
	}
	s := job.snapshot
	return m.tell(announced{Step: s.Step, Epoch: s.Epoch, Attempt: m.attempts, State: saveWriting, Dir: path.Base(dir)})
}

// gather waits for the parts of all other processes.
func (m *Manager) gather(ctx context.Context, dir string) ([]*partManifest, error) {
	var parts []*partManifest
	for process := 1; process < m.opts.Processes; process++ {
		err := m.poll(ctx, m.opts.wait(), func() (bool, error) {
			p, ok, err := readPart(m.fs, dir, process)
			if err != nil || !ok || p.Session != m.opts.Session || p.Attempt != m.attempts {
				return false, err
			}
			if p.Error != "" {
				return true, &HostError{Host: m.opts.hostName(process), Reason: p.Error, Final: p.Final, process: process}
			}
			parts = append(parts, p)
			return true, nil
		}, func() error {
			return &HostError{Host: m.opts.hostName(process), process: process, Final: true, Reason: fmt.Sprintf(
				"its part of the checkpoint was not there within %v: does it run, and is --storage-path the same folder on all hosts?", m.opts.wait())}
		})
		if err != nil {
			return nil, err
		}
	}
	return parts, nil
}

// merge enters the parts into the manifest of process 0, and checks that nothing is missing.
func (j *saveJob) merge(parts []*partManifest, hostName func(int) string) error {
	index := make(map[string]*StateTensor, len(j.manifest.State))
	for i := range j.manifest.State {
		index[j.manifest.State[i].Name] = &j.manifest.State[i]
	}
	for _, p := range parts {
		for _, t := range p.State {
			mine := index[t.Name]
			if mine == nil || mine.DType != t.DType || fmt.Sprint(mine.Shape) != fmt.Sprint(t.Shape) {
				return &HostError{Host: hostName(p.Process), process: p.Process, Final: true, Reason: fmt.Sprintf("it saves the tensor %q as %s %v, which %s does not: they must run the same model", t.Name, t.DType, t.Shape, hostName(0))}
			}
			mine.Slices = append(mine.Slices, t.Slices...)
		}
		j.manifest.Files = append(j.manifest.Files, p.Files...)
	}
	if err := j.manifest.check(); err != nil {
		return fmt.Errorf("%w: the hosts' parts are not the whole state: %w", ErrSnapshot, err)
	}
	return nil
}
