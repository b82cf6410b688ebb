package engine

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"weft/pjrt"
)

// Ahead is a program that was compiled for devices which need not be present.
type Ahead struct {
	*Lowered
	// Executable is what the compiler made. The Ahead owns it.
	Executable *pjrt.Executable
	// Options are those it was compiled with: those of a Runtime on the same devices, but for the effort.
	Options pjrt.CompileOptions
	// CompileTime is how long it took.
	CompileTime time.Duration

	platform platform
}

// AheadDevices returns the descriptions of the n devices of a topology that a mesh of n takes, in the order of the mesh:
// those with the smallest ids, ordered by their coordinates z, y, x, then the core on a chip.
func AheadDevices(top *pjrt.Topology, n int) ([]*pjrt.DeviceDescription, error) {
	all, err := top.Devices()
	if err != nil {
		return nil, err
	}
	if len(all) < n {
		return nil, fmt.Errorf("the mesh needs %d devices, the topology has %d: choose a larger topology or a smaller mesh", n, len(all))
	}
	return meshDevices(all, n), nil
}

// CompileAhead compiles a program for the devices of a topology, as Runtime.CompileLowered does where they are. pluginID
// names the plugin's build, as in Options. The caller must call Destroy.
func CompileAhead(top *pjrt.Topology, pluginID string, low *Lowered, effort pjrt.EffortLevel) (*Ahead, error) {
	a := &Ahead{Lowered: low, platform: platform{pluginID: pluginID}}
	var errName, errVersion, err error
	a.platform.name, errName = top.PlatformName()
	a.platform.version, errVersion = top.PlatformVersion()
	a.platform.devices, err = AheadDevices(top, low.Mesh.NumDevices())
	if err := errors.Join(errName, errVersion, err); err != nil {
		return nil, fmt.Errorf("describe the devices to compile %s for: %w", low.Name, err)
	}
	ids := make([]int, len(a.platform.devices))
	for i, d := range a.platform.devices {
		ids[i] = d.ID()
	}
	a.Options = low.CompileOptions(ids)
	a.Options.OptimizationLevel = effort
	start := time.Now()
	a.Executable, err = top.Compile(low.Text, a.Options)
	if err != nil {
		return nil, fmt.Errorf("compile the program %s for %s: %w", low.Name, a.platform.name, err)
	}
	a.CompileTime = time.Since(start)
	return a, nil
}

// Save keeps the executable in the compile cache in dir, where a Runtime with the same plugin, devices and mesh finds it.
// It returns the entry's path.
func (a *Ahead) Save(dir string) (string, error) {
	c := newCompileCache(dir, a.platform.key(), slog.Default())
	path, err := c.write(a.Executable, a.Text, a.Options)
	if err != nil {
		return "", fmt.Errorf("keep the compiled program %s in %s: %w", a.Name, dir, err)
	}
	return path, nil
}

// Destroy releases the executable.
func (a *Ahead) Destroy() error { return a.Executable.Destroy() }
