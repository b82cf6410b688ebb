package gemma

import "fmt"

// segment is a run of layers that repeats a pattern: layer first+r*period+j has the kind of layer first+j, for each
// repetition r of count.
type segment struct{ first, period, count int }

// layer is the index of the layer at position j of repetition r.
func (s segment) layer(r, j int) int { return s.first + r*s.period + j }

// end is the index after the last layer.
func (s segment) end() int { return s.first + s.period*s.count }

// name is the prefix of the parameters at position j: `layers.3`, or `layers.0-10:5` for a stack of layers 0, 5, 10.
func (s segment) name(j int) string {
	if s.count == 1 {
		return fmt.Sprintf("layers.%d", s.first+j)
	}
	return fmt.Sprintf("layers.%d-%d:%d", s.layer(0, j), s.layer(s.count-1, j), s.period)
}

// findSegments cuts a sequence of layer kinds in segments so that the number of layers to compile, the sum of the
// periods, is smallest, then the number of segments, then the length of the last one. Gemma 4 E2B's 35 layers become (ssssf)×3 with their
// own keys and values and (ssssf)×4 that share them.
func findSegments[K comparable](kinds []K) []segment {
	type best struct {
		bodies, segments int
		last             segment
	}
	table := make([]best, len(kinds)+1)
	for end := 1; end <= len(kinds); end++ {
		table[end].bodies = len(kinds) + 1
	}
	for first := range kinds {
		for period := 1; first+period <= len(kinds); period++ {
			for count := 1; first+count*period <= len(kinds); count++ {
				if count > 1 && !repeats(kinds, first, period, count-1) {
					break
				}
				s := segment{first, period, count}
				bodies, segments := table[first].bodies+period, table[first].segments+1
				if t := &table[s.end()]; bodies < t.bodies || bodies == t.bodies && segments <= t.segments {
					*t = best{bodies, segments, s}
				}
			}
		}
	}
	var segments []segment
	for end := len(kinds); end > 0; end = segments[0].first {
		segments = append([]segment{table[end].last}, segments...)
	}
	return segments
}

// repeats tells whether repetition r equals the first one.
func repeats[K comparable](kinds []K, first, period, r int) bool {
	for j := range period {
		if kinds[first+j] != kinds[first+r*period+j] {
			return false
		}
	}
	return true
}

// unrolled makes every layer a segment of its own.
func unrolled(n int) []segment {
	segments := make([]segment, n)
	for i := range segments {
		segments[i] = segment{first: i, period: 1, count: 1}
	}
	return segments
}
