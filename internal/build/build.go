// Package build makes the weft binary, for tests and benchmarks that run it as a user does.
package build

import (
	"context"
	"fmt"
	"os"
	"os/exec"
)

// Weft builds cmd/weft, without cgo, into the file path. flags are more of those of go build.
func Weft(ctx context.Context, path string, flags ...string) error {
	args := append([]string{"build", "-trimpath", "-o", path}, flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, "weft/cmd/weft")...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build weft: %w\n%s", err, out)
	}
	return nil
}
