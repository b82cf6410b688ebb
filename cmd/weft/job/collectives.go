package job

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"weft/engine"
	"weft/engine/collectives"
	"weft/engine/process"
	"weft/internal/memory"
	"weft/internal/watchdog"
)

// CollectivesConfig is everything that `weft collectives` is told. Its field tags are its flags.
type CollectivesConfig struct {
	Seed      int64  `group:"check" default:"42" placeholder:"N" help:"Seed of the feed-forward block's weights and rows; the same on every host."`
	Bandwidth bool   `group:"check" default:"true" negatable:"" help:"Measure all-gather, reduce-scatter and all-reduce by size, once the check has passed."`
	Sizes     string `group:"check" placeholder:"SIZE,…" help:"Sizes to measure, such as 64KiB,1MiB,256MiB; each is rounded up to whole tiles on every device. Default: 1MiB,16MiB,256MiB,1GiB; on a CPU 64KiB,1MiB,16MiB; those that fit in the devices' memory."`
	Warmup    int    `group:"check" default:"2" placeholder:"N" help:"Runs before those that are timed."`
	Repeats   int    `group:"check" default:"10" placeholder:"N" help:"Runs to take the median of."`

	DeviceFlags

	Ahead  string `group:"ahead" placeholder:"NAME" help:"Run nothing: compile the same programs with libtpu for a slice that need not be there, such as v6e:4x4 or tpu7x:2x2x2, and print the collectives in what the compiler made."`
	Effort string `group:"ahead" default:"default" enum:"default,O0,O1,O2,O3" help:"What the compiler spends with --ahead: ${enum}."`
}

// CollectivesReport is the outcome of `weft collectives` on one host; its JSON form is what --json prints.
type CollectivesReport struct {
	Platform   string `json:"platform"`
	DeviceKind string `json:"device_kind"`
	Mesh       string `json:"mesh"`
	// IP is this host's address, as its peers see it.
	IP string `json:"ip"`
	collectives.Result
	// Bandwidth is what was measured, on this host's clock; empty with --no-bandwidth or after a wrong result.
	Bandwidth []*collectives.Measurement `json:"bandwidth"`
	// LeftOut are the default sizes, bytes, that do not fit.
	LeftOut []int `json:"left_out,omitempty"`
}

// defaultSizes are those of --sizes.
var defaultSizes = map[string]string{PlatformCPU: "64KiB,1MiB,16MiB", PlatformTPU: "1MiB,16MiB,256MiB,1GiB"}

// Collectives checks the devices and measures them. checked is called after the check, each measurement by measured. What
// is wrong with the input is an InputError; a wrong result is another error, after checked.
func Collectives(ctx context.Context, c CollectivesConfig, console Console, checked func(*CollectivesReport), measured func(*collectives.Measurement)) (*CollectivesReport, error) {
	sizes, err := c.check()
	if err != nil {
		return nil, Input(err)
	}
	dog := watchCollectives(console)
	defer dog.Enter("the opening of the devices", collectivesDeadline)()
	rt, err := openRuntime(ctx, &c.DeviceFlags, newReport(console, true))
	if err != nil {
		return nil, err
	}
	dog.GoesOn("the check")
	report, err := c.run(rt, sizes, checked, func(m *collectives.Measurement) {
		dog.GoesOn("the measurement after " + m.Collective)
		measured(m)
	})
	return report, errors.Join(err, rt.Close())
}

// collectivesDeadline bounds the check and each measurement: a host that is lost would leave the others waiting for ever.
const collectivesDeadline = 30 * time.Minute

func watchCollectives(console Console) *watchdog.Watchdog {
	name, err := os.Hostname()
	if err != nil {
		name = "unknown"
	}
	return watchdog.New(watchdog.Options{Host: name, Log: console.Log, Advice: func() string {
		return "a host of the slice did not start, or is lost: run weft doctor on each"
	}})
}

// check reads what needs no device: the sizes, nil for the default ones.
func (c *CollectivesConfig) check() ([]int, error) {
	if c.Warmup < 0 || c.Repeats < 1 {
		return nil, fmt.Errorf("--warmup %d, --repeats %d: give at least 0 and 1", c.Warmup, c.Repeats)
	}
	if c.Sizes == "" {
		return nil, nil
	}
	sizes, err := parseSizes(c.Sizes)
	if err != nil {
		return nil, fmt.Errorf("--sizes: %w", err)
	}
	return sizes, nil
}

func (c *CollectivesConfig) run(rt *engine.Runtime, sizes []int, checked func(*CollectivesReport), measured func(*collectives.Measurement)) (*CollectivesReport, error) {
	r := &CollectivesReport{
		Platform: rt.Platform(), DeviceKind: rt.DeviceKind(), Mesh: rt.Mesh().String(), IP: ownIP(), Bandwidth: []*collectives.Measurement{},
	}
	var err error
	if c.Bandwidth { // before anything is run: every host must come to the same end
		if sizes, r.LeftOut, err = fitting(rt, sizes); err != nil {
			return nil, Input(err)
		}
	}
	result, err := collectives.Check(rt, collectives.Draw(c.Seed))
	if err != nil {
		return nil, fmt.Errorf("check the devices: %w", err)
	}
	r.Result = *result
	checked(r)
	if err := r.Err(); err != nil || !c.Bandwidth {
		return r, err
	}
	return r, c.measure(rt, r, sizes, measured)
}

// measure measures every kind and size. A host that finds a wrong result goes on as far as the others do, and tells them.
func (c *CollectivesConfig) measure(rt *engine.Runtime, r *CollectivesReport, sizes []int, measured func(*collectives.Measurement)) error {
	if err := sameOnAllHosts(rt, fmt.Sprintf("--sizes %v --warmup %d --repeats %d", sizes, c.Warmup, c.Repeats)); err != nil {
		return Input(err)
	}
	var wrong []error
	for _, kind := range collectives.Kinds {
		for _, size := range sizes {
			m, err := collectives.Measure(rt, kind, size, c.Warmup, c.Repeats)
			var result *collectives.WrongResult
			if errors.As(err, &result) {
				wrong = append(wrong, err)
			} else if err != nil {
				return err
			}
			r.Bandwidth = append(r.Bandwidth, m)
			measured(m)
		}
	}
	all, err := rt.Exchange("wrong results", fmt.Append(nil, len(wrong)))
	if len(wrong) > 0 || err != nil {
		return errors.Join(append(wrong, err)...)
	}
	for host, count := range all {
		if string(count) != "0" {
			return fmt.Errorf("%s has %s wrong results of its own: see its output", rt.HostName(host), count)
		}
	}
	return nil
}

// sameOnAllHosts refuses to go on where hosts were given different flags: they would wait for each other.
func sameOnAllHosts(rt *engine.Runtime, settings string) error {
	all, err := rt.Exchange("the settings", []byte(settings))
	if err != nil {
		return err
	}
	for host, other := range all {
		if string(other) != settings {
			return fmt.Errorf("%s measures with %s, this host with %s: give every host the same flags", rt.HostName(host), other, settings)
		}
	}
	return nil
}

// fitting returns the sizes that the memory allows: all of those that were asked for, or an error; of the default ones
// those that fit.
func fitting(rt *engine.Runtime, asked []int) (sizes, leftOut []int, err error) {
	n := rt.Mesh().NumDevices()
	limit := 0
	if rt.Platform() == PlatformCPU {
		left, ok := memory.Available()
		if !ok {
			return nil, nil, errors.New("find out how much memory this host has: the kernel does not tell")
		}
		limit = collectives.MaxSizeOf(int(left.Bytes), n)
	} else if limit, err = collectives.MaxSize(rt); err != nil {
		return nil, nil, err
	}
	wanted := asked
	if asked == nil {
		text := defaultSizes[rt.Platform()]
		if text == "" {
			text = defaultSizes[PlatformCPU]
		}
		if wanted, err = parseSizes(text); err != nil {
			return nil, nil, err
		}
	}
	for _, s := range wanted {
		switch {
		case collectives.RoundSize(s, n) <= limit:
			sizes = append(sizes, s)
		case asked == nil:
			leftOut = append(leftOut, s)
		default:
			return nil, nil, fmt.Errorf("--sizes: %s is more than the devices' memory allows, which is %s: give smaller ones", size(s), size(limit))
		}
	}
	return sizes, leftOut, nil
}

// parseSizes reads 64KiB,1MiB.
func parseSizes(text string) ([]int, error) {
	var out []int
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		n, err := parseSize(part)
		if err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	return out, nil
}

// maxSize bounds a size, so that none overflows.
const maxSize = 1 << 42

func parseSize(text string) (int, error) {
	digits := strings.TrimRight(text, "BKMGTibkmgt")
	factor, known := map[string]int{"": 1, "B": 1, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}[strings.ToUpper(text[len(digits):])]
	n, err := strconv.Atoi(digits)
	if err != nil || !known || n < 1 || n > maxSize/factor {
		return 0, fmt.Errorf("%q is no size: give a number of bytes or one with KiB, MiB or GiB, such as 64KiB,1MiB", text)
	}
	return n * factor, nil
}

// ownIP is the address of this host that others see: its entry among the slice's hosts where that is an address, else the
// one that packets to other networks leave from. Nothing is sent.
func ownIP() string {
	if v, err := process.FromEnv(); err == nil && net.ParseIP(v.Host()) != nil {
		return v.Host()
	}
	c, err := net.Dial("udp", "192.0.2.1:9") // an address for documentation (RFC 5737): only the route is looked up
	if err != nil {
		return "127.0.0.1"
	}
	defer c.Close()
	host, _, err := net.SplitHostPort(c.LocalAddr().String())
	if err != nil {
		return "127.0.0.1"
	}
	return host
}
