package tokenizer

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// addedToken is one entry of added_tokens.
type addedToken struct {
	ID         int32  `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"` // only between characters that are not of a word
	LStrip     bool   `json:"lstrip"`      // takes the white space before it
	RStrip     bool   `json:"rstrip"`      // takes the white space after it
	Normalized bool   `json:"normalized"`  // looked for in the normalised text
	Special    bool   `json:"special"`     // left out by Decode with skipSpecial
}

// trie finds the longest of many strings that starts at a place. Children are linked lists: fan-out is small but at
// the root, which has a table.
type trie struct {
	root  [256]int32 // 0: none
	nodes []trieNode // nodes[0] is unused
}

type trieNode struct {
	child, sibling int32
	token          int32 // index of the token that ends here, or -1
	c              byte
}

func (t *trie) insert(content string, token int32) {
	if len(t.nodes) == 0 {
		t.nodes = append(t.nodes, trieNode{token: -1})
	}
	at := int32(0)
	for i := range len(content) {
		next := t.step(at, content[i])
		if next == 0 {
			next = int32(len(t.nodes))
			t.nodes = append(t.nodes, trieNode{c: content[i], token: -1})
			if at == 0 {
				t.root[content[i]] = next
			} else {
				t.nodes[next].sibling = t.nodes[at].child
				t.nodes[at].child = next
			}
		}
		at = next
	}
	t.nodes[at].token = token
}

func (t *trie) step(at int32, c byte) int32 {
	if at == 0 {
		return t.root[c]
	}
	n := t.nodes[at].child
	for n != 0 && t.nodes[n].c != c {
		n = t.nodes[n].sibling
	}
	return n
}

// longest returns the index and length of the longest string that text starts with, or -1.
func (t *trie) longest(text string) (token int32, length int) {
	token = -1
	at := int32(0)
	for i := range len(text) {
		if at = t.step(at, text[i]); at == 0 {
			break
		}
		if t.nodes[at].token >= 0 {
			token, length = t.nodes[at].token, i+1
		}
	}
	return token, length
}

// piece is a part of a text: either plain, or an added token.
type piece struct {
	text  string
	token *addedToken // nil for plain text
}

// split cuts text at added tokens: the leftmost match first, and of those the longest.
func (t *trie) split(text string, tokens []addedToken, emit func(piece)) {
	done := 0 // text[:done] is emitted
	for i := 0; i < len(text); {
		if len(t.nodes) == 0 {
			break
		}
		if t.root[text[i]] == 0 {
			i++
			continue
		}
		index, length := t.longest(text[i:])
		if index < 0 {
			i++
			continue
		}
		token, start, stop := &tokens[index], i, i+length
		i = stop
		if token.SingleWord && (endsWithWord(text[:start]) || startsWithWord(text[stop:])) {
			continue
		}
		if token.LStrip {
			start = len(strings.TrimRightFunc(text[:start], unicode.IsSpace))
		}
		start = max(start, done)
		if token.RStrip {
			stop = len(text) - len(strings.TrimLeftFunc(text[stop:], unicode.IsSpace))
		}
		if done < start {
			emit(piece{text: text[done:start]})
		}
		emit(piece{text: text[start:stop], token: token})
		done = stop
	}
	if done < len(text) {
		emit(piece{text: text[done:]})
	}
}

func startsWithWord(text string) bool {
	r, _ := utf8.DecodeRuneInString(text)
	return text != "" && isWord(r)
}

func endsWithWord(text string) bool {
	r, _ := utf8.DecodeLastRuneInString(text)
	return text != "" && isWord(r)
}

// isWord is \w of Unicode regular expressions (UTS 18, annex C), as the tokenizers library uses it.
func isWord(r rune) bool {
	return unicode.IsLetter(r) || unicode.In(r, unicode.M, unicode.Nd, unicode.Nl, unicode.Pc,
		unicode.Other_Alphabetic, unicode.Join_Control)
}
