package cli

import (
	"context"
	"encoding/json"
	"errors"
	"os/signal"
	"syscall"
	"time"

	"weft/cmd/weft/job"
	"weft/launch/doctor"
)

type doctorCmd struct {
	Platform    string        `default:"auto" enum:"auto,cpu,tpu" help:"${enum}. auto: TPU when this machine has one, else CPU."`
	Plugin      string        `placeholder:"PATH" help:"PJRT plugin to look at instead of the installed one. Also WEFT_PJRT_PLUGIN."`
	StoragePath string        `name:"storage-path" env:"STORAGE_PATH" placeholder:"DIR" help:"The run's storage path, a folder or gs://BUCKET/…: a file is written there, read and deleted."`
	Hub         bool          `help:"Ask the Hugging Face hub whether it takes the token."`
	Endpoint    string        `env:"HF_ENDPOINT" default:"https://huggingface.co" placeholder:"URL" help:"The hub to ask."`
	Wait        time.Duration `default:"0s" placeholder:"TIME" help:"How long to wait for the reports of the slice's other hosts, on which weft doctor runs too, with the same --storage-path."`
	JSON        bool          `name:"json" help:"Print the report as JSON."`
}

// Help is the long help.
func (doctorCmd) Help() string {
	return `Looks whether this host is fit for a run: the plugin and its version, the TPU chips and the slice against the environment, who holds libtpu, /dev/shm, memory and disk, the storage path (a real write, read and delete) and its clock, the hub's token, and whether the slice's other hosts have the same weft and plugin. The exit code is 1 when anything would fail a run.`
}

// errUnfit: the report says why.
var errUnfit = errors.New("this host is not fit for a run: see the lines that begin with fail")

// Run examines this host.
func (c *doctorCmd) Run(s streams) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	platform := c.Platform
	if platform == job.PlatformAuto {
		platform = ""
	}
	report := doctor.Run(ctx, doctor.Options{
		Platform: platform, Plugin: c.Plugin, Storage: c.StoragePath, Hub: c.Hub, Endpoint: c.Endpoint, Wait: c.Wait, Version: job.Version(),
	})
	var err error
	if c.JSON {
		enc := json.NewEncoder(s.Out)
		enc.SetIndent("", "  ")
		err = enc.Encode(report)
	} else {
		err = report.Print(s.Out)
	}
	if err == nil && report.Failed() {
		err = errUnfit
	}
	return err
}
