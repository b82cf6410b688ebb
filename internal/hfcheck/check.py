"""Runs a Hugging Face folder through transformers: the independent judge of weft's checkpoints.

Usage: check.py REQUEST.json, where REQUEST is

    {"dir": folder, "batches": [{"input_ids": [[int]], "labels": [[int]], "attention_mask": [[0|1]]}], "texts": [str],
     "logits": file or ""}

All three arrays of a batch have shape [rows, tokens]. Labels stand at their own positions (they are shifted here) and
-100 means no target. The model runs in float32 with eager attention on the CPU. Prints one JSON object: the loss as the
mean over all targets of all batches (float32 logits, the rest in float64), the number of targets, the names of tensors
that the model misses and of tensors that it does not know, and, if the folder has a tokenizer.json, the texts encoded
and decoded again. With "logits" the float32 logits of every batch, [rows, tokens, vocabulary], are written there one after the
other, little-endian.
"""

import json
import os
import sys

# Nothing may reach for a hub, and only the result may reach standard output.
os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", CUDA_VISIBLE_DEVICES="")
result_stream = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

import torch  # noqa: E402
import transformers  # noqa: E402

IGNORED_LABEL = -100


def batch_loss(model, batch, logits_file):
    """Returns the summed cross entropy (float) over the batch's targets, and their number. Writes the logits."""
    input_ids = torch.tensor(batch["input_ids"])
    labels = torch.tensor(batch["labels"])
    attention_mask = torch.tensor(batch["attention_mask"])
    if not input_ids.shape == labels.shape == attention_mask.shape or input_ids.ndim != 2:
        raise ValueError(f"input_ids {list(input_ids.shape)}, labels {list(labels.shape)} and attention_mask "
                         f"{list(attention_mask.shape)} must have one shape [rows, tokens]")
    logits = model(input_ids=input_ids, attention_mask=attention_mask, use_cache=False).logits
    if logits.dtype != torch.float32:
        raise TypeError(f"logits are {logits.dtype}, not float32")
    if logits_file is not None:
        logits_file.write(logits.contiguous().numpy().astype("<f4").tobytes())
    total, count = 0.0, 0
    for row_logits, row_labels in zip(logits[:, :-1], labels[:, 1:]):
        # One row at a time: a row of a large vocabulary takes much memory in float64.
        is_target = row_labels != IGNORED_LABEL
        targets = row_labels[is_target]
        if targets.numel() == 0:
            continue
        scores = row_logits[is_target].double()
        picked = scores.gather(1, targets[:, None])[:, 0]
        total += (torch.logsumexp(scores, dim=1) - picked).sum().item()
        count += targets.numel()
    return total, count


def check_model(directory, batches, logits_file):
    model, info = transformers.AutoModelForCausalLM.from_pretrained(
        directory, dtype=torch.float32, attn_implementation="eager", output_loading_info=True)
    model.eval()
    dtypes = {str(p.dtype) for p in model.parameters()}
    if dtypes != {"torch.float32"}:
        raise TypeError(f"parameters are {sorted(dtypes)}, not float32")
    total, count = 0.0, 0
    with torch.no_grad():
        for batch in batches:
            batch_total, batch_count = batch_loss(model, batch, logits_file)
            total, count = total + batch_total, count + batch_count
    return {
        "model_class": type(model).__name__,
        "num_parameters": sum(p.numel() for p in model.parameters()),
        "loss": total / count if count else None,
        "num_targets": count,
        "missing_keys": sorted(info["missing_keys"]),
        "unexpected_keys": sorted(info["unexpected_keys"]),
        "mismatched_keys": sorted(str(key) for key in info["mismatched_keys"]),
    }


def check_tokenizer(directory, texts):
    """Encodes and decodes texts with the tokenizer.json as it is, and with the class that AutoTokenizer picks."""
    path = os.path.join(directory, "tokenizer.json")
    if not os.path.exists(path):
        return None
    plain = transformers.PreTrainedTokenizerFast(tokenizer_file=path)
    auto = transformers.AutoTokenizer.from_pretrained(directory)
    rows = []
    for text in texts:
        ids = plain(text)["input_ids"]
        rows.append({
            "ids": ids,
            "auto_ids": auto(text)["input_ids"],
            "decoded": plain.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False),
        })
    return {"auto_class": type(auto).__name__, "vocab_size": len(plain), "rows": rows}


def main(request_path):
    with open(request_path, encoding="utf-8") as f:
        request = json.load(f)
    with open(request["logits"] or os.devnull, "wb") as logits_file:
        result = check_model(request["dir"], request["batches"], logits_file if request["logits"] else None)
    result["tokenizer"] = check_tokenizer(request["dir"], request["texts"])
    result["versions"] = {"torch": torch.__version__, "transformers": transformers.__version__}
    json.dump(result, result_stream)
    result_stream.write("\n")
    result_stream.close()


if __name__ == "__main__":
    main(sys.argv[1])
