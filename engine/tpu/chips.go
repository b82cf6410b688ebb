package tpu

import (
	"fmt"
	"slices"
	"strings"
)

// Chip is a type of TPU chip.
type Chip struct {
	// Name is the short name, in topology names too: v5e, v5p, v6e, tpu7x.
	Name string
	// Title is the name in documents.
	Title string
	// DeviceKinds are what a PJRT plugin calls one of its devices.
	DeviceKinds []string
	// AcceleratorTypes are the names that Ray and GKE jobs have for it, in upper case.
	AcceleratorTypes []string

	// DevicesPerChip is the number of PJRT devices that a chip is: 2 where its two halves are devices of their own.
	DevicesPerChip int
	// ChipsPerHost is the number of chips of a host of a slice of several hosts.
	ChipsPerHost int

	// PeakBF16 is the rate of bfloat16 products on one chip, FLOP/s.
	PeakBF16 float64
	// HBMBytes and HBMBandwidth (bytes/s) are of one chip.
	HBMBytes     int64
	HBMBandwidth float64
	// ClockHz is the clock of the matrix units: PeakBF16 over twice the number of their cells.
	ClockHz float64

	// LinkBandwidth is that of one inter-chip link, bytes/s in one direction.
	LinkBandwidth float64
	// OnChipBandwidth joins the two devices of a chip, bytes/s in one direction; 0 where a chip is one device.
	OnChipBandwidth float64
	// DCNBandwidth is one chip's share of its host's data center network, bytes/s in one direction.
	DCNBandwidth float64

	// shapes lists the slices that can be had; largest is the largest in whole cubes of 4x4x4 chips, nil for chips that
	// are joined in two dimensions.
	shapes  [][]int
	largest []int
	// wrapAt is the size of an axis from which on its ends are joined, for chips joined in two dimensions.
	wrapAt int
}

// PeakBF16PerDevice is the rate of bfloat16 products on one device, FLOP/s.
func (c *Chip) PeakBF16PerDevice() float64 { return c.PeakBF16 / float64(c.DevicesPerChip) }

// HBMBandwidthPerDevice is the bandwidth of one device to its memory, bytes/s.
func (c *Chip) HBMBandwidthPerDevice() float64 { return c.HBMBandwidth / float64(c.DevicesPerChip) }

// HBMBytesPerDevice is the memory of one device.
func (c *Chip) HBMBytesPerDevice() int64 { return c.HBMBytes / int64(c.DevicesPerChip) }

const (
	gib = 1 << 30
	// gigabit is 1e9 bits in bytes.
	gigabit = 1e9 / 8
)

// flat are the slices of chips joined in two dimensions.
var flat = [][]int{{1, 1}, {2, 2}, {2, 4}, {4, 4}, {4, 8}, {8, 8}, {8, 16}, {16, 16}}

// cubes are the common slices of chips joined in three dimensions.
var cubes = [][]int{{2, 2, 1}, {2, 2, 2}, {2, 2, 4}, {2, 4, 4}, {4, 4, 4}, {4, 4, 8}, {4, 8, 8}, {8, 8, 8}, {8, 8, 16}, {8, 16, 16}, {16, 16, 16}}

// Chips lists the known types.
//
// Sources, all public. Peak rates, memory, bandwidth, chips of a host and slices: the pages v5e, v5p, v6e and tpu7x of
// Cloud TPU's documentation, which give the ICI bandwidth of a chip as the sum of both directions of its 4 (v5e, v6e) or
// 6 (v5p, tpu7x) links: 400, 1200, 800 and 1200 GB/s, so 50, 100, 100 and 100 GB/s a link and direction, as in the table
// of "How to Scale Your Model" (jax-ml/scaling-book, tpus.md). That book also says where axes wrap around: "a full 16
// axis" of chips joined in two dimensions; the page v5p: "all 4x4x4 and larger slices have full 3D torus". The tpu7x page
// gives the link between the two halves of a chip six times the speed of an ICI link. DCN: Gbit/s a chip in the table of
// that page, and for v5e 2 × 100 Gbit/s for a host's 8 chips. Matrix units: 4 of 128 × 128 in a v5e, 8 in a v5p, 4 of
// 256 × 256 in a v6e and in each half of a tpu7x.
var Chips = []*Chip{
	{
		Name: "v5e", Title: "TPU v5e", DeviceKinds: []string{"TPU v5 lite", "TPU v5e"},
		AcceleratorTypes: []string{"TPU-V5E", "TPU-V5LITE", "TPU-V5LITEPOD", "TPU-V5LITEP"},
		DevicesPerChip:   1, ChipsPerHost: 4,
		PeakBF16: 197e12, HBMBytes: 16 * gib, HBMBandwidth: 819e9, ClockHz: 197e12 / (2 * 4 * 128 * 128),
		LinkBandwidth: 50e9, DCNBandwidth: 25 * gigabit,
		shapes: flat, wrapAt: 16,
	},
	{
		Name: "v5p", Title: "TPU v5p", DeviceKinds: []string{"TPU v5", "TPU v5p"}, AcceleratorTypes: []string{"TPU-V5P"},
		DevicesPerChip: 1, ChipsPerHost: 4,
		PeakBF16: 459e12, HBMBytes: 96 * gib, HBMBandwidth: 2765e9, ClockHz: 459e12 / (2 * 8 * 128 * 128),
		LinkBandwidth: 100e9, DCNBandwidth: 50 * gigabit,
		shapes: cubes, largest: []int{16, 16, 24},
	},
	{
		Name: "v6e", Title: "TPU v6e (Trillium)", DeviceKinds: []string{"TPU v6 lite", "TPU v6e"}, AcceleratorTypes: []string{"TPU-V6E"},
		DevicesPerChip: 1, ChipsPerHost: 4,
		PeakBF16: 918e12, HBMBytes: 32 * gib, HBMBandwidth: 1638e9, ClockHz: 918e12 / (2 * 4 * 256 * 256),
		LinkBandwidth: 100e9, DCNBandwidth: 100 * gigabit,
		shapes: flat, wrapAt: 16,
	},
	{
		Name: "tpu7x", Title: "TPU7x (Ironwood)", DeviceKinds: []string{"TPU7x", "TPU v7x", "TPU v7"},
		AcceleratorTypes: []string{"TPU-V7X", "TPU7X"},
		DevicesPerChip:   2, ChipsPerHost: 4,
		PeakBF16: 2307e12, HBMBytes: 192 * gib, HBMBandwidth: 7380e9, ClockHz: 2307e12 / 2 / (2 * 4 * 256 * 256),
		LinkBandwidth: 100e9, OnChipBandwidth: 600e9, DCNBandwidth: 100 * gigabit,
		shapes: cubes, largest: []int{16, 24, 24},
	},
}

// FindChip finds a chip by its short name or the name that jobs have for it, in any case.
func FindChip(name string) (*Chip, error) {
	for _, c := range Chips {
		if strings.EqualFold(c.Name, name) || slices.Contains(c.AcceleratorTypes, strings.ToUpper(name)) {
			return c, nil
		}
	}
	var known []string
	for _, c := range Chips {
		known = append(known, c.Name+" ("+c.AcceleratorTypes[0]+")")
	}
	return nil, fmt.Errorf("TPU type %q is not known: use one of %s", name, strings.Join(known, ", "))
}

// ChipOfKind finds a chip by what a PJRT plugin calls its devices.
func ChipOfKind(kind string) (*Chip, bool) {
	for _, c := range Chips {
		if slices.Contains(c.DeviceKinds, kind) {
			return c, true
		}
	}
	return nil, false
}
