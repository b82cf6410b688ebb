package pjrt

import (
	"strings"
	"unsafe"
)

// at turns an address in the plugin's memory into a pointer. The detour keeps go vet from taking it for pointer arithmetic on Go memory.
func at(addr uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&addr)) }

// goString copies n bytes of the plugin's memory.
func goString(addr, n uintptr) string {
	if addr == 0 || n == 0 {
		return ""
	}
	return strings.Clone(unsafe.String((*byte)(at(addr)), int(n)))
}

// view is an array in the plugin's memory, valid as long as its owner is; copy what must live longer.
func view[T any](addr, n uintptr) []T {
	if addr == 0 || n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(at(addr)), int(n))
}

var noData byte

// data is the address of a slice's first element, or of a byte that is never read where the slice is empty: C may refuse null.
func data[T any](s []T) unsafe.Pointer {
	if len(s) == 0 {
		return unsafe.Pointer(&noData)
	}
	return unsafe.Pointer(unsafe.SliceData(s))
}

// textData is the address of a string's first byte. C only reads it.
func textData(s string) unsafe.Pointer {
	if s == "" {
		return unsafe.Pointer(&noData)
	}
	return unsafe.Pointer(unsafe.StringData(s))
}
