package e2e

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"weft/checkpoint"
	"weft/checkpoint/gcs/gcstest"
	"weft/checkpoint/storage"
)

// bucket is the storage path of a run on a fake Cloud Storage.
type bucket struct {
	server *gcstest.Server
	prefix string
}

const crashBucket = "crash"

// lease is how long a dead run keeps the storage path.
const lease = "1s"

func (b bucket) url() string   { return "gs://" + crashBucket + "/" + b.prefix }
func (b bucket) env() []string { return []string{b.server.Env(), "WEFT_GCS_LEASE=" + lease} }
func (b bucket) remote() bool  { return true }

// arm kills the process when the server meets the request.
func (b bucket) arm(v *killable, k kill) (ended func()) {
	client := b.server.Client()
	v.Env = append(v.Env, client.Env())
	if k.spec != "" {
		part := strings.Split(k.spec, ":")
		op, of, _ := strings.Cut(part[0], "/")
		n, _ := strconv.Atoi(part[1])
		action := map[string]func(func()) gcstest.Action{"before": gcstest.Before, "half": gcstest.Half, "after": gcstest.After}[part[2]]
		b.server.Inject(gcstest.Fault{Op: gcstest.Op(op), Name: of, Skip: n - 1, Do: action(v.kill)})
	}
	return func() {
		client.Gone()
		b.server.Heal()
	}
}

// quiet: a lease that is waited for is told; nothing else.
func (b bucket) quiet(t *testing.T, errs, label string) {
	t.Helper()
	for line := range strings.Lines(errs) {
		require.Contains(t, line, "lease", label)
	}
}

func (b bucket) manager(t *testing.T) *checkpoint.Manager {
	t.Helper()
	fsys, name, err := storage.Open(context.Background(), b.url())
	require.NoError(t, err)
	m, err := checkpoint.Open(fsys, name, checkpoint.Options{ReadOnly: true})
	require.NoError(t, err)
	return m
}

func (b bucket) files(t testing.TB) map[string]string {
	t.Helper()
	out := map[string]string{}
	for name, content := range b.server.Objects(crashBucket) {
		if rel, ok := strings.CutPrefix(name, b.prefix+"/"); ok {
			out[rel] = string(content)
		}
	}
	return out
}

func (b bucket) put(t *testing.T, name, content string) bool {
	t.Helper()
	b.server.Put(crashBucket, b.prefix+"/"+name, []byte(content))
	return true
}

func (b bucket) temporary(t *testing.T) []string {
	t.Helper()
	out := map[string]bool{}
	for name := range b.files(t) {
		if path.Base(name) == ".weft-intent.json" {
			out[path.Dir(name)] = true
		}
	}
	return slices.Sorted(maps.Keys(out))
}

// noTemporary: what a live run has under way is not told from what a dead one left, so it is at the end that all is gone.
func (b bucket) noTemporary(t *testing.T, files, foreign map[string]string, pid int, label string) {
	t.Helper()
	if pid != 0 {
		return
	}
	for name := range files {
		base := path.Base(name)
		require.True(t, !strings.Contains(base, ".weft-") || base == ".weft-newest.json", "%s: %s is left", label, name)
		if of := ofCheckpoint.FindString(name); of != "" && foreign[base] == "" {
			folder := strings.Join(strings.Split(name, "/")[:2], "/")
			require.Contains(t, files, folder+"/manifest.json", "%s: %s is left", label, name)
		}
	}
}

// requests are the operations of a run on the server, without those of the lease, whose number depends on time.
func (b bucket) requests() []operation {
	var out []operation
	for _, r := range b.server.Requests() {
		op := operation{kind: string(r.Op), name: r.Name, of: ofCheckpoint.FindString(r.Name)}
		base := path.Base(r.Name)
		switch {
		case op.of != "" || r.Op == gcstest.List:
		case slices.Contains([]string{"metrics.jsonl", "run.json", ".weft-newest.json"}, base):
			op.of = base
		default:
			continue
		}
		if r.Op == gcstest.List {
			op.of = ""
		}
		out = append(out, op)
	}
	return number(out)
}

// The same on Cloud Storage, where the server kills the run when it meets a request, in the middle of one or when it has done
// what was asked.
func TestCrashOnCloudStorage(t *testing.T) {
	kills := crashKills(t) / 4
	server := gcstest.Start(t, crashBucket)
	server.Use(t)
	c := newCrash(t)
	counted := bucket{server, "counted"}
	c.count(t, counted, nil, counted.requests)
	rng := rand.New(rand.NewPCG(crashSeed, uint64(kills)))
	moments := instants(kills/4, len(c.trace), rng)
	c.deal(t, boundaries(c.trace, kills-len(moments), rng), moments, rng, func(n int) ground {
		return bucket{server, fmt.Sprintf("run-%d", n)}
	})
}
