package job

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every setting that decides a run's numbers is compared, and a difference is named by its flag.
func TestEverySettingMustAgree(t *testing.T) {
	var base settings
	require.Empty(t, base.difference(base))
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
		require.NotEmpty(t, field.Tag.Get("flag"), field.Name)
		require.Contains(t, base.difference(changed), field.Tag.Get("flag"), field.Name)
	}
}

func TestRecordOfARun(t *testing.T) {
	dir := t.TempDir()
	_, ok, err := readRecord(dir)
	require.NoError(t, err)
	require.False(t, ok)

	old := newRecord(&Config{ModelFlags: ModelFlags{ModelID: "m"}, NumEpochs: 3}, settings{LearningRate: 2e-5, Seed: 42}, placement{Platform: "cpu", Devices: 4})
	require.NoError(t, old.write(dir))
	got, ok, err := readRecord(dir)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, old, got)

	grown := old
	grown.Epochs = 5
	require.NoError(t, grown.continues(old, dir))
	other := old
	other.Settings.LearningRate = 1e-3
	require.ErrorContains(t, other.continues(old, dir), "--learning-rate was 2e-05, it is 0.001 now")
	other = old
	other.Settings.DatasetContent = "abc"
	require.ErrorContains(t, other.continues(old, dir), "the content of --dataset is another")
}

func TestRecordOfAnotherVersion(t *testing.T) {
	dir := t.TempDir()
	for name, raw := range map[string]string{
		"unknown field": `{"format":1,"later":true}`,
		"format":        `{"format":2}`,
		"torn":          `{"format":1,`,
	} {
		t.Run(name, func(t *testing.T) {
			require.False(t, name != "torn" && !json.Valid([]byte(raw)))
			require.NoError(t, os.WriteFile(filepath.Join(dir, recordName), []byte(raw), 0o644))
			_, _, err := readRecord(dir)
			require.ErrorContains(t, err, "another --storage-path")
		})
	}
}
