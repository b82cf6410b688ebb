package job

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// heartbeatDir is the folder under the run's own in which its hosts tell how they are.
const heartbeatDir = ".weft-hosts"

const (
	// beatEvery is the time between two heartbeats of a host, lookEvery that between two looks of rank 0 at all of them.
	beatEvery, lookEvery = 15 * time.Second, time.Minute
	// silentAfter is how much older than rank 0's own heartbeat another's may be before it is spoken of.
	silentAfter = 3 * beatEvery
	// slowShare is the part of a step that a host must have made the others wait to be called slow.
	slowShare = 0.1
)

// beat is what a host tells.
type beat struct {
	Host    string `json:"host"`
	Process int    `json:"process"`
	// Phase is what the host does, and Still for how many seconds it has not gone on in it.
	Phase string  `json:"phase"`
	Still float64 `json:"still_s"`
	Step  int     `json:"step"`
	// Work is how many seconds of a step, on average since the last heartbeat, the host itself took before it could launch the
	// next: the data, above all. In a step all hosts wait for the one that takes longest.
	Work     float64 `json:"host_s"`
	StepTime float64 `json:"step_time_s"`
}

// heartbeat tells the other hosts of a run how this one is, through the storage path, and on rank 0 speaks of those that are
// silent or slow. Nothing is decided by it: what ends a host that stands still is its own watchdog.
type heartbeat struct {
	folder place
	log    *slog.Logger
	hosts  int
	// phase is the watchdog's.
	phase func() (name string, still time.Duration)

	mu    sync.Mutex
	self  beat
	steps int
	work  time.Duration
	took  float64

	// told are the hosts that rank 0 has spoken of, and what it said, without figures: other ones are no news.
	told map[int]string

	stop chan struct{}
	done chan struct{}
}

// startHeartbeat begins to tell. It returns nil, which is a heartbeat that does nothing, where this host is alone.
func startHeartbeat(folder place, host string, process, hosts int, phase func() (string, time.Duration), log *slog.Logger) *heartbeat {
	if hosts < 2 {
		return nil
	}
	h := newHeartbeat(folder, host, process, hosts, phase, log)
	go h.run(beatEvery, lookEvery)
	return h
}

func newHeartbeat(folder place, host string, process, hosts int, phase func() (string, time.Duration), log *slog.Logger) *heartbeat {
	return &heartbeat{
		folder: folder, log: log, hosts: hosts, phase: phase, self: beat{Host: host, Process: process},
		told: map[int]string{}, stop: make(chan struct{}), done: make(chan struct{}),
	}
}

// step records a step that ended: how long it took in seconds, and how long this host worked before it could launch it.
func (h *heartbeat) step(step int, took float64, work time.Duration) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.self.Step = step
	h.steps++
	h.took += took
	h.work += work
}

// close ends it after a last heartbeat.
func (h *heartbeat) close() {
	if h == nil {
		return
	}
	close(h.stop)
	<-h.done
}

func (h *heartbeat) run(every, look time.Duration) {
	defer close(h.done)
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	looked := time.Now()
	for {
		h.beat()
		if h.self.Process == 0 && time.Since(looked) >= look {
			looked = time.Now()
			h.look()
		}
		select {
		case <-ticker.C:
		case <-h.stop:
			h.beat()
			return
		}
	}
}

func (h *heartbeat) file(process int) place {
	return h.folder.in(heartbeatDir, fmt.Sprintf("host-%04d.json", process))
}

// beat writes this host's file. A failure is no fault of the run: what matters is written by others.
func (h *heartbeat) beat() {
	name, still := h.phase()
	h.mu.Lock()
	h.self.Phase, h.self.Still = name, still.Seconds()
	if h.steps > 0 {
		h.self.Work, h.self.StepTime = h.work.Seconds()/float64(h.steps), h.took/float64(h.steps)
	}
	h.steps, h.work, h.took = 0, 0, 0
	raw, err := json.Marshal(h.self)
	h.mu.Unlock()
	if err != nil {
		return
	}
	file := h.file(h.self.Process)
	if err := file.fs.MkdirAll(h.folder.in(heartbeatDir).name); err == nil {
		err = file.fs.Replace(file.name, raw)
		if err != nil {
			h.log.Debug("heartbeat not written", "file", file.String(), "error", err)
		}
	}
}

// heard is a heartbeat with its age against rank 0's own, by the storage's clock.
type heard struct {
	beat
	age time.Duration
	ok  bool
}

var figures = regexp.MustCompile(`[0-9]+`)

// look reads all heartbeats and speaks of what changed.
func (h *heartbeat) look() {
	all := make([]heard, h.hosts)
	own, timed := h.file(0).writtenAt()
	for i := range all {
		raw, err := h.file(i).read()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil || json.Unmarshal(raw, &all[i].beat) != nil {
			continue
		}
		all[i].ok = true
		if at, known := h.file(i).writtenAt(); known && timed {
			all[i].age = own.Sub(at)
		}
	}
	for i, text := range judge(all) {
		gist := figures.ReplaceAllString(text, "")
		if h.told[i] == gist {
			continue
		}
		h.told[i] = gist
		if text != "" {
			h.log.Warn(text)
		}
	}
}

// judge says of each host what is to be said, "" for nothing: which are silent, and which is the slowest when the others
// wait for it.
func judge(all []heard) []string {
	out := make([]string, len(all))
	slowest, others := -1, []float64{}
	for i, h := range all {
		switch {
		case !h.ok:
			out[i] = fmt.Sprintf("host %d has not been heard of: did its process start?", i)
		case h.age > silentAfter:
			out[i] = fmt.Sprintf("host %s (%d) is silent: it was in %s at step %d when it was last heard of", h.Host, i, phaseOr(h.Phase), h.Step)
		default:
			if slowest < 0 || h.Work > all[slowest].Work {
				slowest = i
			}
			others = append(others, h.Work)
		}
	}
	if len(others) < 2 {
		return out
	}
	slices.Sort(others)
	median := others[(len(others)-1)/2]
	s := all[slowest]
	if s.StepTime > 0 && s.Work-median > slowShare*s.StepTime {
		out[slowest] = fmt.Sprintf("host %s (%d) is the slowest: it makes the others wait, with %s of its own work before each step where the others need %s; look at its data and processor",
			s.Host, slowest, millis(s.Work), millis(median))
	}
	return out
}

func phaseOr(name string) string {
	if strings.TrimSpace(name) == "" {
		return "no phase"
	}
	return name
}

func millis(seconds float64) string { return fmt.Sprintf("%.0f ms", 1000*seconds) }
