package collectives

import (
	"cmp"
	"fmt"
	"slices"

	"weft/engine"
)

// Rank is the place of a device among the hosts.
type Rank struct {
	// Rank counts all devices: those of a host after those of the host before, those of a slice after those of the slice
	// before.
	Rank int `json:"rank"`
	// Slice is the number of the slice, Worker that of the host in it (TPU_WORKER_ID), Local that of the device on the
	// host.
	Slice  int `json:"slice"`
	Worker int `json:"worker_id"`
	Local  int `json:"local_rank"`
	// Position is the device's position in the mesh.
	Position int `json:"mesh_position"`
}

// String names the rank and where it is.
func (r Rank) String() string { return fmt.Sprintf("rank %d (%s)", r.Rank, r.Place()) }

// Place says where the rank is, as the guide's lines do; the slice only where it is not the first.
func (r Rank) Place() string {
	place := fmt.Sprintf("worker_id=%d, local_rank=%d", r.Worker, r.Local)
	if r.Slice > 0 {
		place = fmt.Sprintf("slice=%d, ", r.Slice) + place
	}
	return place
}

// device is what a rank is made of; see pjrt.DeviceDescription.
type device interface {
	ID() int
	Attributes() map[string]any
}

// Ranks returns the rank of every mesh position: slice by slice, process by process, by the device's id.
func Ranks(rt *engine.Runtime) []Rank { return ranksOf(rt.Devices(), rt.Owners()) }

// ranksOf ranks devices in the order of the mesh, each of which belongs to a process.
func ranksOf[D device](devices []D, processes []int) []Rank {
	ranks := make([]Rank, len(devices))
	order := make([]int, len(devices))
	for i, d := range devices {
		slice, _ := d.Attributes()["slice_index"].(int64)
		ranks[i] = Rank{Position: i, Slice: int(slice)}
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		return cmp.Or(cmp.Compare(ranks[i].Slice, ranks[j].Slice), cmp.Compare(processes[i], processes[j]), cmp.Compare(devices[i].ID(), devices[j].ID()))
	})
	for n, i := range order {
		ranks[i].Rank = n
		if n == 0 {
			continue
		}
		before := order[n-1]
		switch {
		case ranks[before].Slice != ranks[i].Slice:
		case processes[before] != processes[i]:
			ranks[i].Worker = ranks[before].Worker + 1
		default:
			ranks[i].Worker, ranks[i].Local = ranks[before].Worker, ranks[before].Local+1
		}
	}
	return ranks
}
