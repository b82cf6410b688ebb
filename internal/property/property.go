// Package property runs the tests that draw their inputs, by rapid. What they draw is the same in every run, so that a test goes
// red by a change and never by chance. `make properties` draws anew, and more; -rapid.seed N draws again what N drew.
//
// A failure leaves no file behind: its message has the seed that draws it first. -rapid.nofailfile=false keeps the smallest
// failing input under testdata/rapid, from where every run takes it first, until it is deleted.
package property

import (
	"flag"
	"fmt"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var more = flag.Duration("property.for", 0, "draw inputs of each property for this long, at least as many as usual")

func init() {
	set("rapid.seed", "1") // rapid's own, 0, takes another in every run
	set("rapid.nofailfile", "true")
}

// Checks sets how many inputs are drawn where the command line doesn't say, in place of 100, for a package where each takes
// long. Call it from init.
func Checks(n int) { set("rapid.checks", strconv.Itoa(n)) }

// Unshrunk leaves a failing input as it was drawn, for a package whose inputs come from a seed, of which none is simpler than
// another. Call it from init.
func Unshrunk() { set("rapid.shrinktime", "0s") }

// set gives a flag of rapid another default. The command line is read later and goes before it; rapid's environment variables
// do not.
func set(name, value string) {
	f := flag.Lookup(name)
	if err := f.Value.Set(value); err != nil {
		panic(fmt.Sprintf("property: -%s: %v", name, err))
	}
	f.DefValue = value
}

// Check fails the test if prop fails for one of the inputs drawn. Each call draws from the seed alone, whatever ran before it.
func Check(t testing.TB, prop func(*rapid.T)) {
	t.Helper()
	rapid.Check(t, prop)
	if *more > 0 {
		end := time.Now().Add(*more)
		checkOn(t, prop, func() bool { return time.Now().Before(end) })
	}
}

// checkOn draws from one seed after the other.
func checkOn(t testing.TB, prop func(*rapid.T), again func() bool) {
	t.Helper()
	seed := flag.Lookup("rapid.seed").Value
	first := seed.String()
	defer func() { _ = seed.Set(first) }()
	n, err := strconv.ParseUint(first, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	for again() {
		if n != 0 { // of 0, rapid takes another seed by itself
			n += 1 << 40 // far from the seeds that rapid comes to from the last, by small steps
			if err := seed.Set(strconv.FormatUint(n, 10)); err != nil {
				t.Fatal(err)
			}
		}
		rapid.Check(t, prop)
	}
}
