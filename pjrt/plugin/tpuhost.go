package plugin

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// tpuDevices are the PCI device ids of TPU chips, v3 to TPU7x, of Google's vendor id. JAX's hardware_utils lists the same.
var tpuDevices = map[string]bool{"0x0027": true, "0x0056": true, "0x005e": true, "0x0062": true, "0x0063": true, "0x006f": true, "0x0076": true}

const googleVendor = "0x1ae0"

// TPUChips counts the TPU chips on this machine's PCI bus. It is 0 on a machine without any, and needs no plugin.
func TPUChips() int { return tpuChips("/sys/bus/pci/devices") }

// tpuFiles are how Linux names the chips to a process: v2 to v4 by their own driver, later ones by vfio.
var tpuFiles = []string{"accel[0-9]*", "vfio/[0-9]*"}

// MayHaveTPU tells whether a TPU can be opened on this machine: a chip is seen on the PCI bus, or, where a container hides
// that, a device file that may be one's. It needs no plugin; libtpu without any chip asks a metadata server, for minutes.
func MayHaveTPU() bool { return mayHaveTPU("/sys/bus/pci/devices", "/dev") }

func mayHaveTPU(bus, dev string) bool {
	return tpuChips(bus) > 0 || slices.ContainsFunc(tpuFiles, func(pattern string) bool {
		found, _ := filepath.Glob(filepath.Join(dev, pattern))
		return len(found) > 0
	})
}

func tpuChips(bus string) int {
	vendors, _ := filepath.Glob(filepath.Join(bus, "*", "vendor"))
	n := 0
	for _, path := range vendors {
		vendor, err := os.ReadFile(path)
		if err != nil || strings.TrimSpace(string(vendor)) != googleVendor {
			continue
		}
		device, err := os.ReadFile(filepath.Join(filepath.Dir(path), "device"))
		if err == nil && tpuDevices[strings.TrimSpace(string(device))] {
			n++
		}
	}
	return n
}

// OffTPUEnv are the environment variables with which libtpu describes topologies and compiles on a machine that is no TPU VM: without
// them it asks a metadata server that is not there, for minutes, and lets one process at a time compile, as if there were a chip to
// share. acceleratorType is that of the job, such as "v6e-16". Set those that are not set with os.Setenv before the plugin is loaded.
func OffTPUEnv(acceleratorType string) map[string]string {
	return map[string]string{
		"ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
		"TPU_SKIP_MDS_QUERY":         "1",
		"TPU_ACCELERATOR_TYPE":       acceleratorType,
		"TPU_WORKER_HOSTNAMES":       "localhost",
		"TPU_WORKER_ID":              "0",
		"TPU_MIN_LOG_LEVEL":          "3",
		"TPU_STDERR_LOG_LEVEL":       "3",
		"TF_CPP_MIN_LOG_LEVEL":       "3",
	}
}
