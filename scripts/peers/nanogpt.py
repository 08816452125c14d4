#!/usr/bin/env python3
"""nanoGPT's CPU recipe as a plain PyTorch program, on the token folder that `quell data prepare` wrote.

The twin of configs/text_nanogpt.yaml: same model, schedule, optimizer and number of tokens, evaluated on the same fixed
windows; windows to train on are drawn with replacement, as nanoGPT does. Prints the loss and the speed.
"""

import argparse
import json
import math
import statistics
import time
from pathlib import Path

import numpy as np
import torch

import gpt
import measure

BATCH, CONTEXT, EVALUATION_WINDOWS = 12, 64, 40 * 12
PEAK, FINAL, WARMUP = 1e-3, 1e-4, 100


def read_split(folder):
    """All tokens of one split, in memory, and the size of the vocabulary."""
    side_car = json.loads((folder / "tokens.json").read_text())
    shards = [np.fromfile(folder / shard["file"], dtype=side_car["type"]) for shard in side_car["shards"]]
    vocabulary = side_car["vocabulary"]
    size = 256 if vocabulary["kind"] == "byte" else len(vocabulary["characters"])
    return torch.from_numpy(np.concatenate(shards).astype(np.int64)), size


def windows(tokens, begins):
    """Inputs and targets, [windows, context] each."""
    rows = tokens[begins[:, None] + torch.arange(CONTEXT + 1)]
    return rows[:, :-1], rows[:, 1:]


def fixed_begins(length):
    """Where the evaluation's windows begin in a text of `length` tokens: fixed_window of src/data/windows.cpp."""
    count = min(EVALUATION_WINDOWS, (length - 1) // CONTEXT)
    last = length - 1 - CONTEXT
    return torch.tensor([last * i // max(1, count - 1) for i in range(count)])


@torch.no_grad()
def evaluate(model, tokens):
    begins = fixed_begins(len(tokens))
    total = sum(model(*windows(tokens, part), reduction="sum").double() for part in begins.split(BATCH))
    return total.item() / (len(begins) * CONTEXT)


def learning_rate(step, steps):
    if step < WARMUP:
        return PEAK * (step + 1) / WARMUP
    done = (step - WARMUP) / (steps - WARMUP)
    return FINAL + (PEAK - FINAL) * 0.5 * (1 + math.cos(math.pi * done))


def train(model, optimizer, tokens, options):
    """Seconds of each step, drawing the batch included."""
    generator = torch.Generator().manual_seed(options.seed)
    seconds = []
    for step in range(options.steps):
        begin = time.perf_counter()
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, options.steps)
        begins = torch.randint(len(tokens) - CONTEXT, (BATCH,), generator=generator)
        loss = gpt.train_step(model, optimizer, *windows(tokens, begins))
        if (step + 1) % measure.STRETCH == 0:
            value = loss.item()
            if (step + 1) % (20 * measure.STRETCH) == 0 and not options.quiet:
                print(f"step {step + 1}/{options.steps}  loss {value:.4f}", flush=True)
        seconds.append(time.perf_counter() - begin)
    return seconds


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("data/kjv"), help="token folder (default: data/kjv)")
    parser.add_argument("--steps", type=int, default=2000, help="optimizer steps (default: 2000)")
    parser.add_argument("--seed", type=int, default=1, help="of initial values and windows (default: 1)")
    parser.add_argument("--threads", type=int, default=2, help="default: 2")
    parser.add_argument("--compile", action="store_true", help="train torch.compile(model)")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the numbers to this file as well")
    parser.add_argument("--quiet", action="store_true", help="print the result only")
    options = parser.parse_args()
    if options.steps < 1:
        parser.error("--steps: must be at least 1")
    return options


def main():
    options = arguments()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    tokens, vocabulary = read_split(options.data / "train")
    held_out, _ = read_split(options.data / "valid")
    model = gpt.GPT(gpt.Shape(vocabulary, CONTEXT, width=128, layers=4, heads=4))
    optimizer = gpt.adamw(model, PEAK, betas=(0.9, 0.99), weight_decay=0.1)
    before = evaluate(model, held_out)
    seconds = train(torch.compile(model) if options.compile else model, optimizer, tokens, options)
    middle = statistics.median(measure.stretches(seconds))
    result = {
        "parameters": sum(p.numel() for p in model.parameters()),
        "valid_loss_before": before,
        "valid_loss": evaluate(model, held_out),
        "step_ms": 1e3 * middle,
        "tokens_per_s": BATCH * CONTEXT / middle,
        "seconds": sum(seconds),
    } | {"seed": options.seed, "steps": options.steps, "compile": options.compile, "threads": options.threads}
    print(
        f"PyTorch {torch.__version__}, {'compiled' if options.compile else 'eager'}: valid loss {before:.4f} before, "
        f"{result['valid_loss']:.4f} after {options.steps} steps; {result['step_ms']:.2f} ms a step, "
        f"{result['tokens_per_s']:.0f} tokens/s (median)"
    )
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
