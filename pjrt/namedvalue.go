package pjrt

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"unsafe"
)

// The kinds of a PJRT_NamedValue.
const (
	kindString int32 = iota
	kindInt64
	kindInt64List
	kindFloat
	kindBool
)

// deviceCountOption is checked here, because XLA's CPU plugin ends the process over a value that it does not like.
const (
	deviceCountOption = "cpu_device_count"
	maxDeviceCount    = 1 << 16
)

func checkDeviceCount(v namedValue, value any) error {
	if n := int64(v.value); v.kind != kindInt64 || n < 1 || n > maxDeviceCount {
		return fmt.Errorf("pjrt: option %q is %v; a whole number from 1 to %d is possible", deviceCountOption, value, maxDeviceCount)
	}
	return nil
}

// toNamedValues makes the C form of options, in the order of their names. keep holds memory that the values point to and must stay
// reachable during the call.
func toNamedValues(opts map[string]any) (values []namedValue, keep []any, err error) {
	for _, name := range slices.Sorted(maps.Keys(opts)) {
		v := namedValue{head: head{size: namedValueSize}, name: textData(name), nameSize: uintptr(len(name)), n: 1}
		switch x := opts[name].(type) {
		case string:
			b := append([]byte(x), 0)
			v.kind, v.value, v.n = kindString, uint64(uintptr(unsafe.Pointer(&b[0]))), uintptr(len(x))
			keep = append(keep, b)
		case bool:
			v.kind = kindBool
			if x {
				v.value = 1
			}
		case int:
			v.kind, v.value = kindInt64, uint64(x)
		case int64:
			v.kind, v.value = kindInt64, uint64(x)
		case float32:
			v.kind, v.value = kindFloat, uint64(math.Float32bits(x))
		case []int64:
			b := slices.Clone(x)
			v.kind, v.value, v.n = kindInt64List, uint64(uintptr(data(b))), uintptr(len(b))
			keep = append(keep, b)
		default:
			return nil, nil, fmt.Errorf("pjrt: option %q has type %T; string, bool, int, int64, float32 and []int64 are possible", name, x)
		}
		if name == deviceCountOption {
			if err := checkDeviceCount(v, opts[name]); err != nil {
				return nil, nil, err
			}
		}
		values = append(values, v)
	}
	return values, keep, nil
}

// namedValues copies the n PJRT_NamedValue at addr: string, int64, []int64, float32 or bool by name. Kinds of later API versions are
// left out.
func namedValues(addr, n uintptr) map[string]any {
	m := make(map[string]any, n)
	if addr == 0 {
		return m
	}
	for range n {
		v := (*namedValue)(at(addr))
		name := goString(uintptr(v.name), v.nameSize)
		switch v.kind {
		case kindString:
			m[name] = goString(uintptr(v.value), v.n)
		case kindInt64:
			m[name] = int64(v.value)
		case kindInt64List:
			m[name] = slices.Clone(view[int64](uintptr(v.value), v.n))
		case kindFloat:
			m[name] = math.Float32frombits(uint32(v.value))
		case kindBool:
			m[name] = v.value&0xff != 0
		}
		// Elements of an array of structs are sizeof apart, which a later plugin may have made larger.
		addr += max(v.size, namedValueSize)
	}
	return m
}
