package engine

import (
	"fmt"
	"log/slog"
	"slices"

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
	// local lists the mesh positions whose device belongs to this process.
	local []int
	cache *compileCache
	log   *slog.Logger
}

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
	if len(rt.local) == 0 {
		return fmt.Errorf("none of the %d devices of the mesh %v belongs to process %d: use all devices of the slice", n, rt.mesh, rt.client.ProcessIndex())
	}
	return nil
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

// ProcessIndex is this process's number among those of the slice.
func (rt *Runtime) ProcessIndex() int { return rt.client.ProcessIndex() }

// MemoryStats returns the memory statistics of the first local device, in bytes. Plugins without them (CPU) give an
// error.
func (rt *Runtime) MemoryStats() (pjrt.MemoryStats, error) {
	return rt.devices[rt.local[0]].MemoryStats()
}

// Close releases the client. Arrays, programs and states must have been destroyed.
func (rt *Runtime) Close() error { return rt.client.Close() }
