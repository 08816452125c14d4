"""Golden files of the optimiser and of learning-rate curves: torch.optim.AdamW and transformers' schedules.

AdamW's result is checked against its formula written out; a curve is read from the scheduler itself, step by step.
"""

import numpy as np
import torch
import transformers

import files

STEPS, CURVE = 20, 100
SHAPES = ((5, 7), (11,), (3, 4, 2))
LR, BETAS, EPS, DECAY = 3e-2, (0.9, 0.95), 1e-8, 0.1


def adamw():
    name = "adamw"
    initial = [draw64(name, f"initial.{i}", shape) for i, shape in enumerate(SHAPES)]
    # Gradients of very different size, one nearly as small as eps, and some elements that are zero throughout.
    sizes = (1.0, 30.0, 1e-8)
    gradients = [draw64(name, f"grad.{i}", (STEPS, *shape)) * sizes[i] for i, shape in enumerate(SHAPES)]
    gradients[0][:, 0, :3] = 0.0
    lr = [LR * (t + 1) / 5 if t < 5 else LR * (0.6 + 0.4 * float(np.cos(0.3 * t))) for t in range(STEPS)]
    parameters = [value.clone().requires_grad_() for value in initial]
    optimizer = torch.optim.AdamW(parameters, lr=LR, betas=BETAS, eps=EPS, weight_decay=DECAY)
    for t in range(STEPS):
        optimizer.param_groups[0]["lr"] = lr[t]
        for parameter, gradient in zip(parameters, gradients):
            parameter.grad = gradient[t].clone()
        optimizer.step()
    tensors = {"lr": torch.tensor(lr, dtype=torch.float64)}
    worst = 0.0
    for i, parameter in enumerate(parameters):
        state = optimizer.state[parameter]
        final = dict(final=parameter, first=state["exp_avg"], second=state["exp_avg_sq"])
        expected = _adamw_formula(initial[i].numpy(), gradients[i].numpy(), lr)
        for (key, value), want in zip(final.items(), expected):
            error = np.abs(value.detach().numpy() - want).max() / np.abs(want).max()
            assert value.dtype == torch.float64 and error < 1e-14, f"{key}.{i}: {error}"
            worst = max(worst, error)
        tensors |= {f"initial.{i}": initial[i], f"grad.{i}": gradients[i]}
        tensors |= {f"{key}.{i}": value for key, value in final.items()}
    described = dict(
        kind="adamw", betas=BETAS, eps=EPS, weight_decay=DECAY, decay="coupled", steps=STEPS,
        order="w -= lr[t] * weight_decay * w; then w -= lr[t] * (m / (1 - beta1^n)) / (sqrt(v / (1 - beta2^n)) + eps)"
        " with n = t + 1; first is m, second is v",
    )  # fmt: skip
    return files.write(name, tensors, {"optimizer": described}), {"formula": float(worst)}


def draw64(file, name, shape):
    return torch.from_numpy(files.generator(file, name).standard_normal(shape).astype(np.float32)).double()


def _adamw_formula(w, gradients, lr):
    m, v = np.zeros_like(w), np.zeros_like(w)
    for t, g in enumerate(gradients):
        w = w * (1 - lr[t] * DECAY)
        m, v = BETAS[0] * m + (1 - BETAS[0]) * g, BETAS[1] * v + (1 - BETAS[1]) * g * g
        corrected = m / (1 - BETAS[0] ** (t + 1)), v / (1 - BETAS[1] ** (t + 1))
        w = w - lr[t] * corrected[0] / (np.sqrt(corrected[1]) + EPS)
    return w, m, v


def curves():
    """Name: (transformers function, its arguments, the curve in words). Warm-up is linear from 0 unless said."""
    w, n = dict(num_warmup_steps=10), dict(num_training_steps=CURVE)
    wsd = dict(num_warmup_steps=10, num_stable_steps=60, num_decay_steps=30)
    down = "the warm-up also starts at min_lr_ratio, not at 0"
    return dict(
        constant=("get_constant_schedule_with_warmup", w, "constant 1 after the warm-up"),
        cosine=("get_cosine_schedule_with_warmup", w | n, "half a cosine from 1 to 0 over the rest"),
        cosine_final=(
            "get_cosine_with_min_lr_schedule_with_warmup", w | n | dict(min_lr_rate=0.1),
            "half a cosine from 1 to 0.1 over the rest: 0.1 + 0.9 * (1 + cos(pi p)) / 2; warm-up from 0",
        ),
        linear=("get_linear_schedule_with_warmup", w | n, "a line from 1 to 0 over the rest"),
        wsd_linear=("get_wsd_schedule", wsd | dict(decay_type="linear"), "60 steps at 1, then a line to 0"),
        wsd_cosine=("get_wsd_schedule", wsd | dict(decay_type="cosine"), "60 steps at 1, then half a cosine to 0"),
        wsd_sqrt=("get_wsd_schedule", wsd | dict(decay_type="1-sqrt"), "60 steps at 1, then 1 - sqrt(p) to 0"),
        wsd_linear_final=(
            "get_wsd_schedule", wsd | dict(decay_type="linear", min_lr_ratio=0.1),
            f"60 steps at 1, then a line to 0.1; {down}",
        ),
        inverse_sqrt=("get_inverse_sqrt_schedule", w, "sqrt(10 / step) after the warm-up"),
    )  # fmt: skip


def schedules():
    tensors, described = {}, {}
    for name, (function, arguments, words) in curves().items():
        optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        scheduler = getattr(transformers, function)(optimizer, **arguments)
        factors = []
        for _ in range(CURVE):
            factors.append(scheduler.get_last_lr()[0])
            optimizer.step()
            scheduler.step()
        tensors[name] = torch.tensor(factors, dtype=torch.float64)
        described[name] = dict(function=function, arguments=arguments, words=words)
    _check_curves({name: value.numpy() for name, value in tensors.items()})
    index = (
        "factor[step] multiplies the peak rate of the update number step, counted from 0: with a warm-up of 10 the "
        "first update has factor 0, update 10 is the first with factor 1; p is the share of the decay over at step"
    )
    return files.write("schedules", tensors, {"curves": described, "index": index}), {"curves": len(tensors)}


def _check_curves(curves):
    """The words, written out."""
    step = np.arange(CURVE)
    rest, tail = (step - 10) / 90, (step - 70) / 30
    after = dict(
        constant=np.ones(CURVE), linear=1 - rest, cosine=(1 + np.cos(np.pi * rest)) / 2,
        cosine_final=0.1 + 0.9 * (1 + np.cos(np.pi * rest)) / 2, inverse_sqrt=np.sqrt(10 / np.maximum(step, 1)),
        wsd_linear=1 - tail.clip(0), wsd_cosine=(1 + np.cos(np.pi * tail.clip(0))) / 2,
        wsd_sqrt=1 - np.sqrt(tail.clip(0)), wsd_linear_final=1 - 0.9 * tail.clip(0),
    )  # fmt: skip
    assert after.keys() == curves.keys()
    for name, curve in curves.items():
        start = 0.1 if name == "wsd_linear_final" else 0.0
        want = np.where(step < 10, start + (1 - start) * step / 10, after[name])
        assert np.abs(curve - want).max() < 1e-14, name
