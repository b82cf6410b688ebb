package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"weft/engine/process"
	"weft/internal/memory"
	"weft/pjrt/plugin"
)

const (
	gib = 1 << 30
	// leastShm is what libtpu and Ray's object store want of /dev/shm; containers have 64 MB by default.
	leastShm = 1 * gib
	// leastMemory and leastDisk are what a small run needs beside the model.
	leastMemory, leastDisk = 4 * gib, 10 * gib
)

func size(n uint64) string { return fmt.Sprintf("%.1f GiB", float64(n)/gib) }

// plugin looks for the platform's plugin.
func (d *doctor) plugin(context.Context) {
	info, err := d.Find(d.Platform, d.Plugin)
	switch {
	case errors.Is(err, plugin.ErrNotInstalled):
		d.add("plugin", Fail, "weft plugin install "+d.Platform, "no plugin for %s on this machine", d.Platform)
	case err != nil:
		d.add("plugin", Fail, "", "%v", err)
	default:
		d.info = info
		d.add("plugin", OK, "", "%s, %s", d.pluginName(), info.Path)
	}
}

// pluginName is the plugin with its version, as far as they are known.
func (d *doctor) pluginName() string {
	return cmp.Or(d.info.Name, d.info.Platform, "plugin") + " " + cmp.Or(d.info.Version, "of unknown version")
}

// slice reads what the environment says of the slice.
func (d *doctor) slice(context.Context) {
	v, err := process.Read(d.Getenv)
	if err != nil {
		d.add("slice", Fail, "unset what is left of another slice, or start weft by what set it up", "%v", err)
		return
	}
	d.view = v
	switch {
	case d.unnamed():
		d.add("slice", OK, "", "the environment names no slice: the TPU's runtime alone knows whether there are other hosts")
		return
	case v.Single() && v.Topology == nil:
		d.add("slice", OK, "", "the environment names no slice: this host alone")
		return
	}
	topology := "a shape that the environment does not give"
	if v.Topology != nil {
		topology = v.Topology.String()
	}
	d.add("slice", OK, "", "%s, %s", topology, v)
}

// unnamed tells that the environment of a TPU host says nothing of other hosts, as that of a TPU VM: its slice may have some.
func (d *doctor) unnamed() bool {
	return d.Platform == "tpu" && len(d.view.Hosts) == 0 && d.view.Topology == nil
}

// chips compares the chips of this host with what the environment says.
func (d *doctor) chips(context.Context) {
	n := d.Chips()
	switch {
	case d.Platform != "tpu" && n == 0:
		d.add("chips", Skip, "", "no TPU on this host")
	case n == 0:
		d.add("chips", Fail, "run on a TPU VM, or in a container with access to its devices (on GKE: the resource google.com/tpu)", "no TPU chip is seen on the PCI bus")
	case d.view != nil && d.view.Chips > 0 && d.view.Chips != n:
		d.add("chips", Fail, "start one weft on the whole host, without TPU_VISIBLE_CHIPS or bounds of another one", "%d chips on the PCI bus, the environment gives this process %d", n, d.view.Chips)
	default:
		d.add("chips", OK, "", "%d TPU chips", n)
	}
}

// lock looks who holds libtpu.
func (d *doctor) lock(context.Context) {
	st, err := os.Stat(d.LockFile)
	if errors.Is(err, fs.ErrNotExist) {
		d.add("libtpu lock", OK, "", "free")
		return
	}
	if err != nil {
		d.add("libtpu lock", Warn, "", "%v", err)
		return
	}
	if pid := d.Holder(d.LockFile); pid > 0 {
		d.add("libtpu lock", Fail, fmt.Sprintf("wait for process %d, or end it", pid), "%s is held by process %d (%s)", d.LockFile, pid, d.command(pid))
		return
	}
	if unix.Access(d.LockFile, unix.W_OK) != nil {
		d.add("libtpu lock", Fail, "have its owner delete it", "%s is left of another user (mode %s), nobody holds it, and this user cannot write it", d.LockFile, st.Mode())
		return
	}
	d.add("libtpu lock", OK, "", "free (%s is left of an earlier process, which is harmless)", d.LockFile)
}

// command is the command line of a process.
func (d *doctor) command(pid int) string {
	line := d.kernel(fmt.Sprintf("/proc/%d/cmdline", pid))
	if line == "" {
		return "of another user or container"
	}
	words := strings.Split(strings.TrimRight(line, "\x00"), "\x00")
	words[0] = filepath.Base(words[0])
	return strings.Join(words[:min(len(words), 4)], " ")
}

// shm looks at the memory file system that processes of a host share.
func (d *doctor) shm(context.Context) {
	var st unix.Statfs_t
	if err := unix.Statfs(d.Shm, &st); err != nil {
		d.add("shm", Warn, "mount a memory volume there", "%s: %v", d.Shm, err)
		return
	}
	total := st.Blocks * uint64(st.Bsize)
	if total < leastShm {
		d.add("shm", Warn, "give the container more: on Kubernetes an emptyDir of medium Memory at /dev/shm (weft k8s render does), with docker --shm-size", "%s has %s", d.Shm, size(total))
		return
	}
	d.add("shm", OK, "", "%s in %s", size(total), d.Shm)
}

// memory looks at what this process may still take, by the machine and by its container.
func (d *doctor) memory(context.Context) {
	left, ok := memory.From(d.kernel)
	if !ok {
		d.add("memory", Skip, "", "the kernel does not tell")
		return
	}
	from := "of this machine"
	if left.Container {
		from = "of this container"
	}
	status, fix := OK, ""
	if left.Bytes < leastMemory {
		status, fix = Warn, "give the run more memory: weft holds a slice of the largest tensor, and while it saves the host's part of the train state"
	}
	d.add("memory", status, fix, "%s free %s", size(uint64(left.Bytes)), from)
}

// kernel is the content of a file that the kernel gives, "" when it is not there.
func (d *doctor) kernel(name string) string {
	b, err := os.ReadFile(filepath.Join(d.Root, name))
	if err != nil {
		return ""
	}
	return string(b)
}
