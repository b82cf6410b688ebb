package pjrt

import "sync/atomic"

// handleKind is a kind of C handle that the binding owns and must destroy.
type handleKind int

const (
	clientHandle handleKind = iota
	bufferHandle
	eventHandle
	executableHandle
	loadedExecutableHandle
	topologyHandle
	numHandleKinds
)

var handleNames = [numHandleKinds]string{"client", "buffer", "event", "executable", "loaded executable", "topology"}

var liveHandles [numHandleKinds]atomic.Int64

// LiveHandles counts the C handles that are alive in this process, by kind: "client", "buffer", "event", "executable", "loaded
// executable" and "topology". Kinds of which none is alive are present with 0. A loop that leaks nothing leaves it as it was.
func LiveHandles() map[string]int {
	m := make(map[string]int, numHandleKinds)
	for k, name := range handleNames {
		m[name] = int(liveHandles[k].Load())
	}
	return m
}
