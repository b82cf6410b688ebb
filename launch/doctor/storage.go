package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"weft/checkpoint"
	"weft/checkpoint/storage"
)

// disk looks at the room for a local storage path, else for the working folder.
func (d *doctor) disk(context.Context) {
	dir := "."
	if d.Storage != "" && !storage.IsRemote(d.Storage) {
		dir = d.Storage
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		d.add("disk", Skip, "", "%v", err)
		return
	}
	var st unix.Statfs_t
	for err = unix.Statfs(dir, &st); errors.Is(err, unix.ENOENT) && dir != "/"; err = unix.Statfs(dir, &st) {
		dir = filepath.Dir(dir) // a storage path is made by the run
	}
	if err != nil {
		d.add("disk", Warn, "", "%s: %v", dir, err)
		return
	}
	free := st.Bavail * uint64(st.Bsize)
	status, fix := OK, ""
	if free < leastDisk {
		status, fix = Warn, "a checkpoint is 12 bytes a trained parameter and the model besides; two are kept, and a third is being written"
	}
	d.add("disk", status, fix, "%s free under %s", size(free), dir)
}

// skewWarn is from where on two clocks confuse a person who reads logs, skewFail from where on credentials are refused.
const skewWarn, skewFail = 5 * time.Second, 5 * time.Minute

// storage writes, reads and deletes a file under the storage path, and compares its clock with this host's.
func (d *doctor) storage(ctx context.Context) {
	if d.Storage == "" {
		d.add("storage", Skip, "", "no --storage-path was given")
		return
	}
	fsys, dir, err := storage.Open(ctx, d.Storage)
	if err != nil {
		d.add("storage", Fail, "", "%v", err)
		return
	}
	name := path.Join(dir, fmt.Sprintf(".weft-doctor-%s-%d", d.report.Host, os.Getpid()))
	content := []byte("weft doctor looks whether this can be written, read and deleted\n")
	begin := d.Now()
	if err := fsys.MkdirAll(dir); err != nil {
		d.add("storage", Fail, "give this user or service account the right to write there", "%v", err)
		return
	}
	if err := fsys.Replace(name, content); err != nil {
		d.add("storage", Fail, "give this user or service account the right to write there", "write %s: %v", storage.URL(fsys, name), err)
		return
	}
	back, readErr := storage.ReadAll(fsys, name)
	written, timed := checkpoint.WrittenAt(fsys, name)
	end := d.Now()
	if err := fsys.Remove(name); err != nil {
		d.add("storage", Fail, "weft deletes what it no longer needs: give the right to delete too", "delete %s: %v", storage.URL(fsys, name), err)
		return
	}
	if readErr == nil && string(back) != string(content) {
		readErr = errors.New("other bytes came back than were written")
	}
	if readErr != nil {
		d.add("storage", Fail, "give the right to read", "read %s: %v", storage.URL(fsys, name), readErr)
		return
	}
	d.add("storage", OK, "", "%s can be written, read and deleted", storage.URL(fsys, dir))
	if timed {
		d.clock(written, begin, end)
	}
}

// clock compares this host's clock with that of the storage, which wrote something between begin and end.
func (d *doctor) clock(written, begin, end time.Time) {
	skew := time.Duration(0)
	switch {
	case written.Before(begin.Truncate(time.Second)):
		skew = begin.Sub(written)
	case written.After(end):
		skew = written.Sub(end)
	}
	const fix = "synchronise this host's clock (chrony, ntp)"
	switch {
	case skew > skewFail:
		d.add("clock", Fail, fix, "this host and the storage differ by %s: credentials will be refused", skew.Round(time.Second))
	case skew > skewWarn:
		d.add("clock", Warn, fix, "this host and the storage differ by %s", skew.Round(time.Second))
	default:
		d.add("clock", OK, "", "agrees with the storage's")
	}
}

// hub looks at the token of the Hugging Face hub.
func (d *doctor) hub(ctx context.Context) {
	token, from := d.Getenv("HF_TOKEN"), "HF_TOKEN"
	if token == "" {
		home := d.Getenv("HF_HOME")
		if home == "" {
			home = filepath.Join(d.Getenv("HOME"), ".cache", "huggingface")
		}
		from = filepath.Join(home, "token")
		raw, err := os.ReadFile(from)
		if err != nil {
			d.add("hub token", Skip, "", "none; it is needed to download gated models, not to train")
			return
		}
		token = strings.TrimSpace(string(raw))
	}
	if !d.Hub {
		d.add("hub token", OK, "", "in %s; --hub asks whether it is valid", from)
		return
	}
	who, err := whoAmI(ctx, d.Endpoint, token)
	if err != nil {
		d.add("hub token", Fail, "make a new token with the right to read, and set HF_TOKEN", "%s: %v", from, err)
		return
	}
	d.add("hub token", OK, "", "in %s, of %s", from, who)
}

// hubTime bounds the question to the hub.
const hubTime = 15 * time.Second

// whoAmI asks a hub for the name of a token's owner.
func whoAmI(ctx context.Context, endpoint, token string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, hubTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(endpoint, "/")+"/api/whoami-v2", nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", fmt.Errorf("the hub does not answer: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("the hub at %s refuses it (%s)", endpoint, resp.Status)
	}
	var answer struct {
		Name string `json:"name"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&answer); err != nil {
		return "", fmt.Errorf("the hub at %s answers unlike a hub: %w", endpoint, err)
	}
	return answer.Name, nil
}

// reports is the folder under the storage path in which the hosts of a slice compare themselves.
const reports = ".weft-doctor"

// peer is what a host tells the others.
type peer struct {
	Host   string `json:"host"`
	Slice  string `json:"slice"`
	Weft   string `json:"weft"`
	Plugin string `json:"plugin"`
}

// poll is the time between two looks for the others.
const poll = 500 * time.Millisecond

// fresh is how much older than this host's own report another one may be to be of the same examination.
const fresh = 10 * time.Minute

// hosts compares this host's weft and plugin with the slice's other hosts'.
func (d *doctor) hosts(ctx context.Context) {
	switch {
	case d.view == nil:
		d.add("hosts", Skip, "", "the environment does not say which hosts there are")
		return
	case d.view.Single() && d.unnamed():
		d.add("hosts", Skip, "", "the environment does not say which hosts there are, only the TPU's runtime does: weft version on each host compares them")
		return
	case d.view.Single():
		d.add("hosts", OK, "", "one host")
		return
	case d.Storage == "":
		d.add("hosts", Skip, "", "%d hosts; give all of them the same --storage-path and run weft doctor on each to compare them", d.view.Count())
		return
	}
	fsys, dir, err := storage.Open(ctx, d.Storage)
	if err == nil {
		err = fsys.MkdirAll(path.Join(dir, reports))
	}
	if err == nil {
		err = d.tell(fsys, dir)
	}
	if err != nil {
		d.add("hosts", Fail, "", "leave a report for the other hosts: %v", err)
		return
	}
	found, missing, err := d.gather(ctx, fsys, dir)
	if err != nil {
		d.add("hosts", Fail, "", "read the reports of the other hosts: %v", err)
		return
	}
	d.compare(found, missing)
}

func (d *doctor) self() peer {
	return peer{Host: d.report.Host, Slice: d.view.Name, Weft: d.Version, Plugin: d.pluginName()}
}

func peerFile(dir string, index int) string {
	return path.Join(dir, reports, fmt.Sprintf("host-%04d.json", index))
}

func (d *doctor) tell(fsys checkpoint.FS, dir string) error {
	raw, err := json.Marshal(d.self())
	if err != nil {
		return err
	}
	return fsys.Replace(peerFile(dir, d.view.Global()), raw)
}

// gather reads the reports of the others, waiting for those that are not there.
func (d *doctor) gather(ctx context.Context, fsys checkpoint.FS, dir string) (found map[int]peer, missing []int, err error) {
	mine, timed := checkpoint.WrittenAt(fsys, peerFile(dir, d.view.Global()))
	found = map[int]peer{}
	for deadline := d.Now().Add(d.Wait); ; {
		missing = nil
		for i := range d.view.Count() {
			if _, ok := found[i]; ok {
				continue
			}
			p, ok, err := d.read(fsys, peerFile(dir, i), mine, timed)
			if err != nil {
				return nil, nil, err
			}
			if ok {
				found[i] = p
			} else {
				missing = append(missing, i)
			}
		}
		if len(missing) == 0 || d.Now().After(deadline) {
			return found, missing, nil
		}
		select {
		case <-time.After(poll):
		case <-ctx.Done():
			return found, missing, nil
		}
	}
}

// read reads one report; ok is false when there is none, or an old one.
func (d *doctor) read(fsys checkpoint.FS, name string, mine time.Time, timed bool) (p peer, ok bool, err error) {
	raw, err := storage.ReadAll(fsys, name)
	if errors.Is(err, fs.ErrNotExist) {
		return p, false, nil
	}
	if err != nil {
		return p, false, err
	}
	if at, known := checkpoint.WrittenAt(fsys, name); known && timed && mine.Sub(at) > fresh {
		return p, false, nil
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		return p, false, fmt.Errorf("%s is no report of weft doctor: %w: delete it", storage.URL(fsys, name), err)
	}
	return p, true, nil
}

// compare holds every host against this one.
func (d *doctor) compare(found map[int]peer, missing []int) {
	self := d.self()
	var diffs []string
	for i := range d.view.Count() {
		p, ok := found[i]
		if !ok {
			continue
		}
		if p.Weft != self.Weft {
			diffs = append(diffs, fmt.Sprintf("host %d (%s) has weft %s, this one %s", i, p.Host, p.Weft, self.Weft))
		}
		if p.Plugin != self.Plugin {
			diffs = append(diffs, fmt.Sprintf("host %d (%s) has %s, this one %s", i, p.Host, p.Plugin, self.Plugin))
		}
	}
	switch {
	case len(diffs) > 0:
		d.add("hosts", Fail, "install the same weft and the same plugin on all hosts", "%s", strings.Join(diffs, "; "))
	case len(missing) > 0:
		d.add("hosts", Warn, "run weft doctor on them too, with the same --storage-path; --wait waits for them", "%d of %d hosts have the same versions, %v did not report", len(found), d.view.Count(), missing)
	default:
		d.add("hosts", OK, "", "%d hosts with weft %s and %s", len(found), self.Weft, self.Plugin)
	}
}
