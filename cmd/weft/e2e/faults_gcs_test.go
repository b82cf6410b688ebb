package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"weft/checkpoint/gcs/gcstest"
)

// cloudFault is a fault of Cloud Storage that meets a run of two epochs when it goes on to a third.
type cloudFault struct {
	name string
	// damage changes the objects, by their path under the storage path; fault is the server's.
	damage func(objects map[string][]byte)
	fault  *gcstest.Fault
	keep   string
	// code is the exit code, from the step that it goes on from, 0 for none; says is on standard error or output.
	code, from int
	says       []string
}

// Steps of the newest checkpoint of the run of two epochs and of the one before.
const cloudNewest, cloudBefore = 8, 6

func cloudFaults() []cloudFault {
	const newest = "checkpoints/epoch-0002-step-00000008/"
	const shard, manifest, pointer = newest + "state/process-0000-shard-00000.safetensors", newest + "manifest.json", "checkpoints/.weft-newest.json"
	fault := func(op gcstest.Op, name string, times int, do gcstest.Action) *gcstest.Fault {
		return &gcstest.Fault{Op: op, Name: name, Times: times, Do: do}
	}
	flip := func(name string) func(map[string][]byte) {
		return func(o map[string][]byte) {
			o[name] = append([]byte{}, o[name]...)
			o[name][len(o[name])/2] ^= 1
		}
	}
	gone := func(name string) func(map[string][]byte) {
		return func(o map[string][]byte) { delete(o, name) }
	}
	return []cloudFault{
		{name: "a listing without the newest", fault: fault(gcstest.List, "", gcstest.Always, gcstest.StaleList("epoch-0002-step-00000008")), from: cloudNewest},
		{name: "a listing without any", fault: fault(gcstest.List, "", gcstest.Always, gcstest.StaleList("epoch-000")), from: cloudNewest},
		{name: "the pointer is lost", damage: gone(pointer), from: cloudNewest},
		{name: "the pointer is cut", damage: func(o map[string][]byte) { o[pointer] = o[pointer][:len(o[pointer])/2] }, code: 2, says: []string{".weft-newest.json is not as weft writes it"}},
		// It is there for listings that are out of date, and these are not.
		{name: "the pointer has a flipped bit in a name", damage: flip(pointer), from: cloudNewest},
		{name: "the manifest is lost", damage: gone(manifest), from: cloudBefore, says: []string{passedOver, "manifest.json: it is missing"}},
		{name: "the manifest has a flipped bit", damage: flip(manifest), from: cloudBefore, says: []string{passedOver, "is damaged: manifest.json"}},
		{name: "a state object is lost", damage: gone(shard), from: cloudBefore, says: []string{passedOver, "is damaged: state/"}},
		{name: "a state object has a flipped bit", damage: flip(shard), from: cloudBefore, says: []string{passedOver, "is damaged: state/"}},
		{name: "a state object is cut", damage: func(o map[string][]byte) { o[shard] = o[shard][:len(o[shard])/2] }, from: cloudBefore, says: []string{passedOver, "is damaged: state/"}},
		{name: "bits flip on the way down, once", fault: fault(gcstest.Read, shard, 1, gcstest.BitFlip), from: cloudNewest},
		{name: "bits flip on the way down, always", fault: fault(gcstest.Read, shard, gcstest.Always, gcstest.BitFlip), from: cloudBefore, says: []string{passedOver}},
		{name: "the way down breaks, once", fault: fault(gcstest.Read, shard, 1, gcstest.HalfRead), from: cloudNewest},
		{name: "503 on the way down, once", fault: fault(gcstest.Read, shard, 1, gcstest.Unavailable), from: cloudNewest},
		{name: "reading is forbidden", fault: fault(gcstest.Read, newest, gcstest.Always, gcstest.Forbidden("storage.objects.get")), code: 2, says: []string{"storage.objects.get", newest}},
		{name: "429 on the way up, once", fault: fault(gcstest.Insert, "epoch-0003", 1, gcstest.TooMany(0)), from: cloudNewest},
		{name: "half an upload, once", fault: fault(gcstest.Insert, "epoch-0003", 1, gcstest.HalfUpload), from: cloudNewest},
		{name: "bits flip on the way up, once", fault: fault(gcstest.Insert, "epoch-0003", 1, gcstest.BitFlipUp), from: cloudNewest},
		{name: "the answer to an upload is lost", fault: fault(gcstest.Insert, "epoch-0003", 1, gcstest.LostAnswer), from: cloudNewest},
		{name: "the answer to the commit is lost", fault: fault(gcstest.Copy, "epoch-0003", 1, gcstest.LostAnswer), from: cloudNewest},
		{name: "writing is forbidden", fault: fault(gcstest.Insert, "epoch-0003", gcstest.Always, gcstest.Forbidden("storage.objects.create")), code: 1, from: cloudNewest, says: []string{"storage.objects.create", "saving step 12"}},
		{name: "a delete is lost", fault: fault(gcstest.Delete, "epoch-0001", 1, gcstest.LostDelete), keep: "1", from: cloudNewest},
		{name: "deleting is forbidden", fault: fault(gcstest.Delete, "epoch-0001", gcstest.Always, gcstest.Forbidden("storage.objects.delete")), keep: "1", from: cloudNewest, says: []string{"deleting older checkpoints failed", "storage.objects.delete"}},
	}
}

// Every fault of Cloud Storage is an error that names it, another try, or a warning and the checkpoint before; the bits that a
// run comes to are never others.
func TestFaultsOnCloudStorage(t *testing.T) {
	server := gcstest.Start(t, crashBucket)
	server.Use(t)
	c := newCrash(t)
	base := bucket{server, "base"}
	o := finish(t, c.command(t, base.url(), base.env(), "--num-epochs", "2", "--keep", "0"))
	require.Zero(t, o.code, o.err)
	for i, f := range cloudFaults() {
		t.Run(f.name, func(t *testing.T) {
			objects := map[string][]byte{}
			for name, content := range base.files(t) {
				objects[name] = []byte(content)
			}
			if f.damage != nil {
				f.damage(objects)
			}
			b := bucket{server, fmt.Sprintf("run-%d", i)}
			for name, content := range objects {
				server.Put(crashBucket, b.prefix+"/"+name, content)
			}
			c.cloudFault(t, b, f)
		})
	}
}

func (c *crash) cloudFault(t *testing.T, b bucket, f cloudFault) {
	keep := "0"
	if f.keep != "" {
		keep = f.keep
	}
	if f.fault != nil {
		fault := *f.fault
		b.server.Inject(fault)
	}
	o := finish(t, c.command(t, b.url(), b.env(), "--keep", keep))
	if happened := b.server.Heal(); f.fault != nil {
		require.Positive(t, happened[0], "the fault was never met")
	}
	t.Log(strings.TrimSpace(o.err))
	require.Equal(t, f.code, o.code, "%s\n%s", o.out, o.err)
	for _, want := range f.says {
		require.Contains(t, o.out+o.err, want)
	}
	if f.from > 0 {
		require.Regexp(t, fmt.Sprintf(`resuming from \S+-step-0*%d: `, f.from), o.out)
	} else {
		require.NotContains(t, o.out, "Epoch 3/3")
	}
	if f.code != 0 && f.damage != nil {
		return
	}
	again := finish(t, c.command(t, b.url(), b.env(), "--keep", keep))
	require.Zero(t, again.code, "the fault is over: %s", again.err)
	list, err := b.manager(t).List()
	require.NoError(t, err)
	last := list[len(list)-1]
	require.Equal(t, 12, last.Step)
	require.NoError(t, b.manager(t).Verify(last))
	have := b.files(t)
	sameBits(t, c.whole, have, last.Name, f.name)
	require.Equal(t, c.want, lineValues(t, have["metrics.jsonl"]))
	if f.damage == nil {
		b.noTemporary(t, have, nil, 0, f.name)
	}
}
