"""Quell model descriptions: defaults stated in full, YAML text, and the parameters with their shapes.

A description is a plain dictionary in the shape of the `model` section of a run file; golden files carry it as YAML.
"""

import yaml


class _Plain(yaml.SafeDumper):
    def ignore_aliases(self, data):
        return True


def text(model):
    return yaml.dump(model, Dumper=_Plain, sort_keys=False, default_flow_style=False)


def norm(kind, eps, cast, place="pre", bias=False, zero_centered=False):
    return dict(kind=kind, eps=eps, weight=True, bias=bias, zero_centered=zero_centered, cast=cast, place=place)


def qk_norm(kind, axis, weight, eps, cast, rope="before", tie_qk=False, zero_centered=False, bias=False):
    result = dict(kind=kind, axis=axis, weight=weight, tie_qk=tie_qk, zero_centered=zero_centered)
    if kind == "layernorm":
        result.update(center=True, bias=bias)
    return {**result, "eps": eps, "cast": cast, "rope": rope}


def rope(width, base=10000.0, pairing="halves", scaling=None):
    return dict(kind="rope", base=base, width=width, pairing=pairing, scaling=scaling or dict(kind="none"))


def attention(qk, scale=None, bias="none", causal=True):
    return dict(
        causal=causal, window="none", bias=bias, softcap="none", qk_norm=qk, scale=scale or dict(kind="inv_sqrt")
    )


def decoder(*, width, heads, kv_heads, head_width, norm, mlp, position, attention, **rest):
    """`rest`: vocabulary, context, layers, embedding, output, variants, pattern."""
    rest = dict(vocabulary=61, context=32, layers=1, embedding=dict(scale="none")) | rest
    rest.setdefault("output", dict(tied=False, softcap="none"))
    tail = {key: rest.pop(key) for key in ("embedding", "output", "variants", "pattern") if key in rest}
    return dict(
        kind="decoder", **rest, width=width, heads=heads, kv_heads=kv_heads, head_width=head_width,
        norm=norm, mlp=mlp, position=position, attention=attention, **tail,
    )  # fmt: skip


def attention_shapes(model):
    width, head = model["width"], model["head_width"]
    rows = dict(q=model["heads"] * head, k=model["kv_heads"] * head, v=model["kv_heads"] * head)
    bias = model["attention"]["bias"]
    shapes = {}
    for name, out in rows.items():
        shapes[f"{name}.weight"] = (out, width)
        if bias in ("qkv", "all"):
            shapes[f"{name}.bias"] = (out,)
    shapes["out.weight"] = (width, rows["q"])
    if bias in ("out", "all"):
        shapes["out.bias"] = (width,)
    return shapes | _qk_norm_shapes(model) | _scale_shapes(model)


def _qk_norm_shapes(model):
    qk, head = model["attention"]["qk_norm"], model["head_width"]
    if qk["kind"] == "none" or qk["weight"] == "none":
        return {}
    names = ("qk_norm",) if qk["tie_qk"] else ("q_norm", "k_norm")
    shapes = {}
    for name, heads in zip(names, (model["heads"], model["kv_heads"])):
        shape = dict(shared=(head,), per_head=(heads, head), projection=(heads * head,))[qk["weight"]]
        shapes[f"{name}.weight"] = shape
        if qk.get("bias"):
            shapes[f"{name}.bias"] = shape
    return shapes


def unseen(qk):
    """What adds the same to every score of a row, so that the softmax does not see it and its gradient is zero: the
    last addition to the keys, where no rotary embedding follows."""
    if qk["kind"] == "none":
        return ["k.bias"]
    return ["k_norm.bias"] if qk.get("bias") else []


def _scale_shapes(model):
    scale = model["attention"]["scale"]
    return {"scale": (model["heads"] if scale["per_head"] else 1,)} if scale["kind"] == "learned" else {}


def model_shapes(model):
    width = model["width"]
    shapes = {"embedding.weight": (model["vocabulary"], width)}
    if model["position"]["kind"] == "learned":
        shapes["position.weight"] = (model["context"], width)
    for i in range(model["layers"]):
        block = _block_shapes(model)
        shapes |= {f"blocks.{i}.{name}": shape for name, shape in block.items()}
    shapes |= _norm_shapes("norm", model)
    if not model["output"]["tied"]:
        shapes["output.weight"] = (model["vocabulary"], width)
    return shapes


def _block_shapes(model):
    width, mlp, place = model["width"], model["mlp"], model["norm"]["place"]
    shapes = {f"attention.{name}": shape for name, shape in attention_shapes(model).items()}
    for part in ("attention", "mlp"):
        if place in ("pre", "sandwich"):
            shapes |= _norm_shapes(f"{part}_norm", model)
        if place in ("post", "sandwich"):
            shapes |= _norm_shapes(f"{part}_post_norm", model)
    if mlp["kind"] in ("swiglu", "geglu", "geglu_tanh"):
        shapes["mlp.gate.weight"] = (mlp["width"], width)
    shapes |= {"mlp.up.weight": (mlp["width"], width), "mlp.down.weight": (width, mlp["width"])}
    if mlp["bias"]:
        shapes |= {"mlp.up.bias": (mlp["width"],), "mlp.down.bias": (width,)}
    return shapes


def _norm_shapes(name, model):
    shapes = {f"{name}.weight": (model["width"],)}
    return shapes | ({f"{name}.bias": (model["width"],)} if model["norm"]["bias"] else {})


def vit(*, width, heads, mlp, norm, attention, pool, **rest):
    """`block` parallel: one norm, attention and MLP of its result, one LayerScale of their sum."""
    rest = dict(
        image=12, patch=4, channels=3, classes=10, layers=2, class_token=True, registers=0, block="sequential",
        layer_scale="none",
    ) | rest  # fmt: skip
    return dict(
        kind="vit", **rest, width=width, heads=heads, kv_heads=heads, head_width=width // heads, norm=norm, mlp=mlp,
        position=dict(kind="learned"), attention=attention, pool=pool,
    )  # fmt: skip


def vit_shapes(model):
    width, patches = model["width"], (model["image"] // model["patch"]) ** 2
    shapes = {"patch.weight": (width, model["channels"] * model["patch"] ** 2), "patch.bias": (width,)}
    shapes |= {"class_token": (width,)} if model["class_token"] else {}
    shapes |= {"registers": (model["registers"], width)} if model["registers"] else {}
    shapes["position.weight"] = (patches, width)
    for i in range(model["layers"]):
        shapes |= {f"blocks.{i}.{name}": shape for name, shape in _vit_block_shapes(model).items()}
    shapes |= _norm_shapes("norm", model) | _pool_shapes(model)
    return shapes | {"head.weight": (model["classes"], width), "head.bias": (model["classes"],)}


def _vit_block_shapes(model):
    shapes = _block_shapes(model)
    if model["layer_scale"] != "none":
        shapes |= {"attention_scale": (model["width"],), "mlp_scale": (model["width"],)}
    if model["block"] == "parallel":
        shapes = {key: shape for key, shape in shapes.items() if not key.startswith(("mlp_norm", "mlp_scale"))}
    return shapes


def pool_qk_norm(model):
    return model["attention"]["qk_norm"] if model["pool"]["qk_norm"] else dict(kind="none")


def _pool_shapes(model):
    pool, width = model["pool"], model["width"]
    if pool["kind"] != "attention":
        return {}
    inner = model | dict(attention=attention(pool_qk_norm(model), bias="all"))
    block = {name.removeprefix("attention."): shape for name, shape in _block_shapes(inner).items()}
    names = {key.replace("mlp_norm", "norm"): shape for key, shape in block.items() if "attention_norm" not in key}
    return {"pool.probe": (width,)} | {f"pool.{name}": shape for name, shape in names.items()}


def vit_unseen(model):
    names = unseen(model["attention"]["qk_norm"])
    zero = [f"blocks.{i}.attention.{name}" for i in range(model["layers"]) for name in names]
    if model["pool"]["kind"] == "attention":
        zero += [f"pool.{name}" for name in unseen(pool_qk_norm(model))]
    return [name for name in zero if name in vit_shapes(model)]
