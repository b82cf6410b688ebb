package job

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"weft/engine"
	"weft/engine/sharding"
	"weft/engine/tpu"
	"weft/pjrt"
	"weft/pjrt/plugin"
)

// parseTopology reads 4x4 or 2x2x2; "" is nil.
func parseTopology(text string) ([]int, error) {
	if text == "" {
		return nil, nil
	}
	var dims []int
	for part := range strings.SplitSeq(strings.ToLower(text), "x") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 1 || n > 1<<16 {
			return nil, fmt.Errorf("--topology %s: give the chips along each side, such as 4x4 or 2x2x2", text)
		}
		dims = append(dims, n)
		if product(dims) > maxDevices { // checked at each side, so that the product cannot overflow
			return nil, fmt.Errorf("--topology %s: it has more than %d devices", text, maxDevices)
		}
	}
	return dims, nil
}

// maxDevices bounds the number of devices that a flag may ask for.
const maxDevices = 1 << 20

func product(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

// accelerator is a TPU type: what the plugin calls such a device, and how many devices a chip of it is.
type accelerator struct {
	kinds         []string
	devicePerChip int
}

// accelerators are those that have a name in a job's flags: those that weft knows, and one that it has no figures of.
var accelerators = func() map[string]accelerator {
	out := map[string]accelerator{"TPU-V4": {[]string{"TPU v4"}, 1}}
	for _, c := range tpu.Chips {
		for _, name := range c.AcceleratorTypes {
			out[name] = accelerator{c.DeviceKinds, c.DevicesPerChip}
		}
	}
	return out
}()

func acceleratorNames() string {
	var names []string
	for name := range accelerators {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// platform chooses between TPU and CPU, and refuses flags that contradict each other.
func (c *DeviceFlags) platform() (string, error) {
	kind := strings.ToUpper(c.AcceleratorType)
	if kind != "" {
		if _, ok := accelerators[kind]; !ok {
			return "", fmt.Errorf("--accelerator-type %s is not known: give one of %s", c.AcceleratorType, acceleratorNames())
		}
		if c.Platform == PlatformCPU {
			return "", fmt.Errorf("--accelerator-type %s contradicts --platform cpu: leave out one of them", c.AcceleratorType)
		}
		return PlatformTPU, nil
	}
	if c.Platform != PlatformAuto {
		return c.Platform, nil
	}
	if plugin.TPUChips() > 0 {
		return PlatformTPU, nil
	}
	return PlatformCPU, nil
}

// cpuDevices is the number of virtual devices to make.
func (c *DeviceFlags) cpuDevices() (int, error) {
	dims, err := parseTopology(c.Topology)
	if err != nil {
		return 0, err
	}
	n, from := 1, ""
	for _, f := range []struct {
		name  string
		value int
	}{{"--devices", c.Devices}, {"--num-workers", c.NumWorkers}, {"--topology", product(dims) * min(1, len(dims))}} {
		switch {
		case f.value == 0:
		case from == "":
			n, from = f.value, f.name
		case f.value != n:
			return 0, fmt.Errorf("%s asks for %d devices and %s for %d: they must agree", from, n, f.name, f.value)
		}
	}
	return n, nil
}

// maxVirtualDevices bounds --devices on a CPU: each is a thread pool of the plugin.
const maxVirtualDevices = 256

// openRuntime finds the plugin and opens the devices as a mesh whose axes all split batches and parameters.
func openRuntime(ctx context.Context, c *DeviceFlags, r *report) (*engine.Runtime, error) {
	platform, err := c.platform()
	if err != nil {
		return nil, Input(err)
	}
	if platform == PlatformTPU && !plugin.MayHaveTPU() {
		return nil, Input(errors.New("no TPU chip is seen on this machine: run on a TPU VM or in a container with access to its devices (on GKE: the resource google.com/tpu); " +
			"elsewhere, --platform cpu without --accelerator-type runs on virtual devices, and weft plan compiles for a slice"))
	}
	o, err := runtimeOptions(ctx, c, platform, r)
	if err != nil {
		return nil, Input(err)
	}
	rt, err := engine.Open(o)
	if err != nil {
		return nil, inputUnlessPassing(err)
	}
	if platform != PlatformCPU { // the virtual devices were made to fit
		if err := c.checkFound(rt.Mesh().NumDevices(), rt.DeviceKind()); err != nil {
			return nil, Input(errors.Join(err, rt.Close()))
		}
	}
	return rt, nil
}

// runtimeOptions are what the devices of a platform are opened with. It may fetch a plugin.
func runtimeOptions(ctx context.Context, c *DeviceFlags, platform string, r *report) (o engine.Options, err error) {
	devices := 0
	if platform == PlatformCPU {
		if devices, err = c.cpuDevices(); err != nil {
			return o, err
		}
		if devices > maxVirtualDevices {
			return o, fmt.Errorf("--devices: %d virtual CPU devices are more than %d: ask for fewer", devices, maxVirtualDevices)
		}
	}
	info, err := plugin.Resolve(ctx, platform, c.Plugin, r.Out)
	if err != nil {
		return o, err
	}
	p, err := pjrt.Load(info.Path)
	if err != nil {
		return o, err
	}
	o = engine.Options{Plugin: p, PluginID: info.SHA256, Logger: r.Log}
	if o.CacheDir, err = compileCacheDir(c.CompileCache); err != nil {
		return o, err
	}
	if platform == PlatformCPU {
		o.ClientOptions = map[string]any{"cpu_device_count": int64(devices)}
	}
	o.MeshFor = func(all []*pjrt.DeviceDescription) (sharding.Mesh, error) {
		return engine.FSDPMesh(all, c.meshSize(platform, devices, len(all)))
	}
	return o, nil
}

func (c *DeviceFlags) meshSize(platform string, virtual, all int) int {
	switch {
	case platform == PlatformCPU:
		return virtual
	case c.Devices > 0:
		return c.Devices
	}
	return all
}

// checkFound compares the devices found, and their kind, with what --num-workers, --topology and --accelerator-type
// expect.
func (c *DeviceFlags) checkFound(found int, kind string) error {
	if c.NumWorkers > 0 && c.NumWorkers != found {
		return fmt.Errorf("--num-workers is %d, the run has %d devices (%s): correct it or leave it out", c.NumWorkers, found, kind)
	}
	perChip := 1
	for name, a := range accelerators {
		if slices.Contains(a.kinds, kind) {
			perChip = a.devicePerChip
		}
		if name == strings.ToUpper(c.AcceleratorType) && !slices.Contains(a.kinds, kind) {
			return fmt.Errorf("--accelerator-type is %s, the devices are %s: correct it or leave it out", c.AcceleratorType, kind)
		}
	}
	dims, err := parseTopology(c.Topology)
	if err != nil {
		return err
	}
	if want := product(dims) * perChip; len(dims) > 0 && want != found {
		return fmt.Errorf("--topology %s is %d devices of %s, the run has %d: correct it or leave it out", c.Topology, want, kind, found)
	}
	return nil
}

// compileCacheDir is the folder of a --compile-cache flag, "" for off.
func compileCacheDir(flag string) (string, error) {
	switch flag {
	case CacheOff:
		return "", nil
	case "":
		dir, err := plugin.CacheDir()
		return filepath.Join(dir, "compile"), err
	}
	return filepath.Abs(flag)
}
