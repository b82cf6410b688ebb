package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"
)

// Message is one turn of a conversation.
type Message struct {
	Role    string // "system" (first turn only), "user", "assistant" (or its Gemma name, "model")
	Content []Part
}

// Part is a piece of a message: text, or an image that stands in the text as a placeholder.
type Part struct {
	Type string `json:"type"` // "text" or "image"
	Text string `json:"text"`
}

// UnmarshalJSON reads {"role": …, "content": …}, where content is a string or a list of parts.
func (m *Message) UnmarshalJSON(raw []byte) error {
	var fields struct {
		Role    *string
		Content json.RawMessage
	}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return fmt.Errorf(`a message is not an object with a text "role": %w`, err)
	}
	if fields.Role == nil || len(fields.Content) == 0 {
		return errors.New(`a message needs "role" and "content"`)
	}
	*m = Message{Role: *fields.Role}
	var text string
	if json.Unmarshal(fields.Content, &text) == nil && string(fields.Content) != "null" {
		m.Content = []Part{{Type: "text", Text: text}}
		return nil
	}
	if err := json.Unmarshal(fields.Content, &m.Content); err != nil || m.Content == nil {
		return errors.New(`a message's "content" is neither a text nor a list of parts`)
	}
	return nil
}

// Turn is one message as the chat template renders it: Header + Content + End + "\n".
type Turn struct {
	Header  string // "<start_of_turn>model\n"; with a system text, the first user turn's header holds it
	Content string // the message's text, trimmed
	End     string // "<end_of_turn>"
	Model   bool   // whether the model speaks
}

// Text returns the turn's whole text.
func (turn Turn) Text() string { return turn.Header + turn.Content + turn.End + "\n" }

// chatStyle is what differs between the generations of Gemma.
type chatStyle struct {
	start, end string
	systemTurn bool // the system text is a turn of its own, and roles need not alternate
}

var chatStyles = []chatStyle{
	{start: "<start_of_turn>", end: "<end_of_turn>"},     // Gemma 1, 2, 3
	{start: "<|turn>", end: "<turn|>", systemTurn: true}, // Gemma 4
}

func (t *Tokenizer) chatStyle() (chatStyle, error) {
	for _, style := range chatStyles {
		_, ok := t.ID(style.start)
		_, ok2 := t.ID(style.end)
		if ok && ok2 {
			return style, nil
		}
	}
	return chatStyle{}, errors.New("the tokenizer has no chat tokens (<start_of_turn> or <|turn>); " +
		"use an instruction-tuned model's tokenizer or prompt/completion records")
}

// ChatTurns renders a conversation by Gemma's chat template, without BOS. The tokens of the vocabulary say which:
//
//   - with <start_of_turn> (Gemma 1 to 3, the template of Gemma 3): a system text goes in front of the first user
//     text, and after it user and assistant must alternate, user first
//   - with <|turn> (Gemma 4, without its tools and thinking): every message is a turn with its own role, in any order
//
// Texts are trimmed, as the template does it. Every turn starts with a special token, so the ids of the whole are the
// ids of the turns one after the other.
func (t *Tokenizer) ChatTurns(messages []Message) ([]Turn, error) {
	style, err := t.chatStyle()
	if err != nil {
		return nil, err
	}
	system := ""
	if len(messages) > 0 && messages[0].Role == "system" && !style.systemTurn {
		for i, p := range messages[0].Content {
			if i > 0 || p.Type != "text" {
				return nil, errors.New("messages[0]: a system message must be one text")
			}
			system = p.Text + "\n\n"
		}
		messages = messages[1:]
	}
	if len(messages) == 0 {
		return nil, errors.New("messages: there is no user or assistant message")
	}
	turns := make([]Turn, 0, len(messages))
	for i, m := range messages {
		if !style.systemTurn && (m.Role == "user") != (i%2 == 0) {
			//lint:ignore ST1005 the words of Gemma's own chat template
			return nil, errors.New("Conversation roles must alternate user/assistant/user/assistant/...")
		}
		turn, err := style.turn(m, system, i == 0)
		if err != nil {
			return nil, err
		}
		turns, system = append(turns, turn), ""
	}
	return turns, nil
}

func (style chatStyle) turn(m Message, system string, first bool) (Turn, error) {
	role := m.Role
	switch {
	case role == "assistant", role == "model":
		role = "model"
	case role == "user", role == "system" && style.systemTurn && first:
	default:
		return Turn{}, fmt.Errorf("messages: role %q is not supported: weft reads system (first), user and assistant", role)
	}
	var content strings.Builder
	for _, p := range m.Content {
		switch {
		case p.Type == "text":
			content.WriteString(strings.TrimFunc(p.Text, isPythonSpace))
		case p.Type == "image" && !style.systemTurn:
			content.WriteString("<start_of_image>")
		default:
			return Turn{}, fmt.Errorf("messages: a content part of type %q is not supported: weft reads text", p.Type)
		}
	}
	return Turn{
		Header:  style.start + role + "\n" + system,
		Content: content.String(),
		End:     style.end,
		Model:   role == "model",
	}, nil
}

// isPythonSpace is what Python's str.strip removes: Unicode white space and the four separators of ASCII.
func isPythonSpace(r rune) bool { return unicode.IsSpace(r) || 0x1c <= r && r <= 0x1f }

// ChatText is the chat template's text of a conversation: BOS, the turns, and with addGenerationPrompt the start of
// the model's next turn. Encode it without specials: it brings its own BOS.
func (t *Tokenizer) ChatText(messages []Message, addGenerationPrompt bool) (string, error) {
	turns, err := t.ChatTurns(messages)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	if id, ok := t.BOS(); ok {
		text.WriteString(t.tokens[id])
	}
	for _, turn := range turns {
		text.WriteString(turn.Text())
	}
	if addGenerationPrompt {
		style, _ := t.chatStyle()
		text.WriteString(style.start + "model\n")
	}
	return text.String(), nil
}
