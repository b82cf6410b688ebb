package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"weft/cmd/weft/job"
)

type versionCmd struct{}

// Run prints one line for weft and one for each module that decides what a training step computes.
func (versionCmd) Run(s streams) error {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		_, err := fmt.Fprintln(s.Out, "weft, built without module information")
		return err
	}
	fmt.Fprintf(s.Out, "weft %s (%s, %s/%s)\n", job.Version(), info.GoVersion, runtime.GOOS, runtime.GOARCH)
	for _, m := range info.Deps {
		switch m.Path {
		case "github.com/gomlx/gomlx", "github.com/gomlx/compute", "github.com/ebitengine/purego":
			fmt.Fprintln(s.Out, m.Path, m.Version)
		}
	}
	return nil
}
