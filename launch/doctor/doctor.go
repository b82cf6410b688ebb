// Package doctor looks whether a host is fit for a run of weft: the plugin, the TPU and who holds it, what the environment
// says of the slice, memory and disks, the storage path, and whether the other hosts have the same weft.
//
// Each check says in one line what it found and, where that is not good, what to do. Nothing is changed, but for a file in
// the storage path that is written and deleted to see that it can be.
package doctor

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"weft/engine/process"
	"weft/pjrt"
	"weft/pjrt/plugin"
)

// Status of a check.
type Status string

// A Fail is what a run would fail of, a Warn what it may, a Skip what could not be looked at.
const (
	OK   Status = "ok"
	Warn Status = "warn"
	Fail Status = "fail"
	Skip Status = "skip"
)

// Check is one thing that was looked at.
type Check struct {
	Name   string `json:"name"`
	Status Status `json:"status"`
	// Detail is what was found, Fix what to do about it, "" where nothing is.
	Detail string `json:"detail"`
	Fix    string `json:"fix,omitempty"`
}

// Report is what was found on one host.
type Report struct {
	Host   string  `json:"host"`
	Weft   string  `json:"weft"`
	Checks []Check `json:"checks"`
}

// Failed tells whether any check failed.
func (r *Report) Failed() bool {
	return slices.ContainsFunc(r.Checks, func(c Check) bool { return c.Status == Fail })
}

// Options say what to look at.
type Options struct {
	// Platform is "tpu", "cpu", or "" for TPU where this host has one and CPU elsewhere.
	Platform string
	// Plugin is the path of a plugin to look at instead of the installed one.
	Plugin string
	// Storage is the run's storage path, local or gs://; "" leaves out what needs it.
	Storage string
	// Hub asks the Hugging Face hub whether it takes the token; Endpoint is its address.
	Hub      bool
	Endpoint string
	// Wait is how long to wait for the reports of the slice's other hosts in the storage path.
	Wait time.Duration
	// Version is that of this weft.
	Version string

	// System is where the host is looked at; the zero value is this machine.
	System System
}

// System is a host as seen through its files, so that tests can show another one.
type System struct {
	Getenv   func(string) string
	Chips    func() int // on the PCI bus
	Find     func(platform, override string) (plugin.Info, error)
	Holder   func(lockFile string) int
	LockFile string // of libtpu
	Root     string // above /proc and /sys
	Shm      string // /dev/shm
	Hostname func() (string, error)
	Now      func() time.Time
}

func (s System) orReal() System {
	if s.Getenv == nil {
		s = System{
			Getenv: os.Getenv, Chips: plugin.TPUChips, Find: plugin.Find, Holder: pjrt.LockHolder,
			LockFile: "/tmp/libtpu_lockfile", Root: "/", Shm: "/dev/shm",
			Hostname: os.Hostname, Now: time.Now,
		}
	}
	return s
}

// doctor is an examination under way.
type doctor struct {
	Options
	System
	report *Report
	view   *process.View // nil when the environment is contradictory
	info   plugin.Info   // zero when there is no plugin
}

// Run looks at everything. A cancelled context ends what waits.
func Run(ctx context.Context, o Options) *Report {
	d := &doctor{Options: o, System: o.System.orReal(), report: &Report{Weft: o.Version, Checks: []Check{}}}
	d.report.Host, _ = d.Hostname()
	if d.Platform == "" {
		d.Platform = "cpu"
		if d.Chips() > 0 {
			d.Platform = "tpu"
		}
	}
	for _, check := range []func(context.Context){
		d.plugin, d.slice, d.chips, d.lock, d.shm, d.memory, d.disk, d.storage, d.hub, d.hosts,
	} {
		check(ctx)
	}
	return d.report
}

func (d *doctor) add(name string, status Status, fix, format string, args ...any) {
	d.report.Checks = append(d.report.Checks, Check{Name: name, Status: status, Detail: fmt.Sprintf(format, args...), Fix: fix})
}
