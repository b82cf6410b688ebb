"""One training step of a Gemma 3 text model in plain JAX: what weft's step is compared with.

Written as a good JAX user would for one device: jit with donation, layers scanned (or unrolled), no remat, AdamW in the
same program. With --dtype bfloat16 the master weights, moments, residual stream, norms, softmax
and loss stay in float32 and the matrix products take bfloat16. Three modes:

    --write-inputs DIR    write random weights (a Hugging Face folder) and a batch, for weft and JAX alike
    --inputs DIR          run the step on such a folder, time it, print one JSON object
    --check-fixture DIR   hold the model against a golden fixture: logits, loss and the losses of ten AdamW steps

JAX runs on jaxlib's own CPU (JAX_PLATFORMS=cpu) or on a PJRT plugin (PJRT_NAMES_AND_LIBRARY_PATHS=NAME:PATH and
JAX_PLATFORMS=NAME). Shapes in names: B rows, T tokens, D hidden size, F feed-forward size, K key/value heads, G query
heads for each of them, H head size, V vocabulary, L layers.
"""

import argparse
import functools
import json
import os
import pathlib
import resource
import statistics
import struct
import time

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

IGNORED_LABEL = -100
SAFETENSORS_DTYPES = {"F32": np.float32, "BF16": ml_dtypes.bfloat16, "I64": np.int64}

# Each layer's tensors: our name -> the name in a Hugging Face file.
LAYER_TENSORS = {
    "q": "self_attn.q_proj", "k": "self_attn.k_proj", "v": "self_attn.v_proj", "o": "self_attn.o_proj",
    "q_norm": "self_attn.q_norm", "k_norm": "self_attn.k_norm",
    "gate": "mlp.gate_proj", "up": "mlp.up_proj", "down": "mlp.down_proj",
    "pre_attn_norm": "input_layernorm", "post_attn_norm": "post_attention_layernorm",
    "pre_mlp_norm": "pre_feedforward_layernorm", "post_mlp_norm": "post_feedforward_layernorm",
}


class Config:
    """The fields of a Gemma 3 config.json, in the style of released checkpoints or of transformers 5."""

    def __init__(self, path):
        c = json.loads(pathlib.Path(path).read_text())
        if c["model_type"] != "gemma3_text":
            raise ValueError(f"{path}: model_type is {c['model_type']}, not gemma3_text")
        self.vocab, self.hidden, self.ffn = c["vocab_size"], c["hidden_size"], c["intermediate_size"]
        self.layers, self.heads, self.kv_heads = c["num_hidden_layers"], c["num_attention_heads"], c["num_key_value_heads"]
        self.head_dim, self.window, self.eps = c["head_dim"], c["sliding_window"], c["rms_norm_eps"]
        self.scale = c["query_pre_attn_scalar"] ** -0.5
        rope = c.get("rope_parameters") or {
            "full_attention": {"rope_theta": c["rope_theta"]}, "sliding_attention": {"rope_theta": c["rope_local_base_freq"]}}
        self.theta_local, self.theta_global = rope["sliding_attention"]["rope_theta"], rope["full_attention"]["rope_theta"]
        pattern = c.get("sliding_window_pattern") or c.get("_sliding_window_pattern")
        kinds = c.get("layer_types") or ["full_attention" if (i + 1) % pattern == 0 else "sliding_attention"
                                         for i in range(self.layers)]
        self.is_global = np.array([kind == "full_attention" for kind in kinds])


# The model.

def dense(x_BTI, kernel_OI):
    """x · kernelᵀ. Kernels are [out, in] as in the file: XLA's CPU compiler then runs all three products of a bfloat16
    layer on its fast path, while the gradient of an [in, out] kernel took 200 times as long."""
    return jnp.einsum("bti,oi->bto", x_BTI, kernel_OI)


def rms_norm(x, weight, eps, dtype):
    """x / rms(x) * (1 + weight) over the last axis, in float32, rounded to dtype at the end."""
    x32 = x.astype(jnp.float32)
    x32 = x32 * jax.lax.rsqrt(jnp.mean(x32 * x32, axis=-1, keepdims=True) + eps)
    return (x32 * (1.0 + weight)).astype(dtype)


def rope_tables(config, T):
    """Returns cos and sin, each [2, T, H/2]: index 0 for local (sliding) layers, 1 for global ones."""
    exponents = np.arange(0, config.head_dim, 2, dtype=np.float32) / config.head_dim
    frequencies = np.stack([theta ** -exponents for theta in (config.theta_local, config.theta_global)]).astype(np.float32)
    angles = np.arange(T, dtype=np.float32)[None, :, None] * frequencies[:, None, :]
    return jnp.cos(angles), jnp.sin(angles)


def rotate(x_BTNH, cos_TH, sin_TH):
    """Applies RoPE to the pairs (i, i + H/2), in float32."""
    first, second = jnp.split(x_BTNH.astype(jnp.float32), 2, axis=-1)
    cos, sin = cos_TH[None, :, None, :], sin_TH[None, :, None, :]
    return jnp.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1).astype(x_BTNH.dtype)


def attention_masks(config, attention_mask_BT):
    """Returns [2, B, T, T] of bool (local, global): key k is seen by query q if k <= q (and q - window < k if local)."""
    T = attention_mask_BT.shape[1]
    q, k = jnp.arange(T)[:, None], jnp.arange(T)[None, :]
    causal, near = k <= q, k > q - config.window
    real = attention_mask_BT[:, None, :] != 0
    return jnp.stack([(causal & near)[None] & real, causal[None] & real])


def layer(config, x_BTD, w, cos_TH, sin_TH, mask_BTT):
    """Returns the layer's output; the residual stream is float32, the products take and give the kernels' dtype."""
    B, T, _ = x_BTD.shape
    K, G, H = config.kv_heads, config.heads // config.kv_heads, config.head_dim
    dtype = w["q"].dtype
    norm = functools.partial(rms_norm, eps=config.eps, dtype=dtype)
    residual_norm = functools.partial(rms_norm, eps=config.eps, dtype=jnp.float32)
    y = norm(x_BTD, w["pre_attn_norm"])
    q = norm(dense(y, w["q"]).reshape(B, T, K * G, H), w["q_norm"])
    k = norm(dense(y, w["k"]).reshape(B, T, K, H), w["k_norm"])
    v = dense(y, w["v"]).reshape(B, T, K, H)
    q, k = rotate(q, cos_TH, sin_TH).reshape(B, T, K, G, H), rotate(k, cos_TH, sin_TH)
    scores = jnp.einsum("btkgh,bskh->bkgts", q, k, preferred_element_type=jnp.float32) * config.scale
    scores = jnp.where(mask_BTT[:, None, None], scores, jnp.finfo(jnp.float32).min)
    probs = jax.nn.softmax(scores, axis=-1).astype(dtype)
    y = dense(jnp.einsum("bkgts,bskh->btkgh", probs, v).reshape(B, T, K * G * H), w["o"])
    x_BTD = x_BTD + residual_norm(y, w["post_attn_norm"])
    y = norm(x_BTD, w["pre_mlp_norm"])
    y = dense(jax.nn.gelu(dense(y, w["gate"]), approximate=True) * dense(y, w["up"]), w["down"])
    return x_BTD + residual_norm(y, w["post_mlp_norm"])


def hidden_states(config, params, batch, dtype, scan):
    """Returns the normed last hidden states [B, T, D] and the embedding table [V, D], both in dtype."""
    # Norm scales stay in float32; the kernels are rounded to the compute dtype once a step.
    layers = {name: w if name.endswith("norm") else w.astype(dtype) for name, w in params["layers"].items()}
    x = params["embed"][batch["input_ids"]] * np.float32(config.hidden ** 0.5)
    cos, sin = rope_tables(config, x.shape[1])
    masks = attention_masks(config, batch["attention_mask"])
    if scan:
        def body(x, layer_inputs):
            w, kind = layer_inputs
            return layer(config, x, w, cos[kind], sin[kind], masks[kind]), None
        x, _ = jax.lax.scan(body, x, (layers, config.is_global.astype(np.int32)))
    else:
        for i, kind in enumerate(config.is_global.astype(int)):
            x = layer(config, x, {name: w[i] for name, w in layers.items()}, cos[kind], sin[kind], masks[kind])
    return rms_norm(x, params["final_norm"], config.eps, dtype), params["embed"].astype(dtype)


def loss_fn(config, dtype, scan, params, batch):
    """Mean cross entropy in float32 over the labels that are not -100, shifted by one."""
    x, table = hidden_states(config, params, batch, dtype, scan)
    labels = batch["labels"][:, 1:]
    logits = dense(x[:, :-1], table).astype(jnp.float32)
    is_target = labels != IGNORED_LABEL
    picked = jnp.take_along_axis(logits, jnp.where(is_target, labels, 0)[..., None], axis=-1)[..., 0]
    losses = jnp.where(is_target, jax.nn.logsumexp(logits, axis=-1) - picked, 0.0)
    return losses.sum() / is_target.sum()


def adamw(hyper, step, param, grad, m, v):
    """torch.optim.AdamW: decoupled decay, bias correction, eps outside the root. step counts from 1."""
    b1, b2 = hyper["betas"]
    m = b1 * m + (1 - b1) * grad
    v = b2 * v + (1 - b2) * grad * grad
    m_hat, v_hat = m / (1 - b1 ** step), v / (1 - b2 ** step)
    return param - hyper["lr"] * (m_hat / (jnp.sqrt(v_hat) + hyper["eps"]) + hyper["weight_decay"] * param), m, v


def train_step(config, hyper, dtype, scan, params, m, v, step, batch):
    """Returns the new params, m, v, step and the loss before the step."""
    loss, grads = jax.value_and_grad(functools.partial(loss_fn, config, dtype, scan))(params, batch)
    step = step + 1
    updated = jax.tree.map(functools.partial(adamw, hyper, step.astype(jnp.float32)), params, grads, m, v)
    params, m, v = jax.tree.transpose(jax.tree.structure(params), jax.tree.structure((0, 0, 0)), updated)
    return params, m, v, step, loss


# Files.

def read_safetensors(path):
    """Returns the tensors of a file by name, memory-mapped."""
    with open(path, "rb") as f:
        size = struct.unpack("<Q", f.read(8))[0]
        header = json.loads(f.read(size))
    data = np.memmap(path, np.uint8, "r", offset=8 + size)
    return {name: data[slice(*e["data_offsets"])].view(SAFETENSORS_DTYPES[e["dtype"]]).reshape(e["shape"])
            for name, e in header.items() if name != "__metadata__"}


def write_safetensors(path, tensors):
    """Writes float32 tensors."""
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name, tensor in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [offset, offset + tensor.nbytes]}
        offset += tensor.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for tensor in tensors.values():
            f.write(tensor.tobytes())


def load_params(config, directory):
    """Returns the parameters in float32, each layer's stacked along a first axis [L, ...]."""
    file = read_safetensors(pathlib.Path(directory) / "model.safetensors")

    def stacked(name):
        return jnp.asarray(np.stack([file[f"model.layers.{i}.{name}.weight"].astype(np.float32) for i in range(config.layers)]))

    params = {
        "embed": jnp.asarray(file["model.embed_tokens.weight"].astype(np.float32)),
        "final_norm": jnp.asarray(file["model.norm.weight"].astype(np.float32)),
        "layers": {ours: stacked(theirs) for ours, theirs in LAYER_TENSORS.items()},
    }
    if len(file) != 2 + len(LAYER_TENSORS) * config.layers:
        raise ValueError(f"{directory}: {len(file)} tensors, expected {2 + len(LAYER_TENSORS) * config.layers}")
    return params


def write_inputs(args):
    """Writes config.json, model.safetensors (float32) and batch.json, all from the seed."""
    config, out = Config(args.config), pathlib.Path(args.write_inputs)
    rng = np.random.default_rng(args.seed)
    D, F, H = config.hidden, config.ffn, config.head_dim
    shapes = {
        "self_attn.q_proj": (config.heads * H, D), "self_attn.k_proj": (config.kv_heads * H, D),
        "self_attn.v_proj": (config.kv_heads * H, D), "self_attn.o_proj": (D, config.heads * H),
        "self_attn.q_norm": (H,), "self_attn.k_norm": (H,),
        "mlp.gate_proj": (F, D), "mlp.up_proj": (F, D), "mlp.down_proj": (D, F),
        "input_layernorm": (D,), "post_attention_layernorm": (D,),
        "pre_feedforward_layernorm": (D,), "post_feedforward_layernorm": (D,),
    }
    names = {"model.embed_tokens.weight": (config.vocab, D), "model.norm.weight": (D,)}
    names |= {f"model.layers.{i}.{name}.weight": s for i in range(config.layers) for name, s in shapes.items()}
    # Not bfloat16: its grid is coarser than an AdamW update of 2e-5, so that rounded copies would move in jumps at first.
    # Norm scales are random too: at zero, a program that ignored them would still give the same loss.
    weights = {name: rng.standard_normal(s, np.float32) * np.float32(0.02 if len(s) == 2 else 0.1)
               for name, s in names.items()}
    ids = rng.integers(3, config.vocab, (args.batch, args.seq)).tolist()
    out.mkdir(parents=True, exist_ok=True)
    write_safetensors(out / "model.safetensors", weights)
    (out / "config.json").write_text(pathlib.Path(args.config).read_text())
    (out / "batch.json").write_text(json.dumps(
        {"input_ids": ids, "labels": ids, "attention_mask": [[1] * args.seq] * args.batch}))
    return {"written": str(out), "num_parameters": sum(w.size for w in weights.values())}


# Runs.

def compiled_step(config, hyper, dtype, scan, state, batch):
    jitted = jax.jit(functools.partial(train_step, config, hyper, dtype, scan), donate_argnums=(0, 1, 2, 3))
    return jitted.lower(*state, batch).compile()


def initial_state(params):
    zeros = functools.partial(jax.tree.map, jnp.zeros_like)
    return params, zeros(params), zeros(params), jnp.zeros((), jnp.int32)


def as_batch(arrays):
    return {name: jnp.asarray(np.asarray(arrays[name]), jnp.int32) for name in ("input_ids", "labels", "attention_mask")}


def benchmark(args):
    config = Config(pathlib.Path(args.inputs) / "config.json")
    batch = as_batch(json.loads((pathlib.Path(args.inputs) / "batch.json").read_text()))
    params = load_params(config, args.inputs)
    state = initial_state(params)
    hyper = {"lr": args.learning_rate, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": args.weight_decay}
    start = time.perf_counter()
    step = compiled_step(config, hyper, jnp.dtype(args.dtype), args.layers == "scan", state, batch)
    compile_s = time.perf_counter() - start
    num_parameters = sum(p.size for p in jax.tree.leaves(params))
    del params
    times, losses = [], []
    for _ in range(args.warmup + args.steps):
        start = time.perf_counter()
        *state, loss = jax.block_until_ready(step(*state, batch))
        times.append(time.perf_counter() - start)
        losses.append(float(loss))
    memory = step.memory_analysis()
    return {
        "program": "jax", "version": jax.__version__, "platform": os.environ.get("JAX_PLATFORMS", jax.default_backend()),
        "devices": jax.device_count(), "dtype": args.dtype, "layers": args.layers,
        "batch": batch["input_ids"].shape[0], "seq": batch["input_ids"].shape[1], "num_parameters": num_parameters,
        "compile_s": compile_s, "warmup": args.warmup, "step_s": times[args.warmup:],
        "median_step_s": statistics.median(times[args.warmup:]), "loss": losses,
        "temp_bytes": getattr(memory, "temp_size_in_bytes", None),
        "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def check_fixture(directory):
    """Compares with the golden values; raises AssertionError beyond the tolerances of the fixtures' README."""
    directory = pathlib.Path(directory)
    golden, tensors = json.loads((directory / "golden.json").read_text()), read_safetensors(directory / "golden.safetensors")
    batch = as_batch(tensors)
    report = {}
    for style, layers in (("config.json", "scan"), ("config.json", "unrolled"), ("config.released-style.json", "scan")):
        config = Config(directory / style)
        params = load_params(config, directory)
        x, table = jax.jit(lambda p, b: hidden_states(config, p, b, jnp.float32, layers == "scan"))(params, batch)
        real = np.asarray(tensors["attention_mask"], bool)
        report[f"{style} {layers} logits"] = deviation(
            np.asarray(dense(x, table))[real], tensors["logits"][real], 2e-4, f"{style} {layers}: logits")
        losses = run_fixture(config, golden, params, batch, jnp.float32, layers)
        deviation(losses[0], golden["loss"]["value"], 5e-5, f"{style} {layers}: loss")
        report[f"{style} {layers} losses"] = deviation(
            losses, golden["losses_fp32"], 1e-4, f"{style} {layers}: losses of ten steps")
    # bfloat16 has no exact golden: the error may be three times what torch's autocast shows on the same run, as scanned
    # and unrolled layers, which round alike, differ by more than once that.
    limit = 3 * np.abs(np.subtract(golden["losses_bf16_autocast_fp32_params"], golden["losses_fp32"])).max()
    for layers in ("scan", "unrolled"):
        losses = run_fixture(config, golden, params, batch, jnp.bfloat16, layers)
        report[f"bfloat16 {layers} losses"] = deviation(losses, golden["losses_fp32"], limit, f"bfloat16 {layers}: losses")
    report["bfloat16 limit"] = float(limit)
    return report


def run_fixture(config, golden, params, batch, dtype, layers):
    state = initial_state(jax.tree.map(jnp.copy, params))  # the step takes its arguments' memory
    step = compiled_step(config, golden["optimizer"], dtype, layers == "scan", state, batch)
    losses = []
    for _ in range(golden["optimizer"]["steps"]):
        *state, loss = step(*state, batch)
        losses.append(float(loss))
    return losses


def deviation(got, want, tolerance, what):
    worst = float(np.abs(np.asarray(got, np.float64) - np.asarray(want, np.float64)).max())
    if not worst <= tolerance:
        raise AssertionError(f"{what}: deviates by {worst:.3g}, tolerance {tolerance:.3g}")
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--write-inputs", metavar="DIR")
    mode.add_argument("--inputs", metavar="DIR")
    mode.add_argument("--check-fixture", metavar="DIR")
    parser.add_argument("--config", help="the config.json of the shape to write inputs for")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--seq", type=int, default=128)
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32")
    parser.add_argument("--layers", choices=["scan", "unrolled"], default="scan")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--warmup", type=int, default=2)
    parser.add_argument("--learning-rate", type=float, default=2e-5)
    parser.add_argument("--weight-decay", type=float, default=0.01)
    args = parser.parse_args()
    if args.write_inputs:
        result = write_inputs(args)
    elif args.check_fixture:
        result = check_fixture(args.check_fixture)
    else:
        result = benchmark(args)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
