"""Rewrites library-golden.json.gz: random small tokenizers and texts, with the ids that the tokenizers library gives.

Run by hand, with tokenizers 0.23.3: python3 library_golden.py
A token that is special and normalized at once is left out: the library does not skip it when decoding.
Strip has no stop here: the library panics when a token is shorter.
"""

import gzip
import json
import random

from tokenizers import Tokenizer

CONFIGS, TEXTS = 40, 30
BASE = ["▁", "a", "b", "c", "é", "\n", "-"]
PIECES = BASE + [" ", "<x>", "<xy>", "<bos>", "d", "漢", "😀", "ab", "b c", "_", "²", "Ⅷ", "\u00a0", "\u200d", "\u0301", "٣"]
BEHAVIORS = ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]
SPECIALS = ["<pad>", "<eos>", "<bos>", "<unk>"]


def chance(p=0.3):
    return random.random() < p


def split(pattern, behavior, invert):
    return {"type": "Split", "pattern": {"String": pattern}, "behavior": behavior, "invert": invert}


def model(k):
    vocab = {token: i for i, token in enumerate(SPECIALS)}
    for b in range(256 if k % 7 != 3 else 0xC4):  # some lack bytes, so that characters are unknown
        vocab[f"<0x{b:02X}>"] = len(vocab)
    tokens, merges = list(BASE), []
    for token in tokens:
        vocab[token] = len(vocab)
    for _ in range(random.randrange(60)):
        left, right = random.choice(tokens), random.choice(tokens)
        if left + right not in vocab:
            vocab[left + right] = len(vocab)
            tokens.append(left + right)
            merges.append([left, right])
    return {
        "type": "BPE", "dropout": None, "unk_token": random.choice(["<unk>", None]),
        "continuing_subword_prefix": None, "end_of_word_suffix": None, "fuse_unk": chance(0.5),
        "byte_fallback": chance(0.6), "ignore_merges": chance(0.2), "vocab": vocab, "merges": merges,
    }


def added(vocab):
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    out = [{"id": i, "content": token} | plain for i, token in enumerate(SPECIALS)]
    top = len(vocab)
    for content in ["<x>", "<xy>", "ab", "b c", "cc", " d", "é", "<xy><x>"]:
        if not chance(0.6):
            continue
        normalized = chance()
        token = {"content": content, "single_word": chance(), "lstrip": chance(), "rstrip": chance(),
                 "normalized": normalized, "special": chance() and not normalized}
        token["id"] = vocab.get(content, top)
        top += content not in vocab
        out.append(token)
    return sorted(out, key=lambda token: token["id"])


def processor():
    special = lambda token, i: {token: {"id": token, "ids": [i], "tokens": [token]}}
    item = lambda token: {"SpecialToken": {"id": token, "type_id": 0}}
    sequence = lambda name: {"Sequence": {"id": name, "type_id": 0}}
    return random.choice([None, {
        "type": "TemplateProcessing", "single": [item("<bos>"), sequence("A"), item("<eos>")],
        "pair": [sequence("A"), sequence("B")], "special_tokens": special("<bos>", 2) | special("<eos>", 1),
    }])


def config(k):
    replace = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    back = {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}
    gemma = [back, {"type": "ByteFallback"}, {"type": "Fuse"}]
    strip = lambda content, start: {"type": "Strip", "content": content, "start": start, "stop": 0}
    m = model(k)
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added(m["vocab"]),
        "normalizer": random.choice([replace, replace, None, {
            "type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}, replace]}]),
        "pre_tokenizer": random.choice([None, split(" ", "MergedWithPrevious", False)] + [
            split(random.choice(["▁", "b", "--"]), behavior, chance(0.4)) for behavior in BEHAVIORS]),
        "post_processor": processor(),
        "decoder": random.choice([None, {"type": "Sequence", "decoders": gemma}, {"type": "ByteFallback"},
                                  {"type": "Sequence", "decoders": gemma + [strip(" ", 1)]}, strip("a", 2)]),
        "model": m,
    }


def main():
    random.seed(5)
    out = []
    for k in range(CONFIGS):
        tokenizer = Tokenizer.from_str(json.dumps(file := config(k)))
        rows = []
        for _ in range(TEXTS):
            text = "".join(random.choice(PIECES) for _ in range(random.randrange(14)))
            ids = tokenizer.encode(text).ids
            rows.append({
                "text": text, "ids": ids, "ids_no_special": tokenizer.encode(text, add_special_tokens=False).ids,
                "decoded": tokenizer.decode(ids, skip_special_tokens=False),
                "decoded_skip_special": tokenizer.decode(ids, skip_special_tokens=True),
            })
        out.append({"tokenizer": file, "rows": rows})
    with open("library-golden.json.gz", "wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", mtime=0, filename="") as file:
        file.write(json.dumps(out, ensure_ascii=False).encode())


if __name__ == "__main__":
    main()
