#!/usr/bin/env python3
"""timm's VisionTransformer on Fashion-MNIST as a plain PyTorch program: loss, accuracy and speed.

The twin of configs/vit_fashion.yaml: same model, batches from one shuffled pass after the other, random mirroring,
AdamW, clipping and schedule, evaluated on all test images after the same steps. Images stay in memory as bytes; there
is no DataLoader, which would only slow it down. Initial values are drawn as ours are unless --start timm is given.
"""

import argparse
import gzip
import json
import math
import statistics
import struct
import time
from pathlib import Path

import timm
import torch
import torch.nn as nn
import torch.nn.functional as F
from timm.models.vision_transformer import VisionTransformer

import gpt
import measure

DATA = Path("/usr/share/datasets/fashion-mnist")  # where Debian's dataset-fashion-mnist has it
BATCH, EPOCHS, IMAGES = 128, 6, 60_000
STEPS = math.ceil(EPOCHS * IMAGES / BATCH)
EVERY = math.ceil(IMAGES / BATCH)  # steps from one evaluation to the next: an epoch
PEAK, WEIGHT_DECAY, CLIP = 2e-3, 0.05, 1.0


def read_idx(path):
    """A compressed IDX file of bytes: two zeros, the type, the number of sizes; the sizes; the values."""
    raw = bytearray(gzip.decompress(path.read_bytes()))
    sizes = struct.unpack_from(f">{raw[3]}I", raw, 4)
    return torch.frombuffer(raw, dtype=torch.uint8, offset=4 + 4 * len(sizes)).view(sizes)


def read_split(folder, name):
    """Images [count, 1, 28, 28] in bytes, and their classes."""
    images = read_idx(folder / f"{name}-images-idx3-ubyte.gz").unsqueeze(1)
    return images, read_idx(folder / f"{name}-labels-idx1-ubyte.gz").long()


def make_model(start):
    model = VisionTransformer(
        img_size=28, patch_size=4, in_chans=1, num_classes=10, embed_dim=64, depth=4, num_heads=4, qk_norm=True,
        class_token=False, global_pool="avg",
    )  # fmt: skip
    if start == "quell":
        draw_as_ours(model)
    return model


@torch.no_grad()
def draw_as_ours(model):
    """model.init of configs/vit_fashion.yaml. Norms keep the ones and zeros that they have."""
    for name, parameter in model.named_parameters():
        if name.endswith("bias") or name == "head.weight":
            parameter.zero_()
        elif parameter.dim() >= 2:
            nn.init.trunc_normal_(parameter, std=0.02, a=-0.06, b=0.06)


def to_floats(images):
    return (images.float() / 255 - 0.5) / 0.5


def batches(images, labels, steps, seed):
    """Batches run on from one pass over the images into the next."""
    generator = torch.Generator().manual_seed(seed)
    passes = math.ceil(steps * BATCH / len(images))
    order = torch.cat([torch.randperm(len(images), generator=generator) for _ in range(passes)])
    for chosen in order[: steps * BATCH].split(BATCH):
        mirrored = torch.rand(BATCH, 1, 1, 1, generator=generator) < 0.5
        batch = to_floats(images[chosen])
        yield torch.where(mirrored, batch.flip(3), batch), labels[chosen]


@torch.no_grad()
def evaluate(model, images, labels):
    """The mean loss and the accuracy."""
    model.eval()
    loss, correct = 0.0, 0
    for part, wanted in zip(images.split(BATCH), labels.split(BATCH)):
        logits = model(to_floats(part))
        loss += F.cross_entropy(logits, wanted, reduction="sum").item()
        correct += (logits.argmax(1) == wanted).sum().item()
    model.train()
    return {"loss": loss / len(images), "accuracy": correct / len(images)}


def train_step(model, optimizer, images, labels):
    loss = F.cross_entropy(model(images), labels)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), CLIP)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return loss.detach()


def train(model, optimizer, source, options, after):
    """Seconds of each step, making the batch included; after(step, loss) is not."""
    seconds = []
    for step in range(options.steps):
        begin = time.perf_counter()
        for group in optimizer.param_groups:
            group["lr"] = PEAK * 0.5 * (1 + math.cos(math.pi * step / options.steps))
        loss = train_step(model, optimizer, *next(source))
        seconds.append(time.perf_counter() - begin)
        after(step + 1, loss)
    return seconds


def run(options):
    images, labels = read_split(options.data, "train")
    test = read_split(options.data, "t10k")
    model = make_model(options.start)
    optimizer = gpt.adamw(model, PEAK, betas=(0.9, 0.999), weight_decay=WEIGHT_DECAY)
    evaluations = []

    def evaluate_where_due(step, loss=None):
        if step in (0, options.steps) or (options.every and step % options.every == 0):
            evaluations.append({"step": step} | evaluate(model, *test))
            if not options.quiet:
                loss_text = f"loss {loss.item():.4f}, " if step else ""
                text = f"test loss {evaluations[-1]['loss']:.4f}, accuracy {evaluations[-1]['accuracy']:.4f}"
                print(f"step {step}/{options.steps}  {loss_text}{text}", flush=True)

    evaluate_where_due(0)
    trained = torch.compile(model) if options.compile else model
    source = batches(images, labels, options.steps, options.seed)
    seconds = train(trained, optimizer, source, options, evaluate_where_due)
    middle = statistics.median(measure.stretches(seconds))
    return {
        "parameters": sum(p.numel() for p in model.parameters()),
        "evaluations": evaluations,
        "step_ms": 1e3 * middle,
        "images_per_s": BATCH / middle,
        "seconds": sum(seconds),
    }


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of IDX files (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=STEPS, help=f"default: %(default)s, which is {EPOCHS} epochs")
    parser.add_argument(
        "--every", type=int, default=EVERY, help="steps between evaluations; 0: none between (default: %(default)s)"
    )
    parser.add_argument("--start", choices=("quell", "timm"), default="quell", help="initial values (default: quell)")
    parser.add_argument("--seed", type=int, default=1, help="of initial values, order and mirroring (default: 1)")
    parser.add_argument("--threads", type=int, default=2, help="default: 2")
    parser.add_argument("--compile", action="store_true", help="train torch.compile(model)")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the numbers to this file as well")
    parser.add_argument("--quiet", action="store_true", help="print the result only")
    options = parser.parse_args()
    if options.steps < 1 or options.every < 0:
        parser.error("--steps: must be at least 1, and --every at least 0")
    return options


def main():
    options = arguments()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    result = run(options)
    result |= {key: getattr(options, key) for key in ("seed", "steps", "start", "compile", "threads")}
    last = result["evaluations"][-1]
    print(
        f"timm {timm.__version__}, PyTorch {torch.__version__}, {'compiled' if options.compile else 'eager'}: test loss "
        f"{last['loss']:.4f}, accuracy {last['accuracy']:.4f} after {options.steps} steps; {result['step_ms']:.2f} ms a "
        f"step, {result['images_per_s']:.0f} images/s (median)"
    )
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
