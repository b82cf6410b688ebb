package pjrt

import (
	"debug/elf"
	"fmt"
	"os"
	"runtime"
)

// machines are the ELF machine numbers of the architectures that PJRT plugins exist for.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// checkLibrary finds what would make dlopen kill the process rather than fail: a file that ends before its segments do.
func checkLibrary(path string) error {
	if runtime.GOOS != "linux" {
		return nil
	}
	st, err := os.Stat(path)
	if err != nil {
		return err
	}
	f, err := elf.Open(path)
	if err != nil {
		return fmt.Errorf("it is no complete ELF library: %w", err)
	}
	defer f.Close()
	if f.Type != elf.ET_DYN || f.Class != elf.ELFCLASS64 {
		return fmt.Errorf("it is an ELF file of type %s, class %s, not a 64-bit shared library", f.Type, f.Class)
	}
	if want, known := machines[runtime.GOARCH]; known && f.Machine != want {
		return fmt.Errorf("it is built for %s, not for %s", f.Machine, runtime.GOARCH)
	}
	for _, seg := range f.Progs {
		if seg.Type == elf.PT_LOAD && seg.Off+seg.Filesz > uint64(st.Size()) {
			return fmt.Errorf("it ends at byte %d, within a segment that ends at %d", st.Size(), seg.Off+seg.Filesz)
		}
	}
	return nil
}
