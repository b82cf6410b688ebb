package tokenizer

import (
	"fmt"
	"unicode/utf8"
)

// bpe is the BPE model: the base symbol of every character and the merges of pairs.
type bpe struct {
	ids    map[string]int32
	tokens []string

	low  []int32        // token of each rune below len(low), or -1
	high map[rune]int32 // token of each rune above

	pairs map[uint64]uint64 // left<<32|right -> rank<<32|merged
	joins joinSet

	bytes        [256]int32 // token <0xNN>, or -1
	byteFallback bool
	unk          int32 // or -1
	fuseUnk      bool
	ignoreMerges bool
}

// joinSet remembers, for every merge, the last rune on its left and the first on its right. Two neighbours that are
// not in the set can never end up in one token, so the text may be cut between them. It is a hash set without chains:
// a collision only means that a place is not cut.
type joinSet [1 << 15]uint64

func joinSlot(left, right rune) (word, bit uint32) {
	h := uint32(left)*0x9E3779B1 ^ uint32(right)*0x85EBCA77
	h ^= h >> 15
	h = h * 0x2C1B3C6D >> 11
	return h >> 6, h & 63
}

func (j *joinSet) add(left, right rune) {
	word, bit := joinSlot(left, right)
	j[word] |= 1 << bit
}

func (j *joinSet) has(left, right rune) bool {
	word, bit := joinSlot(left, right)
	return j[word]>>bit&1 == 1
}

const lowRunes = 1 << 16

func newBPE(f *file) (*bpe, error) {
	m := &bpe{ids: f.ids, tokens: f.tokens, low: make([]int32, lowRunes), high: map[rune]int32{}, unk: -1}
	for i := range m.low {
		m.low[i] = -1
	}
	for id, token := range f.tokens {
		if r, n := utf8.DecodeRuneInString(token); n == len(token) && n > 0 {
			if r < lowRunes {
				m.low[r] = int32(id)
			} else {
				m.high[r] = int32(id)
			}
		}
	}
	for b := range m.bytes {
		m.bytes[b] = -1
		if id, ok := m.ids[fmt.Sprintf("<0x%02X>", b)]; ok {
			m.bytes[b] = id
		}
	}
	return m, m.addMerges(f.merges)
}

func (m *bpe) addMerges(merges []merge) error {
	m.pairs = make(map[uint64]uint64, len(merges))
	var whole []byte
	for rank, pair := range merges {
		left, ok := m.ids[pair.left]
		right, ok2 := m.ids[pair.right]
		whole = append(append(whole[:0], pair.left...), pair.right...)
		merged, ok3 := m.ids[string(whole)]
		if !ok || !ok2 || !ok3 {
			return fmt.Errorf("merge %d, %q + %q: a part or the whole is not in the vocabulary", rank, pair.left, pair.right)
		}
		m.pairs[pairKey(left, right)] = uint64(rank)<<32 | uint64(merged)
		last, _ := utf8.DecodeLastRuneInString(pair.left)
		first, _ := utf8.DecodeRuneInString(pair.right)
		m.joins.add(last, first)
	}
	return nil
}

func pairKey(left, right int32) uint64 { return uint64(left)<<32 | uint64(right) }

func (m *bpe) rune(r rune) int32 {
	if r < lowRunes {
		return m.low[r]
	}
	if id, ok := m.high[r]; ok {
		return id
	}
	return -1
}

// symbol is a token in the making: a node of a list linked by index, -1 at the ends.
type symbol struct {
	id         int32 // -1: merged into the one before
	prev, next int
}

// candidate is a merge that could be done at a place.
type candidate struct {
	rank, merged int32
	pos          int
}

func (c candidate) before(d candidate) bool {
	return c.rank < d.rank || c.rank == d.rank && c.pos < d.pos
}

// scratch is the working memory of one Encode.
type scratch struct {
	out     []int32
	symbols []symbol
	queue   []candidate
	last    rune // last rune of the text of the last symbol
	work    int  // comparisons and merges done, for tests of the cost
}

// encode appends the tokens of text, which is one word to BPE. text must be valid UTF-8.
func (m *bpe) encode(text string, s *scratch) {
	if m.ignoreMerges {
		if id, ok := m.ids[text]; ok {
			s.out = append(s.out, id)
			return
		}
	}
	pending := false // an unknown token waits, so that its neighbours fuse into it
	for i, r := range text {
		if id := m.rune(r); id >= 0 {
			if pending {
				m.push(s, m.unk, '<', '>')
				pending = false
			}
			m.push(s, id, r, r)
			continue
		}
		n := utf8.RuneLen(r)
		if m.pushBytes(s, text[i:i+n]) || m.unk < 0 {
			continue
		}
		if pending && !m.fuseUnk {
			m.push(s, m.unk, '<', '>')
		}
		pending = true
	}
	if pending {
		m.push(s, m.unk, '<', '>')
	}
	m.flush(s)
}

// pushBytes adds the byte tokens of a character, if the vocabulary has all of them.
func (m *bpe) pushBytes(s *scratch, char string) bool {
	if !m.byteFallback {
		return false
	}
	for i := range len(char) {
		if m.bytes[char[i]] < 0 {
			return false
		}
	}
	for i := range len(char) {
		m.push(s, m.bytes[char[i]], '<', '>')
	}
	return true
}

// push adds a base symbol whose text starts and ends with the runes given. Where no merge can join it to the one
// before, what came before is finished first: short lists keep the queue small.
func (m *bpe) push(s *scratch, id int32, first, last rune) {
	if n := len(s.symbols); n > 0 && !m.joins.has(s.last, first) {
		m.flush(s)
	}
	n := len(s.symbols)
	if n > 0 {
		s.symbols[n-1].next = n
	}
	s.symbols = append(s.symbols, symbol{id: id, prev: n - 1, next: -1})
	s.last = last
}

// flush merges the symbols gathered and appends what is left to out. The lowest rank goes first, the leftmost of
// equals; a heap makes it n·log n.
func (m *bpe) flush(s *scratch) {
	s.queue = s.queue[:0]
	for i := range len(s.symbols) - 1 {
		if found, ok := m.pairs[pairKey(s.symbols[i].id, s.symbols[i+1].id)]; ok {
			s.queue = append(s.queue, candidate{int32(found >> 32), int32(found), i})
		}
	}
	for i := len(s.queue)/2 - 1; i >= 0; i-- {
		s.siftDown(i)
	}
	for len(s.queue) > 0 {
		m.apply(s, s.pop())
	}
	for _, sym := range s.symbols {
		if sym.id >= 0 {
			s.out = append(s.out, sym.id)
		}
	}
	s.symbols = s.symbols[:0]
}

// apply does the merge c, unless what stands at its place has changed since it was found.
func (m *bpe) apply(s *scratch, c candidate) {
	s.work++
	sym := &s.symbols[c.pos]
	if sym.id < 0 || sym.next < 0 {
		return
	}
	right := &s.symbols[sym.next]
	// The merged token decides, not the rank: so the tokenizers library does it.
	if found, ok := m.pairs[pairKey(sym.id, right.id)]; !ok || int32(found) != c.merged {
		return
	}
	sym.id, right.id, sym.next = c.merged, -1, right.next
	if sym.next >= 0 {
		s.symbols[sym.next].prev = c.pos
		m.offer(s, c.pos, sym.id, s.symbols[sym.next].id)
	}
	if sym.prev >= 0 {
		m.offer(s, sym.prev, s.symbols[sym.prev].id, sym.id)
	}
}

func (m *bpe) offer(s *scratch, pos int, left, right int32) {
	found, ok := m.pairs[pairKey(left, right)]
	if !ok {
		return
	}
	s.queue = append(s.queue, candidate{int32(found >> 32), int32(found), pos})
	for i := len(s.queue) - 1; i > 0; {
		s.work++
		up := (i - 1) / 2
		if !s.queue[i].before(s.queue[up]) {
			break
		}
		s.queue[i], s.queue[up] = s.queue[up], s.queue[i]
		i = up
	}
}

func (s *scratch) pop() candidate {
	top, n := s.queue[0], len(s.queue)-1
	s.queue[0] = s.queue[n]
	s.queue = s.queue[:n]
	s.siftDown(0)
	return top
}

func (s *scratch) siftDown(i int) {
	for {
		s.work++
		least, child := i, 2*i+1
		if child < len(s.queue) && s.queue[child].before(s.queue[least]) {
			least = child
		}
		if child++; child < len(s.queue) && s.queue[child].before(s.queue[least]) {
			least = child
		}
		if least == i {
			return
		}
		s.queue[i], s.queue[least] = s.queue[least], s.queue[i]
		i = least
	}
}
