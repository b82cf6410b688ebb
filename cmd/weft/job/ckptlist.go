package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"weft/checkpoint"
)

// CheckpointList is what `weft checkpoint ls` prints, as JSON with --json.
type CheckpointList struct {
	Path string `json:"path"`
	// Retention says in words what the run keeps.
	Retention   string           `json:"retention"`
	Checkpoints []CheckpointInfo `json:"checkpoints"`
}

// States of a checkpoint. StateOK: manifest and the presence and size of every file were looked at, not the checksums.
const (
	StateOK         = "ok"
	StateDamaged    = "damaged"
	StateNewer      = "newer" // of a newer format
	StateUnreadable = "unreadable"
)

// CheckpointInfo is one checkpoint of the list.
type CheckpointInfo struct {
	Name  string `json:"name"`
	Path  string `json:"path"`
	Step  int    `json:"step"`
	Epoch int    `json:"epoch"` // epochs done
	// Metrics are the checkpoint's: loss of a whole epoch, partial_loss of one that is not done, eval_loss.
	Metrics checkpoint.Metrics `json:"metrics,omitempty"`
	Bytes   int64              `json:"bytes"`
	// Devices wrote the state, of this platform; 0: the checkpoint does not say.
	Devices  int    `json:"devices"`
	Platform string `json:"platform,omitempty"`
	// Kind is full (train state and Hugging Face folder) or state.
	Kind string `json:"kind"`
	// Committed is by the clock of the storage, absent where it has none.
	Committed *time.Time `json:"committed,omitempty"`
	State     string     `json:"state"`
	Error     string     `json:"error,omitempty"`
	Newest    bool       `json:"newest"`
	Best      bool       `json:"best"` // by the metric that the run ranks by
	// Kept are the reasons for which retention keeps it; empty: the next save deletes it.
	Kept []checkpoint.Reason `json:"kept"`
}

// ListCheckpoints lists what lies under a path: the checkpoints of a run's folder, or one of them.
func ListCheckpoints(ctx context.Context, url string) (*CheckpointList, error) {
	p, err := openCheckpoints(ctx, url)
	if err != nil {
		return nil, err
	}
	rules := p.retention()
	out := &CheckpointList{Path: url, Retention: rulesText(rules), Checkpoints: []CheckpointInfo{}}
	by := rules.KeepBy
	if by == "" || by == checkpoint.KeepByStep {
		by = checkpoint.DefaultKeepBy
	}
	best := ""
	if ranked := checkpoint.Best(p.entries, by); len(ranked) > 0 {
		if v, ok := ranked[0].Metrics[by]; ok && !math.IsNaN(v) {
			best = ranked[0].Name
		}
	}
	for _, e := range p.incomplete {
		out.Checkpoints = append(out.Checkpoints, p.describe(checkpoint.Decision{Entry: e, Keep: []checkpoint.Reason{checkpoint.KeptFaulty}}))
	}
	for i, d := range rules.Decide(p.entries) {
		if p.one != nil && d.Entry.Name != p.one.Name {
			continue
		}
		info := p.describe(d)
		info.Newest, info.Best = i == len(p.entries)-1, d.Entry.Name == best
		out.Checkpoints = append(out.Checkpoints, info)
	}
	return out, nil
}

func (p *ckptPlace) describe(d checkpoint.Decision) CheckpointInfo {
	e := d.Entry
	info := CheckpointInfo{
		Name: e.Name, Path: p.shown(e), Step: e.Step, Epoch: e.Epoch, Metrics: e.Metrics, Bytes: e.Bytes, Kind: "state", State: StateOK,
		Kept: append([]checkpoint.Reason{}, d.Keep...),
	}
	if e.Model {
		info.Kind = "full"
	}
	if at, ok := p.manager.Committed(e); ok {
		at = at.UTC().Truncate(time.Second)
		info.Committed = &at
	}
	err := p.manager.Check(e)
	if err != nil {
		info.Error, info.State = OneLine(err), stateOf(err)
	}
	if manifest, err := p.manager.Manifest(e); err == nil {
		info.Devices, info.Platform = writtenBy(manifest)
	} else {
		info.Kind = "?"
	}
	return info
}

func stateOf(err error) string {
	switch {
	case errors.Is(err, checkpoint.ErrNewerFormat):
		return StateNewer
	case errors.Is(err, checkpoint.ErrDamaged):
		return StateDamaged
	}
	return StateUnreadable
}

// writtenBy says how many devices wrote a checkpoint: what the run's record has, else the number of state files.
func writtenBy(m *checkpoint.Manifest) (devices int, platform string) {
	var record struct {
		Placement placement `json:"placement"`
	}
	if json.Unmarshal(m.Config, &record) == nil && record.Placement.Devices > 0 {
		return record.Placement.Devices, record.Placement.Platform
	}
	for _, f := range m.Files {
		if f.HeaderSize > 0 {
			devices++
		}
	}
	return devices, ""
}

// Write prints the list as a table.
func (l *CheckpointList) Write(w io.Writer) error {
	if len(l.Checkpoints) == 0 {
		_, err := fmt.Fprintf(w, "%s: no checkpoint yet\n", l.Path)
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NAME\tSTEP\tEPOCH\tLOSS\tEVAL LOSS\tSIZE\tDEVICES\tKIND\tCOMMITTED\tSTATE\tNEWEST/BEST\tKEPT AS")
	for _, c := range l.Checkpoints {
		fmt.Fprintf(t, "%s\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", c.Name, c.Step, c.Epoch,
			c.loss(), c.metric("eval_loss"), decimalSize(c.Bytes), c.devices(), c.Kind, c.committed(), c.State, c.marks(), c.kept())
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, c := range l.Checkpoints {
		if c.Error != "" {
			fmt.Fprintf(w, "%s: %s\n", c.Name, c.Error)
		}
	}
	_, err := fmt.Fprintf(w, "The run keeps %s. STATE looks at the manifest and the files' sizes; weft checkpoint verify reads every byte.\n", l.Retention)
	return err
}

func (c *CheckpointInfo) metric(name string) string {
	v, ok := c.Metrics[name]
	if !ok {
		return "-"
	}
	return strconv.FormatFloat(v, 'f', 4, 64)
}

// loss is that of an epoch; ~ marks that of a part of one.
func (c *CheckpointInfo) loss() string {
	if _, whole := c.Metrics[metricLoss]; whole {
		return c.metric(metricLoss)
	}
	if _, ok := c.Metrics[metricPartialLoss]; ok {
		return "~" + c.metric(metricPartialLoss)
	}
	return "-"
}

func (c *CheckpointInfo) devices() string {
	if c.Devices == 0 {
		return "?"
	}
	return strings.TrimSpace(fmt.Sprintf("%d %s", c.Devices, c.Platform))
}

func (c *CheckpointInfo) committed() string {
	if c.Committed == nil {
		return "-"
	}
	return c.Committed.Format(time.RFC3339)
}

func (c *CheckpointInfo) marks() string {
	var marks []string
	if c.Newest {
		marks = append(marks, "newest")
	}
	if c.Best {
		marks = append(marks, "best")
	}
	if len(marks) == 0 {
		return "-"
	}
	return strings.Join(marks, "+")
}

func (c *CheckpointInfo) kept() string {
	if len(c.Kept) == 0 {
		return "(goes)"
	}
	return reasonsText(c.Kept)
}

func reasonsText(reasons []checkpoint.Reason) string {
	var texts []string
	for _, r := range slices.Compact(slices.Clone(reasons)) {
		texts = append(texts, string(r))
	}
	return strings.Join(texts, ", ")
}

// decimalSize prints bytes in powers of 1000, as disks are sold.
func decimalSize(n int64) string {
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	value, unit := float64(n), -1
	for value >= 999.95 && unit < 5 {
		value, unit = value/1000, unit+1
	}
	return fmt.Sprintf("%.1f %cB", value, "kMGTPE"[unit])
}
