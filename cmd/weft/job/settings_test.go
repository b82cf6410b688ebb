package job

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"weft/checkpoint"
)

// Every setting that decides a run's numbers is compared, and a difference is named by its flag.
func TestEverySettingMustAgree(t *testing.T) {
	var base settings
	diffs, err := base.differences(base)
	require.NoError(t, err)
	require.Empty(t, diffs)
	for i := range reflect.TypeFor[settings]().NumField() {
		field := reflect.TypeFor[settings]().Field(i)
		changed := base
		switch f := reflect.ValueOf(&changed).Elem().Field(i); f.Kind() {
		case reflect.String:
			f.SetString("x")
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Float64:
			f.SetFloat(0.5)
		default:
			f.SetInt(7)
		}
		diffs, err := base.differences(changed)
		require.NoError(t, err)
		require.Len(t, diffs, 1, field.Name)
		flag := field.Tag.Get("flag")
		require.True(t, strings.HasPrefix(flag, "--"), field.Name)
		require.Contains(t, diffs[0].text, flag)
		require.Len(t, refused(diffs, none), 1, "%s: alone, it needs permission", field.Name)

		allowed, err := parseAllowed(flag)
		require.NoError(t, err, "a field is named as its flag")
		require.Empty(t, refused(diffs, func(f string) bool { return allowed[f] }))
	}
}

func TestRecordOfARun(t *testing.T) {
	dir := t.TempDir()
	_, ok, err := readRecord(place{checkpoint.OS{}, dir})
	require.NoError(t, err)
	require.False(t, ok)

	old := newRecord(&Config{ModelFlags: ModelFlags{ModelID: "m"}, NumEpochs: 3}, settings{LearningRate: 2e-5, Seed: 42}, placement{Platform: "cpu", Devices: 4})
	require.NoError(t, old.write(place{checkpoint.OS{}, dir}))
	got, ok, err := readRecord(place{checkpoint.OS{}, dir})
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, old, got)

	var printed map[string]any
	raw, err := os.ReadFile(filepath.Join(dir, recordName))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &printed))
	require.NotContains(t, printed, "changes")
}

// A record of a version that kept moments as float32 only says so by nothing.
func TestRecordWithoutMomentDType(t *testing.T) {
	r, err := parseRecord([]byte(`{"format":2,"settings":{"seed":42}}`), "run.json")
	require.NoError(t, err)
	require.Equal(t, settings{Seed: 42, FirstMomentDType: DTypeFloat32}, r.Settings)
}

func TestRecordOfAnotherVersion(t *testing.T) {
	dir := t.TempDir()
	for name, raw := range map[string]string{
		"unknown field": `{"format":2,"later":true}`,
		"format":        `{"format":1}`,
		"torn":          `{"format":2,`,
	} {
		t.Run(name, func(t *testing.T) {
			require.False(t, name != "torn" && !json.Valid([]byte(raw)))
			require.NoError(t, os.WriteFile(filepath.Join(dir, recordName), []byte(raw), 0o644))
			_, _, err := readRecord(place{checkpoint.OS{}, dir})
			require.ErrorContains(t, err, "another --storage-path")
		})
	}
}
