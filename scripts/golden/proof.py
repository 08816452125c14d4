"""Computes a float64 truth with every gradient, and refuses it unless three checks hold.

(1) no float32 tensor occurs in the float64 run; (2) every gradient agrees with central finite differences; (3) the
ordinary float32 run of the same module agrees, so that the redirection has not changed the function.
A `build` is called in the precision wanted and returns a function from named tensors to (named outputs, scalar).
"""

import numpy as np
import torch

from float64 import double

DIFFERENCES = 1e-6  # relative, finite differences against autograd
SINGLE = 2e-5  # relative to the largest element, float32 run against float64


def truth(build, tensors, zero=()):
    """Outputs and gradients in float64. `zero` names the gradients that vanish by an invariance: what rounding leaves
    of them is checked to be nothing, then replaced by exact zeros."""
    values = {name: value.double() for name, value in tensors.items()}
    with double() as witness:
        function = build()
        outputs, gradients = _differentiate(function, values)
        _clear(gradients, zero)
        worst = _finite_differences(function, values, gradients, zero)
    assert witness.operations > 0
    report = {"finite differences": worst, "float32 run": _single(build, tensors, outputs, gradients, zero)}
    return outputs, gradients, report


def _differentiate(function, values):
    leaves = {name: value.detach().clone().requires_grad_() for name, value in values.items()}
    outputs, scalar = function(leaves)
    gradients = torch.autograd.grad(scalar, list(leaves.values()))
    return {k: v.detach() for k, v in outputs.items()}, dict(zip(leaves, gradients))


def _clear(gradients, zero):
    largest = max(g.abs().max().item() for g in gradients.values())
    for name in zero:
        left = gradients[name].abs().max().item()
        assert left < 1e-13 * largest, f"{name}: gradient {left} should vanish"
        gradients[name] = torch.zeros_like(gradients[name])


def _finite_differences(function, values, gradients, zero):
    """One direction per tensor: each element moves in proportion to its size, since heads differ in energy by far, and
    by half along its gradient's sign, so that the slope is never tiny beside its terms. Scores of a hundred bend the
    function within the first step; the second is short enough for them."""
    worst = 0.0
    draw = np.random.default_rng(20240229)
    for name, gradient in gradients.items():
        if name in zero:
            continue
        random = torch.from_numpy(draw.standard_normal(tuple(gradient.shape)))
        size = values[name].abs() if values[name].any() else torch.ones_like(gradient)
        errors = []
        for step in (5e-4, 5e-5):
            change = step * size * (gradient.sign() + random)
            slope, expected = _slope(function, values, name, change), (gradient * change).sum().item()
            errors.append(abs(slope - expected) / abs(expected))
            if errors[-1] < DIFFERENCES:
                break
        assert errors[-1] < DIFFERENCES, f"{name}: finite differences {slope}, autograd {expected}"
        worst = max(worst, errors[-1])
    return worst


def _slope(function, values, name, change):
    """Fourth-order central difference: truncation falls below rounding at a step that rounding can bear."""

    def at(factor):
        with torch.no_grad():
            return function({**values, name: values[name] + factor * change})[1].item()

    return (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / 12


def _single(build, tensors, outputs, gradients, zero):
    outputs32, gradients32 = _differentiate(build(), {k: v.float() for k, v in tensors.items()})
    worst = 0.0
    for wide, narrow in ((outputs, outputs32), (gradients, gradients32)):
        for name, value in wide.items():
            if name in zero:
                continue
            assert narrow[name].dtype == torch.float32, name
            error = ((narrow[name].double() - value).abs().max() / value.abs().max()).item()
            assert error < SINGLE, f"{name}: float32 run differs by {error}"
            worst = max(worst, error)
    return worst
