package safetensors

import "math/bits"

// castagnoliPoly is the CRC32C polynomial, lowest power in the highest bit.
const castagnoliPoly = 0x82f63b78

// CombineCRC32C returns the CRC32C of two runs of bytes, one after the other, from the checksum a of the first and b of the
// second, which has n bytes. Appending n bytes multiplies what the register held by x^(8n) modulo the polynomial, and
// the bytes themselves are added to it.
func CombineCRC32C(a, b uint32, n int64) uint32 {
	// power runs through x^8, x^16, x^32…: the factors of x^(8n).
	power := uint32(1) << (31 - 8)
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			a = mulPoly(a, power)
		}
		power = mulPoly(power, power)
	}
	return a ^ b
}

// mulPoly multiplies two polynomials over GF(2) modulo the CRC's, in its reflected bit order.
func mulPoly(a, b uint32) uint32 {
	var product uint32
	for a != 0 {
		top := bits.LeadingZeros32(a) // a holds x^top as its lowest power
		a &^= 1 << (31 - top)
		product ^= timesX(b, top)
	}
	return product
}

// timesX multiplies by x^n.
func timesX(p uint32, n int) uint32 {
	for range n {
		p = p>>1 ^ p&1*castagnoliPoly
	}
	return p
}
