// Package data turns files of instruction records into batches of token ids.
//
// # Records
//
// A data set is a file of JSON lines (.jsonl, or gzip), or a folder with one such file a split, NAME.jsonl. The first
// record says which of four formats the file has; every other record must have it too:
//
//   - instruction, context, response: texts, as in Dolly; context may be absent
//   - prompt, completion: texts
//   - messages: a conversation, rendered by the tokenizer's chat template (see tokenizer.ChatTurns)
//   - input_ids: token ids, with labels (each the id itself or -100) or without
//
// Other fields are ignored.
//
// # Text
//
// A Dolly record becomes DefaultTemplate, exactly as in the published Ray Train job for Gemma: "Instruction: ", the
// instruction, a newline, "Response: ", the response. The context is left out there, and so here; a template that
// names {context} puts it in. A prompt/completion record becomes the one followed by the other.
//
// BOS is put in front by the tokenizer, as its file says, and stands there once even if the text begins with a
// written-out "<bos>". No EOS is added, as in that job: its tokenizer adds none. A template may end in "<eos>", which
// is read as the token; a conversation's turns end in their own token. Ready input_ids are taken as they are.
//
// # Labels
//
// Labels follow the Hugging Face convention: Labels[i] is IDs[i], or Ignore (-100) where the token is no target; the
// loss shifts them by one. With LossAll every token is a target (padding is not). With LossCompletion only the tokens
// of the response are; in a conversation, of every assistant turn with its end-of-turn token. The boundary is found
// by tokenizing the prompt alone and the whole text: the response starts at the first token in which the two differ,
// so a token that holds the end of the prompt and the start of the response is a target, and the ids are always those
// of the whole text.
//
// A row longer than the window loses its end. Stats counts these rows, and apart those whose prompt fills the window,
// so that nothing of the response is left.
//
// # Order
//
// See Order for the permutation of an epoch. A row's place in the global batch depends on seed, epoch and step only:
// never on the number of processes.
package data
