// Package models is the registry of model architectures.
package models

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"weft/models/arch"
	"weft/models/gemma"
)

// Entry is one family of architectures.
type Entry struct {
	// ModelTypes are the values of config.json's model_type that it answers for; Architectures those of architectures.
	ModelTypes, Architectures []string
	// Parse reads config.json.
	Parse func(configJSON []byte) (arch.Architecture, error)
}

// Registry lists what Open knows.
var Registry = []Entry{{
	ModelTypes:    gemma.ModelTypes,
	Architectures: gemma.Architectures,
	Parse: func(raw []byte) (arch.Architecture, error) {
		cfg, err := gemma.ParseConfig(raw)
		if err != nil {
			return nil, err
		}
		return cfg, nil
	},
}}

// Open reads a Hugging Face config.json and returns its architecture. An unknown one is an error that lists the known.
func Open(configJSON []byte) (arch.Architecture, error) {
	var head struct {
		ModelType     string   `json:"model_type"`
		Architectures []string `json:"architectures"`
	}
	if err := json.Unmarshal(configJSON, &head); err != nil {
		if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) { // whose text is about types of Go
			err = fmt.Errorf("%s is a JSON %s: take config.json from the model's own folder", cmp.Or(wrong.Field, "it"), wrong.Value)
		}
		return nil, fmt.Errorf("config.json: not a JSON object that describes a model: %w", err)
	}
	var known []string
	for _, e := range Registry {
		if slices.Contains(e.ModelTypes, head.ModelType) {
			return e.Parse(configJSON)
		}
		for _, a := range head.Architectures {
			if slices.Contains(e.Architectures, a) {
				return e.Parse(configJSON)
			}
		}
		known = append(known, e.ModelTypes...)
	}
	return nil, fmt.Errorf("config.json: model_type %q (architectures %q) is not supported yet: use one of %s",
		head.ModelType, head.Architectures, strings.Join(known, ", "))
}
