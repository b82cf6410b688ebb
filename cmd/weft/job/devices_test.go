package job

import (
	"testing"

	"github.com/stretchr/testify/require"

	"weft/pjrt/plugin"
)

func TestPlatformAndDevices(t *testing.T) {
	auto := PlatformCPU
	if plugin.TPUChips() > 0 {
		auto = PlatformTPU
	}
	for _, c := range []struct {
		config   DeviceFlags
		platform string
		devices  int // 0: not asked
		err      string
	}{
		{DeviceFlags{Platform: PlatformAuto}, auto, 1, ""},
		{DeviceFlags{Platform: PlatformCPU, Devices: 3}, PlatformCPU, 3, ""},
		{DeviceFlags{Platform: PlatformCPU, NumWorkers: 16, Topology: "4x4"}, PlatformCPU, 16, ""},
		{DeviceFlags{Platform: PlatformCPU, Topology: "2x2x2"}, PlatformCPU, 8, ""},
		{DeviceFlags{Platform: PlatformCPU, Topology: "2X4", NumWorkers: 4}, PlatformCPU, 0, "--num-workers asks for 4 devices and --topology for 8"},
		{DeviceFlags{Platform: PlatformAuto, AcceleratorType: "TPU-V6E"}, PlatformTPU, 0, ""},
		{DeviceFlags{Platform: PlatformAuto, AcceleratorType: "tpu-v7x"}, PlatformTPU, 0, ""},
		{DeviceFlags{Platform: PlatformCPU, AcceleratorType: "TPU-V6E"}, "", 0, "contradicts --platform cpu"},
		{DeviceFlags{Platform: PlatformAuto, AcceleratorType: "GPU-H100"}, "", 0, "--accelerator-type GPU-H100 is not known: give one of TPU-V4"},
		{DeviceFlags{Platform: PlatformCPU, Topology: "4x0"}, PlatformCPU, 0, "--topology 4x0"},
		{DeviceFlags{Platform: PlatformCPU, Topology: "65536x65536x65536x65536"}, PlatformCPU, 0, "more than 1048576 devices"},
	} {
		platform, err := c.config.platform()
		devices := 0
		if err == nil && platform == PlatformCPU {
			devices, err = c.config.cpuDevices()
		}
		if c.err != "" {
			require.ErrorContains(t, err, c.err)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.platform, platform)
		if c.devices > 0 {
			require.Equal(t, c.devices, devices)
		}
	}
}

// What was found is compared with what --num-workers, --topology and --accelerator-type expect; a TPU7x chip is two
// devices.
func TestExpectedDevices(t *testing.T) {
	for _, c := range []struct {
		config DeviceFlags
		found  int
		kind   string
		err    string
	}{
		{DeviceFlags{}, 16, "TPU v6 lite", ""},
		{DeviceFlags{Topology: "4x4", AcceleratorType: "TPU-V6E", NumWorkers: 16}, 16, "TPU v6 lite", ""},
		{DeviceFlags{Topology: "2x2x2", AcceleratorType: "TPU-V7X", NumWorkers: 16}, 16, "TPU7x", ""},
		{DeviceFlags{Topology: "2x2x2"}, 8, "TPU7x", "--topology 2x2x2 is 16 devices of TPU7x, the run has 8"},
		{DeviceFlags{Topology: "4x4"}, 8, "TPU v6 lite", "--topology 4x4 is 16 devices of TPU v6 lite, the run has 8"},
		{DeviceFlags{NumWorkers: 16}, 8, "TPU v6 lite", "--num-workers is 16, the run has 8 devices (TPU v6 lite)"},
		{DeviceFlags{AcceleratorType: "TPU-V6E"}, 8, "TPU v5 lite", "--accelerator-type is TPU-V6E, the devices are TPU v5 lite"},
	} {
		err := c.config.checkFound(c.found, c.kind)
		if c.err == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, c.err)
		}
	}
}
