package tokenizer

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"weft/internal/fixture"
)

func TestChatTemplateGolden(t *testing.T) {
	tok := loadGemma3(t)
	var golden struct {
		Cases []struct {
			Messages   []Message
			Generation bool `json:"add_generation_prompt"`
			Text       string
			IDs        []int32
		}
		Errors []struct {
			Messages []Message
			Error    string
		}
	}
	readJSON(t, fixture.Dir(t, "tokenizer", "chat-template-golden.json"), &golden)
	require.NotEmpty(t, golden.Cases)
	require.NotEmpty(t, golden.Errors)
	for i, c := range golden.Cases {
		text, err := tok.ChatText(c.Messages, c.Generation)
		require.NoError(t, err, "case %d", i)
		require.Equal(t, c.Text, text, "case %d", i)
		require.Equal(t, c.IDs, tok.Encode(text, false), "case %d", i)
		if c.Generation {
			continue
		}
		// The ids of the whole are the ids of the turns: what the data package builds on.
		turns, err := tok.ChatTurns(c.Messages)
		require.NoError(t, err)
		bos, _ := tok.BOS()
		ids := []int32{bos}
		for _, turn := range turns {
			ids = append(ids, tok.Encode(turn.Text(), false)...)
		}
		require.Equal(t, c.IDs, ids, "case %d turn by turn", i)
	}
	for i, c := range golden.Errors {
		_, err := tok.ChatText(c.Messages, false)
		require.EqualError(t, err, c.Error, "error %d", i)
	}
}

func TestChatMessageErrors(t *testing.T) {
	gemma3 := mustLoad(t, smallFile(map[string]any{"added_tokens": chatTokens("<start_of_turn>", "<end_of_turn>")}))
	gemma4 := mustLoad(t, smallFile(map[string]any{"added_tokens": chatTokens("<|turn>", "<turn|>")}))
	none := mustLoad(t, smallFile(nil))
	user := `{"role":"user","content":"a"}`
	for name, c := range map[string]struct {
		tok      *Tokenizer
		messages string
		want     string
	}{
		"no chat tokens":      {none, `[` + user + `]`, "no chat tokens"},
		"empty":               {gemma3, `[]`, "no user or assistant message"},
		"only system":         {gemma3, `[{"role":"system","content":"a"}]`, "no user or assistant message"},
		"tool":                {gemma3, `[` + user + `,{"role":"tool","content":"a"}]`, `role "tool" is not supported`},
		"late system":         {gemma4, `[` + user + `,{"role":"system","content":"a"}]`, `role "system" is not supported`},
		"audio":               {gemma3, `[{"role":"user","content":[{"type":"audio"}]}]`, `type "audio" is not supported`},
		"image in a Gemma 4":  {gemma4, `[{"role":"user","content":[{"type":"image"}]}]`, `type "image" is not supported`},
		"system of two texts": {gemma3, `[{"role":"system","content":[{"type":"text"},{"type":"text"}]}]`, "must be one text"},
	} {
		t.Run(name, func(t *testing.T) {
			var messages []Message
			require.NoError(t, json.Unmarshal([]byte(c.messages), &messages))
			_, err := c.tok.ChatText(messages, false)
			require.ErrorContains(t, err, c.want)
		})
	}
	for _, bad := range []string{`3`, `{"role":"user"}`, `{"content":"a"}`, `{"role":1,"content":"a"}`, `{"role":"user","content":null}`,
		`{"role":"user","content":7}`} {
		require.Error(t, json.Unmarshal([]byte(bad), new(Message)), bad)
	}
}

func TestGemma4ChatText(t *testing.T) {
	tok := mustLoad(t, smallFile(map[string]any{"added_tokens": chatTokens("<|turn>", "<turn|>")}))
	messages := []Message{
		{Role: "system", Content: []Part{{Type: "text", Text: "b"}}},
		{Role: "user", Content: []Part{{Type: "text", Text: " a\n"}}},
		{Role: "assistant", Content: []Part{{Type: "text", Text: "c"}}},
	}
	text, err := tok.ChatText(messages, true)
	require.NoError(t, err)
	require.Equal(t, "<bos><|turn>system\nb<turn|>\n<|turn>user\na<turn|>\n<|turn>model\nc<turn|>\n<|turn>model\n", text)
}
