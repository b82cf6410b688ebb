package gemma

import (
	"encoding/json"
	"fmt"
)

// fields reads the members of one JSON object and keeps the first fault, named by the member's path.
type fields struct {
	members map[string]json.RawMessage
	path    string // prefix of every name, as `text_config.`
	err     error
}

func (f *fields) fail(key, format string, args ...any) {
	if f.err == nil {
		f.err = fmt.Errorf("field %q %s", f.path+key, fmt.Sprintf(format, args...))
	}
}

// has tells whether the member is there and not null.
func (f *fields) has(key string) bool {
	raw, ok := f.members[key]
	return ok && string(raw) != "null"
}

// need reports the absence of a member without which the model's shape is unknown.
func (f *fields) need(keys ...string) {
	for _, key := range keys {
		if !f.has(key) {
			f.fail(key, "is missing: take config.json from the model's own folder, unabridged")
		}
	}
}

func (f *fields) decode(key string, v any, kind string) bool {
	if !f.has(key) {
		return false
	}
	if err := json.Unmarshal(f.members[key], v); err != nil {
		f.fail(key, "is %s, not %s", abridged(f.members[key]), kind)
		return false
	}
	return true
}

func abridged(raw json.RawMessage) string {
	if len(raw) > 40 {
		return string(raw[:40]) + "…"
	}
	return string(raw)
}

// positive reads an integer of at least 1, or returns the default.
func (f *fields) positive(key string, def int) int {
	v := def
	if f.decode(key, &v, "an integer") && v < 1 {
		f.fail(key, "is %d: it must be at least 1", v)
	}
	return v
}

// count reads an integer of at least 0, or returns the default.
func (f *fields) count(key string, def int) int {
	v := def
	if f.decode(key, &v, "an integer") && v < 0 {
		f.fail(key, "is %d: it must not be negative", v)
	}
	return v
}

func (f *fields) float(key string, def float64) float64 {
	v := def
	f.decode(key, &v, "a number")
	return v
}

func (f *fields) positiveFloat(key string, def float64) float64 {
	v := f.float(key, def)
	if f.has(key) && v <= 0 {
		f.fail(key, "is %v: it must be above 0", v)
	}
	return v
}

func (f *fields) bool(key string, def bool) bool {
	v := def
	f.decode(key, &v, "true or false")
	return v
}

func (f *fields) string(key, def string) string {
	v := def
	f.decode(key, &v, "a string")
	return v
}

func (f *fields) strings(key string) []string {
	var v []string
	f.decode(key, &v, "a list of strings")
	return v
}

// ids reads a token id or a list of them; nil when absent.
func (f *fields) ids(key string) []int {
	if !f.has(key) {
		return nil
	}
	var one int
	if json.Unmarshal(f.members[key], &one) == nil {
		return []int{one}
	}
	var many []int
	f.decode(key, &many, "a token id or a list of them")
	return many
}

// object reads a member that is itself an object; its faults are to be taken over by the caller.
func (f *fields) object(key string) *fields {
	o := &fields{path: f.path + key + "."}
	f.decode(key, &o.members, "an object")
	return o
}

// take carries the fault of a nested object over.
func (f *fields) take(o *fields) {
	if f.err == nil {
		f.err = o.err
	}
}

// reject reports a feature that is present but not supported.
func (f *fields) reject(key string, present bool, what string) {
	if present {
		f.fail(key, "is %s: %s is not supported yet", abridged(f.members[key]), what)
	}
}
