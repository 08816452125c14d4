"""Runs modules that insist on float32 in float64 throughout.

`model.double()` is no float64 truth: the norms, softmax and rotary tables of transformers convert to float32 by name.
Inside `double()` every such request gives float64 instead, and a witness below autograd fails on the first narrower
floating-point tensor, forward or backward. It does not touch modules that were built outside.
"""

from contextlib import contextmanager

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

WIDER = {
    torch.float32: torch.float64,
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.complex64: torch.complex128,
}


class _Redirect(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is torch.Tensor.float:
            func = torch.Tensor.double

        def widen(value):
            return WIDER.get(value, value) if isinstance(value, torch.dtype) else value

        return func(*tree_map(widen, args), **tree_map(widen, kwargs or {}))


class _Witness(TorchDispatchMode):
    """Sees every operation that really runs, those of the backward pass included."""

    def __init__(self):
        super().__init__()
        self.operations = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for value in tree_leaves((args, kwargs, result)):
            if isinstance(value, torch.Tensor) and value.dtype in WIDER:
                raise AssertionError(f"{func} touches a {value.dtype} tensor in a float64 run")
        self.operations += 1
        return result


@contextmanager
def double():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with _Witness() as witness, _Redirect():
            yield witness
    finally:
        torch.set_default_dtype(before)
