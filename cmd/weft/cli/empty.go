package cli

import (
	"errors"
	"fmt"
	"os"
	"reflect"

	"github.com/alecthomas/kong"

	"weft/cmd/weft/job"
)

// errEmpty is what is wrong with a text that was given and has nothing in it.
var errEmpty = errors.New("is empty: give a value, or leave it out (is a shell variable not set?)")

// refuseEmpty refuses flags, arguments and variables that were given as an empty text. What such a command means is a
// variable that has no value, and never what it would do: train in the folder of all runs, delete in the current one.
func refuseEmpty(ctx *kong.Context) error {
	given := map[*kong.Flag]bool{}
	for _, p := range ctx.Path {
		switch {
		case p.Flag != nil:
			given[p.Flag] = true
			if emptyText(p.Flag.Value) {
				return job.Input(fmt.Errorf("--%s %w", p.Flag.Name, errEmpty))
			}
		case p.Positional != nil && emptyText(p.Positional):
			return job.Input(fmt.Errorf("<%s> is empty: give a value (is a shell variable not set?)", p.Positional.Name))
		}
	}
	for _, f := range ctx.Flags() {
		for _, name := range f.Envs {
			if text, set := os.LookupEnv(name); set && text == "" && !given[f] && emptyText(f.Value) {
				return job.Input(fmt.Errorf("the variable %s, which stands for --%s, is set and empty: give it a value, or unset it", name, f.Name))
			}
		}
	}
	return nil
}

// emptyText tells a value that is a text with nothing in it.
func emptyText(v *kong.Value) bool {
	return v.Target.Kind() == reflect.String && v.Target.Len() == 0
}
