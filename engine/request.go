package engine

import (
	"encoding/binary"
	"fmt"

	"github.com/gomlx/compute/dtypes"

	"weft/engine/sharding"
)

// Request is what a host asks all hosts of a run for. It travels with a step: every host raises its own on the devices that
// it has, the step adds them up, and its metrics tell every host the same.
type Request struct {
	// Save asks for a checkpoint, Stop for one and the end of the run. Fail says that this host cannot go on: the step lacks
	// its rows, so that its result must not be kept.
	Save, Stop, Fail bool
}

// Any tells whether anything is asked for.
func (r Request) Any() bool { return r.Save || r.Stop || r.Fail }

// Or is what either asks for.
func (r Request) Or(o Request) Request {
	return Request{Save: r.Save || o.Save, Stop: r.Stop || o.Stop, Fail: r.Fail || o.Fail}
}

// The columns of a request on the devices.
const (
	requestSave = iota
	requestStop
	requestFail
	requestColumns
)

// requestInput declares the requests, float32 [devices, 3], of which each device has a row.
func requestInput(mesh sharding.Mesh) Input {
	return Input{
		Name: "request", DType: dtypes.Float32, Dims: []int{mesh.NumDevices(), requestColumns},
		Spec: sharding.Split(2, 0, mesh.AxisNames()...),
	}
}

// sendRequest raises a request on this process's devices.
func (rt *Runtime) sendRequest(r Request) (*Array, error) {
	var row [requestColumns]float32
	for column, raised := range map[int]bool{requestSave: r.Save, requestStop: r.Stop, requestFail: r.Fail} {
		if raised {
			row[column] = 1
		}
	}
	in := requestInput(rt.mesh)
	a, err := rt.NewArray(in.DType, in.Dims, in.Spec, func(region sharding.Region, dst []byte) error {
		for range region.Size[0] {
			n, err := binary.Encode(dst, binary.NativeEndian, row)
			if err != nil {
				return err
			}
			dst = dst[n:]
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("send the request to save, to stop or to fail: %w", err)
	}
	return a, nil
}

// requestOf reads the sum of all devices' requests.
func requestOf(sums []float32) Request {
	return Request{Save: sums[requestSave] > 0, Stop: sums[requestStop] > 0, Fail: sums[requestFail] > 0}
}
