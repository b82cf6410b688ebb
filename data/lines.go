package data

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"weft/data/tokenizer"
)

// TokenizeOptions say what TokenizeLines does.
type TokenizeOptions struct {
	Decode    bool // read ids, write text
	NoSpecial bool // leave out what the tokenizer adds (BOS); with Decode, leave out special tokens
}

// TokenizeLines reads JSON strings, one a line, and writes the ids of each as a JSON array, one a line. With Decode it
// reads such arrays and writes the text of each as a JSON string. Blank lines are skipped. What was read is written
// at once when no more input waits, so that it may stand in a conversation over pipes. An error names the line.
func TokenizeLines(ctx context.Context, r io.Reader, w io.Writer, tok *tokenizer.Tokenizer, o TokenizeOptions) error {
	in, out := bufio.NewReaderSize(r, 1<<16), bufio.NewWriterSize(w, 1<<16)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for number := 1; ; number++ {
		if err := ctx.Err(); err != nil {
			return errors.Join(err, out.Flush())
		}
		line, readErr := in.ReadBytes('\n')
		if line = bytes.TrimSpace(line); len(line) > 0 {
			answer, err := tokenizeLine(line, tok, o)
			if err != nil {
				return errors.Join(fmt.Errorf("line %d: %w", number, err), out.Flush())
			}
			if err := enc.Encode(answer); err != nil {
				return fmt.Errorf("write line %d: %w", number, err)
			}
		}
		if readErr != nil || in.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				return fmt.Errorf("write line %d: %w", number, err)
			}
		}
		if errors.Is(readErr, io.EOF) {
			return nil
		}
		if readErr != nil {
			return fmt.Errorf("read line %d: %w", number, readErr)
		}
	}
}

// tokenizeLine returns the ids of a JSON string, or the text of a JSON array of ids.
func tokenizeLine(line []byte, tok *tokenizer.Tokenizer, o TokenizeOptions) (any, error) {
	if !utf8.Valid(line) {
		return nil, errors.New("it is not UTF-8 text")
	}
	if escape := loneSurrogate(line); escape != "" {
		return nil, fmt.Errorf("%s is half of a character", escape)
	}
	if !o.Decode {
		var text *string
		if err := json.Unmarshal(line, &text); err != nil || text == nil {
			return nil, errors.New("it is not a JSON string; write one a line, in double quotes")
		}
		return tok.Encode(*text, !o.NoSpecial), nil
	}
	var ids []int32
	if err := json.Unmarshal(line, &ids); err != nil || ids == nil {
		return nil, errors.New("it is not a JSON array of token ids, such as [2, 9259]")
	}
	for i, id := range ids {
		if _, ok := tok.Token(id); !ok {
			return nil, fmt.Errorf("id %d at %d is not in the vocabulary of %d", id, i, tok.VocabSize())
		}
	}
	return tok.Decode(ids, o.NoSpecial), nil
}
