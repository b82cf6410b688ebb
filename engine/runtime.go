package engine

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"weft/engine/process"
	"weft/engine/sharding"
	"weft/pjrt"
)

// Options says which devices a Runtime takes and where compiled programs are kept.
type Options struct {
	// Plugin is the loaded PJRT plugin; PluginID names its build (its name, version and checksum) in cache keys.
	Plugin   *pjrt.Plugin
	PluginID string
	// ClientOptions are the plugin's create options, such as cpu_device_count.
	ClientOptions map[string]any
	// Mesh is the arrangement of the devices; its size is the number of devices taken.
	Mesh sharding.Mesh
	// MeshFor, when set, chooses the mesh instead, from the devices that the plugin has; FSDPMesh is one choice.
	MeshFor func(devices []*pjrt.DeviceDescription) (sharding.Mesh, error)
	// View is the environment's account of this process, which a TPU's runtime must agree with. Nil: it is read from the
	// environment.
	View *process.View
	// CacheDir keeps compiled programs between runs. Empty: no cache.
	CacheDir string
	// Logger gets one line for a thing worth knowing (a cache entry that was damaged). Nil: slog.Default.
	Logger *slog.Logger
}

// Runtime is a PJRT client and the mesh of its devices.
type Runtime struct {
	client *pjrt.Client
	mesh   sharding.Mesh
	// devices is the device of every mesh position, local or not.
	devices []*pjrt.Device
	// local lists the mesh positions whose device belongs to this process; owners has the process of every position.
	local, owners []int
	// process is this process's rank among those that have devices of the mesh, processes their number.
	process, processes int
	// hosts is set for a logical host.
	hosts *LogicalHosts
	// view is the environment's account, nil where there is no slice.
	view *process.View
	// exchange is the program of Exchange, once it is used.
	exchange *Program
	cache    *compileCache
	log      *slog.Logger
	// zeroCopy is the number of bytes from which a shard's host memory becomes its buffer; 0: never.
	zeroCopy int
}

// zeroCopyBytes is zeroCopy where the devices' memory is the host's: smaller shards are sooner copied than given pages of their own.
const zeroCopyBytes = 1 << 20

// Open creates the client and takes the Mesh.NumDevices() of its devices with the smallest ids, local or not; their order
// in the mesh follows where they stand in the slice, as AheadDevices has it. It fails when the plugin has fewer, or when none of them belongs to this process.
func Open(o Options) (*Runtime, error) {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	client, err := o.Plugin.NewClient(o.ClientOptions)
	if err != nil {
		return nil, fmt.Errorf("start the PJRT plugin %s: %w", o.Plugin.Path(), err)
	}
	rt := &Runtime{client: client, mesh: o.Mesh, log: o.Logger}
	if client.ZeroCopy() {
		rt.zeroCopy = zeroCopyBytes
	}
	if o.MeshFor != nil {
		rt.mesh, err = o.MeshFor(descriptions(client.Devices()))
	}
	if err == nil {
		err = rt.takeDevices()
	}
	if err != nil {
		_ = client.Close()
		return nil, err
	}
	if err := rt.checkView(o.View); err != nil {
		return nil, errors.Join(err, client.Close())
	}
	if o.CacheDir != "" {
		rt.cache = newCompileCache(o.CacheDir, rt.platform(o.PluginID).key(), o.Logger)
	}
	return rt, nil
}

func (rt *Runtime) takeDevices() error {
	all := rt.client.Devices()
	n := rt.mesh.NumDevices()
	if len(all) < n {
		return fmt.Errorf("the mesh %v needs %d devices, the %s plugin has %d: ask for fewer devices", rt.mesh, n, rt.client.PlatformName(), len(all))
	}
	byID := make(map[int]*pjrt.Device, len(all))
	for _, d := range all {
		byID[d.ID()] = d
	}
	for _, d := range meshDevices(descriptions(all), n) {
		rt.devices = append(rt.devices, byID[d.ID()])
	}
	for p, d := range rt.devices {
		if d.IsAddressable() {
			rt.local = append(rt.local, p)
		}
	}
	return rt.rank(all)
}

// rank numbers the processes. One without a device of the mesh is an error on all of them: it would leave the others alone.
func (rt *Runtime) rank(all []*pjrt.Device) error {
	of := func(devices []*pjrt.Device) []int {
		var processes []int
		for _, d := range devices {
			processes = append(processes, d.ProcessIndex())
		}
		slices.Sort(processes)
		return slices.Compact(processes)
	}
	taking := of(rt.devices)
	for _, p := range of(all) {
		if !slices.Contains(taking, p) {
			return fmt.Errorf("none of the %d devices of the mesh %v belongs to process %d: use all devices of the slice", len(rt.devices), rt.mesh, p)
		}
	}
	for _, d := range rt.devices {
		rt.owners = append(rt.owners, slices.Index(taking, d.ProcessIndex()))
	}
	rt.processes, rt.process = len(taking), rt.owners[rt.local[0]]
	return nil
}

// checkView compares the environment with what the runtime of a TPU says. Other plugins' devices are none of a slice.
func (rt *Runtime) checkView(v *process.View) (err error) {
	if rt.Platform() != "tpu" {
		return nil
	}
	if v == nil {
		if v, err = process.FromEnv(); err != nil {
			return fmt.Errorf("which host of the slice this is: %w", err)
		}
	}
	rt.view = v
	all := rt.client.Devices()
	return v.Agree(process.Seen{
		Process: rt.client.ProcessIndex(), Processes: rt.processes, Local: len(rt.client.AddressableDevices()), Devices: len(all), Kind: rt.DeviceKind(),
	})
}

func descriptions(devices []*pjrt.Device) []*pjrt.DeviceDescription {
	out := make([]*pjrt.DeviceDescription, len(devices))
	for i, d := range devices {
		out[i] = &d.DeviceDescription
	}
	return out
}

// platform describes what compiled programs depend on.
func (rt *Runtime) platform(pluginID string) platform {
	p := platform{pluginID: pluginID, name: rt.client.PlatformName(), version: rt.client.PlatformVersion()}
	p.devices = descriptions(rt.devices)
	return p
}

// Mesh returns the mesh of the runtime.
func (rt *Runtime) Mesh() sharding.Mesh { return rt.mesh }

// Platform returns the plugin's platform name, such as "cpu" or "tpu".
func (rt *Runtime) Platform() string { return rt.client.PlatformName() }

// DeviceKind describes the devices, such as "TPU v6 lite".
func (rt *Runtime) DeviceKind() string { return rt.devices[0].Kind() }

// LocalDevices returns the mesh positions whose devices belong to this process.
func (rt *Runtime) LocalDevices() []int { return slices.Clone(rt.local) }

// Process is this process's rank, from 0, among the Processes that have devices of the mesh.
func (rt *Runtime) Process() int { return rt.process }

// Processes is the number of processes that have devices of the mesh.
func (rt *Runtime) Processes() int { return rt.processes }

// HostName names the host of a process, for people: "host 2", with its name where the environment gives it.
func (rt *Runtime) HostName(of int) string {
	if v := rt.view; v != nil && v.Slices == 1 && len(v.Hosts) == rt.processes {
		return fmt.Sprintf("host %d (%s)", of, v.Hosts[of])
	}
	return fmt.Sprintf("host %d", of)
}

// MemoryStats returns the memory statistics of the first local device, in bytes. Plugins without them (CPU) give an
// error.
func (rt *Runtime) MemoryStats() (pjrt.MemoryStats, error) {
	return rt.devices[rt.local[0]].MemoryStats()
}

// Close releases the client; a logical host leaves that to all of them. Arrays, programs and states must have been destroyed.
func (rt *Runtime) Close() error {
	rt.exchange.Destroy()
	rt.exchange = nil
	if rt.hosts != nil {
		return nil
	}
	return rt.client.Close()
}
