#!/usr/bin/env python3
"""GPT-2 124M in plain PyTorch: the time of a step on random tokens that stay in memory, fp32, and the peak memory.

A step is forward, backward, clipping by norm, fused AdamW and clearing of gradients. It does not learn anything.
"""

import argparse
import json
import statistics
import time
from pathlib import Path

import numpy as np
import torch

import gpt


def peak_mib():
    """Of this process alone, without what compiled it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def batches(tokens, options):
    """One after the other, as long as one asks."""
    generator = torch.Generator().manual_seed(1)
    span = torch.arange(options.context + 1)
    while True:
        begins = torch.randint(len(tokens) - options.context, (options.batch,), generator=generator)
        rows = tokens[begins[:, None] + span]
        yield rows[:, :-1], rows[:, 1:]


def time_steps(model, optimizer, source, options):
    seconds = []
    for _ in range(options.warmup + options.steps):
        begin = time.perf_counter()
        loss = gpt.train_step(model, optimizer, *next(source))
        loss.item()
        seconds.append(time.perf_counter() - begin)
    return seconds[options.warmup :]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="raw uint16 tokens of GPT-2's vocabulary")
    parser.add_argument("--layers", type=int, default=12, help="fewer make a quick trial (default: 12)")
    parser.add_argument("--context", type=int, default=64, help="default: 64")
    parser.add_argument("--batch", type=int, default=4, help="default: 4")
    parser.add_argument("--warmup", type=int, default=3, help="steps before the timed ones (default: 3)")
    parser.add_argument("--steps", type=int, default=10, help="timed steps (default: 10)")
    parser.add_argument("--threads", type=int, default=2, help="default: 2")
    parser.add_argument("--compile", action="store_true", help="train torch.compile(model)")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the numbers to this file as well")
    return parser.parse_args()


def main():
    options = arguments()
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    tokens = torch.from_numpy(np.fromfile(options.data, dtype=np.uint16).astype(np.int64))
    shape = gpt.Shape(50257, options.context, width=768, layers=options.layers, heads=12, gelu="tanh")
    model = gpt.GPT(shape)
    optimizer = gpt.adamw(model, 6e-4, betas=(0.9, 0.95), weight_decay=0.1)
    trained = torch.compile(model) if options.compile else model
    seconds = time_steps(trained, optimizer, batches(tokens, options), options)
    result = {"parameters": sum(p.numel() for p in model.parameters()), "step_s": seconds, "peak_mib": peak_mib()}
    mode = "compiled" if options.compile else "eager"
    print(
        f"PyTorch {torch.__version__}, {mode}, {result['parameters']:,} parameters: median "
        f"{statistics.median(seconds):.3f} s a step, best {min(seconds):.3f} s; peak {result['peak_mib']:.0f} MiB"
    )
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
