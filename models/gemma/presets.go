package gemma

import (
	"embed"
	"slices"
	"strings"
)

// presetFiles are text configurations at the released sizes, as in google-deepmind/gemma (gm/nn) and the model cards.
//
//go:embed presets/*.json
var presetFiles embed.FS

// Presets lists the names that Preset knows of models that ParseConfig accepts, in the order of the alphabet.
func Presets() []string {
	return slices.DeleteFunc(allPresets(), func(name string) bool {
		raw, _ := Preset(name)
		_, err := ParseConfig(raw)
		return err != nil
	})
}

// allPresets has those that are refused too, so that one who asks for them reads why.
func allPresets() []string {
	files, err := presetFiles.ReadDir("presets")
	if err != nil {
		return nil // the folder is part of the binary
	}
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = strings.TrimSuffix(f.Name(), ".json")
	}
	return names
}

// Preset returns the config.json of a released size, without weights. It is found in any case, and under the name that
// the Hugging Face hub has for it: google/gemma-4-E2B-it is gemma-4-E2B.
func Preset(name string) (configJSON []byte, ok bool) {
	name = strings.TrimPrefix(name, "google/")
	for _, suffix := range []string{"-it", "-pt"} {
		name = strings.TrimSuffix(name, suffix)
	}
	for _, known := range allPresets() {
		if strings.EqualFold(known, name) {
			raw, err := presetFiles.ReadFile("presets/" + known + ".json")
			return raw, err == nil
		}
	}
	return nil, false
}
