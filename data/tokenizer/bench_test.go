package tokenizer

import (
	"os"
	"strings"
	"testing"

	"weft/internal/fixture"
)

func BenchmarkLoad(b *testing.B) {
	data, err := os.ReadFile(fixture.Dir(b, "tokenizer", "tokenizer.json.gz"))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := LoadBytes(data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	tok := loadGemma3(b)
	for name, text := range map[string]string{
		"prose-1MB": strings.Repeat("The history of computing is long, and full of people who knew better. ", 1<<20/71),
		"as-1MB":    strings.Repeat("a", 1<<20),
		"hangul":    strings.Repeat("서울은 어느 나라의 수도인가요? ", 1<<20/44),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				tok.Encode(text, true)
			}
		})
	}
}
