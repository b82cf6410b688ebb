package data

import (
	"math/bits"
	"math/rand/v2"
)

// Order returns a permutation of 0 … n-1 that depends on n, seed and epoch only and will never change: the
// Fisher–Yates shuffle (Durstenfeld 1964; from the last element down, swapping i with a random j ≤ i) with numbers
// of PCG-DXSM (math/rand/v2's PCG) whose state starts as (seed, epoch). A number below k is drawn from the high half
// of the 128-bit product of a 64-bit number and k, drawn again where that would be uneven (Lemire 2019).
func Order(n int, seed uint64, epoch int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	pcg := rand.NewPCG(seed, uint64(epoch))
	for i := n - 1; i > 0; i-- {
		j := below(pcg, uint64(i)+1)
		order[i], order[j] = order[j], order[i]
	}
	return order
}

func below(pcg *rand.PCG, k uint64) uint64 {
	hi, lo := bits.Mul64(pcg.Uint64(), k)
	for uneven := -k % k; lo < uneven; {
		hi, lo = bits.Mul64(pcg.Uint64(), k)
	}
	return hi
}
