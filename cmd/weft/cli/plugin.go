package cli

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"syscall"
	"text/tabwriter"

	"weft/cmd/weft/job"
	"weft/pjrt/plugin"
)

type pluginCmd struct {
	Install pluginInstallCmd `cmd:"" help:"Download a plugin with python3's pip, at a pinned version and sha256, into weft's cache folder. Repairs one that is damaged."`
	List    pluginListCmd    `cmd:"" help:"List the plugins that were installed."`
	Verify  pluginVerifyCmd  `cmd:"" help:"Hash installed plugins and compare them with what was installed."`
}

// Help is the long help.
func (pluginCmd) Help() string {
	return `A PJRT plugin is the shared library that compiles and runs programs on a kind of device: XLA's for the CPU, libtpu for TPUs. A run looks for one in this order: --plugin, WEFT_PJRT_PLUGIN, weft's cache folder (WEFT_CACHE, else weft in the user's cache folder), and for TPUs the libtpu of the machine. The CPU plugin is installed by itself the first time a run needs it, libtpu the first time that weft plan does.`
}

type pluginInstallCmd struct {
	Name string `arg:"" help:"cpu, cpu-alt (another build of it) or tpu."`
}

// Run installs one plugin.
func (c pluginInstallCmd) Run(s streams) error {
	if err := knownPlugin(c.Name); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	info, err := plugin.Install(ctx, c.Name, s.Err)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(s.Out, info.Path)
	return err
}

type pluginListCmd struct{}

// Run prints a table.
func (pluginListCmd) Run(s streams) error {
	infos, err := plugin.List()
	if err != nil {
		return err
	}
	if len(infos) == 0 {
		_, err := fmt.Fprintln(s.Out, "no plugin is installed; install one with: weft plugin install cpu")
		return err
	}
	w := tabwriter.NewWriter(s.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tVERSION\tBYTES\tPATH")
	for _, i := range infos {
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\n", i.Name, i.Version, i.Size, i.Path)
	}
	return w.Flush()
}

type pluginVerifyCmd struct {
	Names []string `arg:"" optional:"" help:"Plugins to verify. Default: all that are installed."`
}

// Run prints a line a plugin and fails when one of them is damaged or not there.
func (c pluginVerifyCmd) Run(s streams) error {
	for _, name := range c.Names {
		if err := knownPlugin(name); err != nil {
			return err
		}
	}
	names := c.Names
	if len(names) == 0 {
		var err error
		if names, err = installedPlugins(); err != nil {
			return err
		}
	}
	if len(names) == 0 {
		_, err := fmt.Fprintln(s.Out, "no plugin is installed; install one with: weft plugin install cpu")
		return err
	}
	var faults []error
	for _, name := range names {
		info, err := plugin.Verify(name)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		fmt.Fprintf(s.Out, "%s %s is whole: sha256 %s\n", info.Name, info.Version, info.SHA256)
	}
	return errors.Join(faults...)
}

// installedPlugins are the plugins of this version of weft that the cache folder holds.
func installedPlugins() ([]string, error) {
	infos, err := plugin.List()
	if err != nil {
		return nil, err
	}
	have := map[string]bool{}
	for _, i := range infos {
		have[i.Name] = true
	}
	var names []string
	for _, name := range plugin.Names() {
		if have[name] {
			names = append(names, name)
		}
	}
	return names, nil
}

// knownPlugin makes a wrong name a fault of the input.
func knownPlugin(name string) error {
	for _, known := range plugin.Names() {
		if name == known {
			return nil
		}
	}
	return job.Input(fmt.Errorf("plugin %q is not known: choose one of %v", name, plugin.Names()))
}
