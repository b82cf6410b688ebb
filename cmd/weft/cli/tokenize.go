package cli

import (
	"context"
	"fmt"

	"weft/cmd/weft/job"
	"weft/data"
)

type tokenizeCmd struct {
	Tokenizer string `required:"" placeholder:"FILE" help:"The tokenizer.json, plain or gzip, a path or gs:// URL."`
	Decode    bool   `help:"Read arrays of token ids, one a line, and print each one's text as a JSON string."`
	NoSpecial bool   `help:"Add no special tokens such as <bos> when encoding; leave them out of the text when decoding."`
}

// Help is the long help.
func (tokenizeCmd) Help() string {
	return `Reads one JSON string a line from standard input and prints its token ids as one JSON array a line; with --decode the other way round. Blank lines are skipped; a line that is no such value is an error that names it, after the answers to the lines before it.`
}

// Run tokenizes standard input.
func (c tokenizeCmd) Run(s streams) error {
	tok, err := job.LoadTokenizer(c.Tokenizer)
	if err != nil {
		return job.Input(err)
	}
	err = data.TokenizeLines(context.Background(), s.In, s.Out, tok, data.TokenizeOptions{Decode: c.Decode, NoSpecial: c.NoSpecial})
	if err != nil {
		return job.Input(fmt.Errorf("standard input: %w", err))
	}
	return nil
}
