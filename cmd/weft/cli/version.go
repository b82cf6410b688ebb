package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

type versionCmd struct{}

// Run prints one line for weft and one for each module that decides what a training step computes.
func (versionCmd) Run(s streams) error {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		_, err := fmt.Fprintln(s.Out, "weft, built without module information")
		return err
	}
	fmt.Fprintf(s.Out, "weft %s%s (%s, %s/%s)\n", info.Main.Version, revision(info), info.GoVersion, runtime.GOOS, runtime.GOARCH)
	for _, m := range info.Deps {
		switch m.Path {
		case "github.com/gomlx/gomlx", "github.com/gomlx/compute", "github.com/ebitengine/purego":
			fmt.Fprintln(s.Out, m.Path, m.Version)
		}
	}
	return nil
}

// revision names the commit that the binary was built from, "" when unknown.
func revision(info *debug.BuildInfo) string {
	var commit, modified string
	for _, kv := range info.Settings {
		switch kv.Key {
		case "vcs.revision":
			commit = " " + kv.Value
		case "vcs.modified":
			if kv.Value == "true" {
				modified = " with changes"
			}
		}
	}
	return commit + modified
}

// versionText is weft's version and commit, "unknown" for a build that does not tell.
func versionText() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return info.Main.Version + revision(info)
}
