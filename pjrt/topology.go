package pjrt

import (
	"errors"
	"runtime"
	"sync/atomic"
	"unsafe"
)

var errTopologyDestroyed = errors.New("pjrt: the topology was destroyed")

// Topology is an arrangement of devices that programs can be compiled for, with or without the devices being present.
type Topology struct {
	plugin *Plugin
	client *Client // the owner of a client's topology; nil for one of NewTopology
	handle atomic.Uintptr
}

// NewTopology describes devices that need not be present. The plugin defines the names and options: libtpu knows "v6e:4x4",
// "tpu7x:2x2x2", "v5p:2x2x2" and the like. Destroy it.
func (p *Plugin) NewTopology(name string, opts map[string]any) (*Topology, error) {
	values, keep, err := toNamedValues(opts)
	if err != nil {
		return nil, err
	}
	args := &topologyCreateArgs{head: head{size: topologyCreateSize}, name: textData(name), nameSize: uintptr(len(name)),
		options: data(values), numOptions: uintptr(len(values))}
	err = p.call(fnTopologyDescriptionCreate, "topology "+name, unsafe.Pointer(args))
	runtime.KeepAlive(keep)
	if err != nil {
		return nil, err
	}
	t := &Topology{plugin: p}
	t.handle.Store(args.topology)
	liveHandles[topologyHandle].Add(1)
	return t, nil
}

// live is the handle, or an error if it must not be used any more.
func (t *Topology) live() (uintptr, error) {
	if t.client != nil && t.client.handle.Load() == 0 {
		return 0, errClientClosed
	}
	h := t.handle.Load()
	if h == 0 {
		return 0, errTopologyDestroyed
	}
	return h, nil
}

// PlatformName is "tpu", "cpu" or the like.
func (t *Topology) PlatformName() (string, error) {
	h, err := t.live()
	if err != nil {
		return "", err
	}
	return t.plugin.getString(fnTopologyDescriptionPlatformName, "platform of topology", h)
}

// PlatformVersion names the platform's build.
func (t *Topology) PlatformVersion() (string, error) {
	h, err := t.live()
	if err != nil {
		return "", err
	}
	return t.plugin.getString(fnTopologyDescriptionPlatformVer, "platform version of topology", h)
}

// Devices describes the devices in the plugin's order.
func (t *Topology) Devices() ([]*DeviceDescription, error) {
	h, err := t.live()
	if err != nil {
		return nil, err
	}
	handles, err := getSpan[uintptr](t.plugin, fnTopologyDescriptionGetDevices, "devices of topology", h)
	if err != nil {
		return nil, err
	}
	out := make([]*DeviceDescription, len(handles))
	for i, dh := range handles {
		d, err := t.plugin.describe(dh)
		if err != nil {
			return nil, err
		}
		out[i] = &d
	}
	return out, nil
}

// Attributes are the vendor's: string, int64, []int64, float32 or bool.
func (t *Topology) Attributes() (map[string]any, error) {
	h, err := t.live()
	if err != nil {
		return nil, err
	}
	args := &spanArgs{head: head{size: spanArgsSize}, obj: h}
	if err := t.plugin.call(fnTopologyDescriptionAttributes, "attributes of topology", unsafe.Pointer(args)); err != nil {
		return nil, err
	}
	return namedValues(args.ptr, args.n), nil
}

// Serialize writes the topology in the plugin's format.
func (t *Topology) Serialize() ([]byte, error) {
	h, err := t.live()
	if err != nil {
		return nil, err
	}
	return t.plugin.serialize(fnTopologyDescriptionSerialize, "serialize topology", h)
}

// Compile compiles a StableHLO module for the topology's devices. The result can be serialized, and loaded where the devices are.
func (t *Topology) Compile(code []byte, opts CompileOptions) (*Executable, error) {
	h, err := t.live()
	if err != nil {
		return nil, err
	}
	return t.plugin.compileAhead(h, code, opts)
}

// Destroy frees the topology. One that belongs to a client is left alone.
func (t *Topology) Destroy() error {
	if t == nil || t.client != nil {
		return nil
	}
	return t.plugin.destroy(&t.handle, topologyHandle, fnTopologyDescriptionDestroy, nil)
}
