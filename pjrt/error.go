package pjrt

import (
	"fmt"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Code is the status code of a PJRT error; the numbers are absl's canonical codes.
type Code int32

// The status codes.
const (
	OK Code = iota
	Cancelled
	Unknown
	InvalidArgument
	DeadlineExceeded
	NotFound
	AlreadyExists
	PermissionDenied
	ResourceExhausted
	FailedPrecondition
	Aborted
	OutOfRange
	Unimplemented
	Internal
	Unavailable
	DataLoss
	Unauthenticated
)

var codeNames = [...]string{"OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
	"PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL",
	"UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED"}

// String is the code's canonical name, such as "INVALID_ARGUMENT".
func (c Code) String() string {
	if c < 0 || int(c) >= len(codeNames) {
		return fmt.Sprintf("CODE_%d", int32(c))
	}
	return codeNames[c]
}

// Error is what a plugin reported, or a function that a plugin lacks (code [Unimplemented]).
type Error struct {
	Code    Code
	Message string // the plugin's words, often several lines
	Op      string // what was being done, such as "compile"
	Advice  string // what the user can do, if anything is known
}

// Error is one line; line breaks of the plugin's message become " | ".
func (e *Error) Error() string {
	lines := strings.FieldsFunc(e.Message, func(r rune) bool { return r == '\n' || r == '\r' })
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	s := fmt.Sprintf("pjrt: %s: %s: %s", e.Op, e.Code, strings.Join(lines, " | "))
	if e.Advice != "" {
		s += "; " + e.Advice
	}
	return s
}

// call runs one function of the plugin. op says what is being done, for the error. args must point to an argument struct whose size
// field is set.
func (p *Plugin) call(f fn, op string, args unsafe.Pointer) error {
	addr := p.fns[f]
	if addr == 0 {
		return p.lacks(f, op)
	}
	cErr, _, _ := purego.SyscallN(addr, uintptr(args))
	if cErr != 0 {
		return p.takeError(cErr, op)
	}
	return nil
}

// lacks is the error for a function that the plugin's table does not have.
func (p *Plugin) lacks(f fn, op string) error {
	return &Error{
		Code: Unimplemented,
		Op:   op,
		Message: fmt.Sprintf("plugin %s (API %d.%d) lacks %s, needed for %s; install a newer plugin",
			p.path, p.major, p.minor, fnNames[f], op),
	}
}

// takeError turns a PJRT_Error into a Go error and frees it.
func (p *Plugin) takeError(cErr uintptr, op string) error {
	msg := &spanArgs{head: head{size: spanArgsSize}, obj: cErr}
	purego.SyscallN(p.fns[fnErrorMessage], uintptr(unsafe.Pointer(msg)))
	code := &intArgs{head: head{size: intArgsSize}, obj: cErr}
	purego.SyscallN(p.fns[fnErrorGetCode], uintptr(unsafe.Pointer(code)))
	e := &Error{Code: Code(code.out), Message: goString(msg.ptr, msg.n), Op: op}
	del := &objArgs{head: head{size: objArgsSize}, obj: cErr}
	purego.SyscallN(p.fns[fnErrorDestroy], uintptr(unsafe.Pointer(del)))
	e.Advice = adviceFor(e)
	return e
}

// adviceFor says what a user can do about messages that are common and unclear.
func adviceFor(e *Error) string {
	low := strings.ToLower(e.Message)
	switch {
	case strings.Contains(low, "libtpu_lockfile") || strings.Contains(low, "tpu is already in use") || strings.Contains(low, "libtpu lockfile"):
		return lockAdvice(e.Message)
	case e.Code == ResourceExhausted:
		return "the device is out of memory: use a smaller batch, more devices or full rematerialization"
	}
	return ""
}
