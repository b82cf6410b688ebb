package pjrt

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
)

// minMinor is the first API 0.x whose function table has the present order.
const minMinor = 57

// logLevelEnv is the variable by which XLA's logging to standard error is chosen, read when a plugin is opened.
const logLevelEnv = "TF_CPP_MIN_LOG_LEVEL"

// core are the functions without which nothing works, not even reporting an error.
var core = []fn{fnErrorDestroy, fnErrorMessage, fnErrorGetCode, fnEventDestroy, fnEventIsReady, fnEventAwait,
	fnBufferDestroy, fnBufferIsDeleted}

// Plugin is a PJRT plugin, a shared library opened for the rest of the process's life.
type Plugin struct {
	path         string
	major, minor int
	fns          [numFns]uintptr
	attrs        map[string]any
}

var (
	pluginsMu sync.Mutex
	plugins   = map[string]*Plugin{}
)

// Load opens the plugin in the file at path, checks its API version and the size of its function table, and initializes it. Loading the
// same file again returns the same Plugin. Environment variables that the plugin reads, such as those of libtpu, must be set before, with
// os.Setenv. Load itself sets TF_CPP_MIN_LOG_LEVEL to 3 where it is not set, so that only fatal messages of XLA reach standard error.
func Load(path string) (*Plugin, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("pjrt: plugin %s: %w", path, err)
	}
	if abs, err = filepath.EvalSymlinks(abs); err != nil {
		return nil, fmt.Errorf("pjrt: plugin %s cannot be opened: %w; give the path of a PJRT plugin (.so)", path, err)
	}
	pluginsMu.Lock()
	defer pluginsMu.Unlock()
	if p := plugins[abs]; p != nil {
		return p, nil
	}
	p, err := open(abs)
	if err != nil {
		return nil, err
	}
	plugins[abs] = p
	return p, nil
}

func open(path string) (*Plugin, error) {
	if _, set := os.LookupEnv(logLevelEnv); !set {
		if err := os.Setenv(logLevelEnv, "3"); err != nil {
			return nil, fmt.Errorf("pjrt: set %s: %w", logLevelEnv, err)
		}
	}
	const damaged = "pjrt: plugin %s does not load: %w; it may be damaged or built for another system: install it again"
	if err := checkLibrary(path); err != nil {
		return nil, fmt.Errorf(damaged, path, err)
	}
	lib, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf(damaged, path, err)
	}
	get, err := purego.Dlsym(lib, "GetPjrtApi")
	if err != nil {
		return nil, fmt.Errorf("pjrt: %s has no function GetPjrtApi: it is a shared library but no PJRT plugin", path)
	}
	table, _, _ := purego.SyscallN(get)
	p, err := newPlugin(path, table)
	if err != nil {
		return nil, err
	}
	if err := p.call(fnPluginInitialize, "initialize plugin", unsafe.Pointer(&head{size: headSize})); err != nil {
		return nil, err
	}
	p.readAttributes()
	return p, nil
}

// newPlugin reads the PJRT_Api at address table. Functions beyond the size that it states stay 0.
func newPlugin(path string, table uintptr) (*Plugin, error) {
	if table == 0 {
		return nil, fmt.Errorf("pjrt: plugin %s gave no function table: it may need another machine or driver", path)
	}
	api := (*struct {
		head
		version struct {
			head
			major, minor int32
		}
	})(at(table))
	p := &Plugin{path: path, major: int(api.version.major), minor: int(api.version.minor)}
	if p.major != 0 || p.minor < minMinor {
		return nil, fmt.Errorf("pjrt: plugin %s has API %d.%d; API 0.%d or a later 0.x is needed: install another version of the plugin",
			path, p.major, p.minor, minMinor)
	}
	const first = unsafe.Sizeof(*api)
	if api.size < first {
		return nil, fmt.Errorf("pjrt: plugin %s states a function table of %d bytes, which is impossible: the file may be damaged", path, api.size)
	}
	n := min((api.size-first)/unsafe.Sizeof(uintptr(0)), numFns)
	copy(p.fns[:], view[uintptr](table+first, n))
	for _, f := range core {
		if p.fns[f] == 0 {
			return nil, p.lacks(f, "load")
		}
	}
	return p, nil
}

func (p *Plugin) readAttributes() {
	p.attrs = map[string]any{}
	args := &pluginAttributesArgs{head: head{size: pluginAttributesSize}}
	// A plugin without attributes is still usable.
	if p.call(fnPluginAttributes, "read plugin attributes", unsafe.Pointer(args)) == nil {
		p.attrs = namedValues(args.ptr, args.n)
	}
}

// Path is the plugin's file, absolute and with symbolic links resolved.
func (p *Plugin) Path() string { return p.path }

// APIVersion is the version of the PJRT C API that the plugin was built with, such as 0, 115.
func (p *Plugin) APIVersion() (major, minor int) { return p.major, p.minor }

// Attributes are the plugin's own statements, such as "xla_version" (int64) and "stablehlo_current_version" ([]int64). Empty if it has
// none. The map must not be changed.
func (p *Plugin) Attributes() map[string]any { return p.attrs }
