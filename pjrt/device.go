package pjrt

import (
	"fmt"
	"unsafe"
)

// DeviceDescription is what is known of a device without a client: the devices of a topology have nothing else.
type DeviceDescription struct {
	id, processIndex         int
	kind, debugString, label string
	attrs                    map[string]any
}

// ID is the device's number, unique over all processes of a job.
func (d *DeviceDescription) ID() int { return d.id }

// ProcessIndex is the process that can address the device.
func (d *DeviceDescription) ProcessIndex() int { return d.processIndex }

// Kind is the vendor's name of the device type, such as "TPU v6 lite" or "cpu".
func (d *DeviceDescription) Kind() string { return d.kind }

// DebugString is a long description for logs.
func (d *DeviceDescription) DebugString() string { return d.debugString }

// String is a short description for people.
func (d *DeviceDescription) String() string { return d.label }

// Attributes are the vendor's, such as "coords" ([]int64) of a TPU; string, int64, []int64, float32 or bool. It must not be changed.
func (d *DeviceDescription) Attributes() map[string]any { return d.attrs }

// describe reads a PJRT_DeviceDescription.
func (p *Plugin) describe(handle uintptr) (DeviceDescription, error) {
	var d DeviceDescription
	var err error
	const op = "describe device"
	if d.id, err = p.getInt(fnDeviceDescriptionID, op, handle); err != nil {
		return d, err
	}
	if d.processIndex, err = p.getInt(fnDeviceDescriptionProcessIndex, op, handle); err != nil {
		return d, err
	}
	for _, s := range []struct {
		f   fn
		dst *string
	}{{fnDeviceDescriptionKind, &d.kind}, {fnDeviceDescriptionDebugString, &d.debugString}, {fnDeviceDescriptionToString, &d.label}} {
		if *s.dst, err = p.getString(s.f, op, handle); err != nil {
			return d, err
		}
	}
	args := &countedArgs{head: head{size: countedArgsSize}, obj: handle}
	if err = p.call(fnDeviceDescriptionAttributes, op, unsafe.Pointer(args)); err != nil {
		return d, err
	}
	d.attrs = namedValues(args.ptr, args.n)
	return d, nil
}

// Device is a device of a client. It lives as long as the client.
type Device struct {
	DeviceDescription
	client          *Client
	handle          uintptr
	addressable     bool
	localHardwareID int
}

// IsAddressable says whether this process can put data on the device.
func (d *Device) IsAddressable() bool { return d.addressable }

// LocalHardwareID is the device's number on this host; -1 for a device that another process addresses.
func (d *Device) LocalHardwareID() int { return d.localHardwareID }

// MemoryStats is the state of a device's memory, in bytes except for NumAllocs. Fields that the plugin does not report are -1.
type MemoryStats struct {
	BytesInUse, PeakBytesInUse                        int64
	NumAllocs                                         int64
	LargestAllocSize                                  int64
	BytesLimit                                        int64
	BytesReserved, PeakBytesReserved, BytesReservable int64
	LargestFreeBlock                                  int64
	PoolBytes, PeakPoolBytes                          int64
}

// MemoryStats asks the device about its memory. Plugins without an allocator of their own answer with code [Unimplemented].
func (d *Device) MemoryStats() (MemoryStats, error) {
	if d.client.handle.Load() == 0 {
		return MemoryStats{}, errClientClosed
	}
	args := &deviceMemoryStatsArgs{head: head{size: deviceMemoryStatsSize}, device: d.handle}
	if err := d.client.plugin.call(fnDeviceMemoryStats, fmt.Sprintf("memory stats of device %d", d.id), unsafe.Pointer(args)); err != nil {
		return MemoryStats{}, err
	}
	m := MemoryStats{BytesInUse: args.bytesInUse}
	for i, dst := range []*int64{&m.PeakBytesInUse, &m.NumAllocs, &m.LargestAllocSize, &m.BytesLimit, &m.BytesReserved,
		&m.PeakBytesReserved, &m.BytesReservable, &m.LargestFreeBlock, &m.PoolBytes, &m.PeakPoolBytes} {
		*dst = -1
		if args.stats[i].set {
			*dst = args.stats[i].value
		}
	}
	return m, nil
}
