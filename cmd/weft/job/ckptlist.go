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
	// by is the metric that Best goes by.
	by string
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
	out.by = by
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

// Write prints the list as a table that fits a terminal of 100 columns. It leaves out what a name has, and what few ask for: the
// JSON has all.
func (l *CheckpointList) Write(w io.Writer) error {
	if len(l.Checkpoints) == 0 {
		_, err := fmt.Fprintf(w, "%s: no checkpoint yet\n", l.Path)
		return err
	}
	evaluated := slices.ContainsFunc(l.Checkpoints, func(c CheckpointInfo) bool { return c.has(metricEvalLoss) })
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, loss, eval string, rest ...string) {
		cells := []string{name, loss}
		if evaluated {
			cells = append(cells, eval)
		}
		fmt.Fprintln(t, strings.Join(append(cells, rest...), "\t"))
	}
	row("NAME", "LOSS", "EVAL", "SIZE", "KIND", "COMMITTED (UTC)", "STATE", "KEPT AS")
	for _, c := range l.Checkpoints {
		kept := c.kept()
		row(c.title(), c.loss(l.by), c.evalLoss(l.by), decimalSize(c.Bytes), c.Kind, c.committed(), c.State, kept[0])
		for _, more := range kept[1:] {
			row("", "", "", "", "", "", "", more)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, c := range l.Checkpoints {
		if c.Error != "" {
			fmt.Fprintf(w, "%s: %s\n", c.Name, c.Error)
		}
	}
	_, err := fmt.Fprintf(w, "The run keeps %s.\nSTATE looks at the manifest and the files' sizes; weft checkpoint verify reads every byte.\n", l.Retention)
	return err
}

// title is the folder's name, which tells epoch and step unless somebody gave it another.
func (c *CheckpointInfo) title() string {
	if c.Epoch+c.Step == 0 || strings.HasPrefix(c.Name, fmt.Sprintf("epoch-%04d-step-%08d", c.Epoch, c.Step)) {
		return c.Name
	}
	return fmt.Sprintf("%s (epoch %d, step %d)", c.Name, c.Epoch, c.Step)
}

func (c *CheckpointInfo) has(metric string) bool {
	_, ok := c.Metrics[metric]
	return ok
}

// star marks the figure by which a checkpoint is the best.
func (c *CheckpointInfo) star(metric, by string) string {
	if c.Best && metric == by {
		return "*"
	}
	return ""
}

func (c *CheckpointInfo) metric(name string) string {
	v, ok := c.Metrics[name]
	if !ok {
		return "-"
	}
	return strconv.FormatFloat(v, 'f', 4, 64)
}

// loss is that of an epoch; ~ marks that of a part of one.
func (c *CheckpointInfo) loss(by string) string {
	if c.has(metricLoss) {
		return c.metric(metricLoss) + c.star(metricLoss, by)
	}
	if c.has(metricPartialLoss) {
		return "~" + c.metric(metricPartialLoss)
	}
	return "-"
}

func (c *CheckpointInfo) evalLoss(by string) string {
	return c.metric(metricEvalLoss) + c.star(metricEvalLoss, by)
}

func (c *CheckpointInfo) committed() string {
	if c.Committed == nil {
		return "-"
	}
	return c.Committed.Format("2006-01-02 15:04")
}

// keptWidth is the width of the table's last column.
const keptWidth = 14

// kept are the reasons for which the run keeps the checkpoint, in lines of the table's last column.
func (c *CheckpointInfo) kept() []string {
	if len(c.Kept) == 0 {
		return []string{"(goes)"}
	}
	var lines []string
	for reason := range strings.SplitSeq(reasonsText(c.Kept), ", ") {
		last := len(lines) - 1
		if last >= 0 && len(lines[last])+len(", ")+len(reason) <= keptWidth {
			lines[last] += ", " + reason
			continue
		}
		if last >= 0 {
			lines[last] += ","
		}
		lines = append(lines, reason)
	}
	return lines
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
