package plugin

import (
	"fmt"
	"runtime"
	"strings"
)

// spec is a plugin that can be installed: one file of one wheel.
type spec struct {
	name     string // what users call it
	platform string // "cpu" or "tpu"
	pkg      string // on the package index
	version  string
	wheelSHA string
	member   string // the library's name within the wheel
	megabyte int    // size of the download, for messages
	pip      []string
}

// anyPython makes every Python's pip take the same file, also one that is too new for the wheel's tags: only a library is taken from it.
func anyPython(platform, abi string) []string {
	return []string{"--only-binary=:all:", "--platform", platform, "--python-version", "3.11", "--implementation", "cp", "--abi", abi}
}

// specs are the plugins that weft is tested with. The first of a platform is its default.
var specs = []spec{
	{
		name: "cpu", platform: "cpu", pkg: "lammps-jax-pjrt-cpu", version: "0.11.2", megabyte: 63,
		wheelSHA: "1319390d948b39f69f7dade496b7c385149d9ca6097a6b62114da113216d9ad1",
		member:   "lammps_jax_pjrt_cpu/pjrt_c_api_cpu_plugin.so",
		pip:      anyPython("manylinux_2_27_x86_64", "none"),
	},
	{
		name: "cpu-alt", platform: "cpu", pkg: "fastatomstruct-xla-cpu", version: "2026.6.23", megabyte: 63,
		wheelSHA: "88b1c430b341b4bea40a37420311c9c75db6e22b46d2ff95b6986577bee6afe9",
		member:   "fastatomstruct_xla_cpu/libpjrt_cpu.so",
		pip:      anyPython("manylinux_2_27_x86_64", "none"),
	},
	{
		name: "tpu", platform: "tpu", pkg: "libtpu", version: "0.0.52", megabyte: 137,
		wheelSHA: "f5e2e596eaea9357fbb5a6755a7a9007c6ab75bfde4a55191b03eff402971140",
		member:   "libtpu/libtpu.so",
		pip:      anyPython("manylinux_2_31_x86_64", "cp311"),
	},
}

// Names are the plugins that Install knows: "cpu", "cpu-alt" and "tpu".
func Names() []string {
	names := make([]string, len(specs))
	for i, s := range specs {
		names[i] = s.name
	}
	return names
}

// find looks a plugin up by name.
func (s *store) find(name string) (spec, error) {
	names := make([]string, len(s.specs))
	for i, sp := range s.specs {
		if sp.name == name {
			return sp, nil
		}
		names[i] = sp.name
	}
	return spec{}, fmt.Errorf("plugin %q is not known; choose one of %s, or give a path with --plugin", name, strings.Join(names, ", "))
}

// supported says whether the wheels' libraries run on this system.
func supported() error {
	if runtime.GOOS == "linux" && runtime.GOARCH == "amd64" {
		return nil
	}
	return fmt.Errorf("no plugin is packaged for %s/%s; give the path of one with --plugin PATH or %s", runtime.GOOS, runtime.GOARCH, EnvPlugin)
}
