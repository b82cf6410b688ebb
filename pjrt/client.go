package pjrt

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"unsafe"
)

// errClientClosed is what every use of a closed client answers.
var errClientClosed = errors.New("pjrt: the client is closed")

// Client is a connection to a plugin's devices.
type Client struct {
	plugin          *Plugin
	handle          atomic.Uintptr
	platformName    string
	platformVersion string
	processIndex    int
	devices         []*Device
	addressable     []*Device
	byHandle        map[uintptr]*Device
	children        atomic.Int64 // live buffers and executables, which must not outlive the client
}

// NewClient connects to the plugin's devices. opts are the plugin's create options, such as "cpu_device_count" (int64) of XLA's CPU
// plugin; values are string, bool, int, int64, float32 or []int64.
func (p *Plugin) NewClient(opts map[string]any) (*Client, error) {
	values, keep, err := toNamedValues(opts)
	if err != nil {
		return nil, err
	}
	args := &clientCreateArgs{head: head{size: clientCreateSize}, options: data(values), numOptions: uintptr(len(values))}
	err = p.call(fnClientCreate, "create client", unsafe.Pointer(args))
	runtime.KeepAlive(keep)
	if err != nil {
		return nil, err
	}
	c := &Client{plugin: p, byHandle: map[uintptr]*Device{}}
	c.handle.Store(args.client)
	liveHandles[clientHandle].Add(1)
	if err := c.describe(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// describe reads what does not change during the client's life.
func (c *Client) describe() error {
	p, h := c.plugin, c.handle.Load()
	const op = "describe client"
	var err error
	if c.platformName, err = p.getString(fnClientPlatformName, op, h); err != nil {
		return err
	}
	if c.platformVersion, err = p.getString(fnClientPlatformVersion, op, h); err != nil {
		return err
	}
	if c.processIndex, err = p.getInt(fnClientProcessIndex, op, h); err != nil {
		return err
	}
	all, err := getSpan[uintptr](p, fnClientDevices, op, h)
	if err != nil {
		return err
	}
	for _, dh := range all {
		d, err := c.newDevice(dh)
		if err != nil {
			return err
		}
		c.devices = append(c.devices, d)
		c.byHandle[dh] = d
	}
	local, err := getSpan[uintptr](p, fnClientAddressableDevices, op, h)
	if err != nil {
		return err
	}
	c.addressable, err = c.devicesOf(local)
	return err
}

func (c *Client) newDevice(handle uintptr) (*Device, error) {
	const op = "describe device"
	p := c.plugin
	desc, err := p.getWord(fnDeviceGetDescription, op, handle)
	if err != nil {
		return nil, err
	}
	d := &Device{client: c, handle: handle, localHardwareID: -1}
	if d.DeviceDescription, err = p.describe(desc); err != nil {
		return nil, err
	}
	if d.addressable, err = p.getBool(fnDeviceIsAddressable, op, handle); err != nil {
		return nil, err
	}
	if d.addressable {
		if d.localHardwareID, err = p.getInt(fnDeviceLocalHardwareID, op, handle); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// devicesOf finds the devices of C handles.
func (c *Client) devicesOf(handles []uintptr) ([]*Device, error) {
	devices := make([]*Device, len(handles))
	for i, h := range handles {
		if devices[i] = c.byHandle[h]; devices[i] == nil {
			return nil, fmt.Errorf("pjrt: plugin %s named a device that is not among the client's", c.plugin.path)
		}
	}
	return devices, nil
}

// Close ends the connection. It is refused while buffers or executables of the client are alive, because destroying those later would
// use freed memory: destroy them first. Closing again does nothing.
func (c *Client) Close() error {
	if n := c.children.Load(); n != 0 && c.handle.Load() != 0 {
		return fmt.Errorf("pjrt: close client: %d of its buffers and executables are alive; destroy them first", n)
	}
	return c.plugin.destroy(&c.handle, clientHandle, fnClientDestroy, nil)
}

// Plugin is the plugin that the client was made by.
func (c *Client) Plugin() *Plugin { return c.plugin }

// PlatformName is "cpu", "tpu", "cuda" or the like.
func (c *Client) PlatformName() string { return c.platformName }

// PlatformVersion names the platform's build. It may have several lines.
func (c *Client) PlatformVersion() string { return c.platformVersion }

// ProcessIndex is this process's number in a job of several.
func (c *Client) ProcessIndex() int { return c.processIndex }

// Devices are all devices of the job, those of other processes too, in the plugin's order. It must not be changed.
func (c *Client) Devices() []*Device { return c.devices }

// AddressableDevices are the devices that this process can put data on. It must not be changed.
func (c *Client) AddressableDevices() []*Device { return c.addressable }

// DefaultDeviceAssignment is the plugin's own choice of devices for a program: global device ids, replica-major, of length
// replicas*partitions.
func (c *Client) DefaultDeviceAssignment(replicas, partitions int) ([]int, error) {
	h := c.handle.Load()
	if h == 0 {
		return nil, errClientClosed
	}
	if replicas < 1 || partitions < 1 {
		return nil, fmt.Errorf("pjrt: device assignment of %d replicas and %d partitions: both must be at least 1", replicas, partitions)
	}
	ids := make([]int32, replicas*partitions)
	args := &defaultAssignmentArgs{head: head{size: defaultAssignmentSize}, client: h, numReplicas: int32(replicas),
		numPartitions: int32(partitions), size: uintptr(len(ids)), assignment: data(ids)}
	if err := c.plugin.call(fnClientDefaultDeviceAssignment, "default device assignment", unsafe.Pointer(args)); err != nil {
		return nil, err
	}
	out := make([]int, len(ids))
	for i, id := range ids {
		out[i] = int(id)
	}
	return out, nil
}

// TopologyDescription is the arrangement of the client's devices. It belongs to the client: use it no longer than that; Destroy does
// nothing.
func (c *Client) TopologyDescription() (*Topology, error) {
	h := c.handle.Load()
	if h == 0 {
		return nil, errClientClosed
	}
	t, err := c.plugin.getWord(fnClientTopologyDescription, "topology of client", h)
	if err != nil {
		return nil, err
	}
	top := &Topology{plugin: c.plugin, client: c}
	top.handle.Store(t)
	return top, nil
}
