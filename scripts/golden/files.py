"""Writes a golden file: tensors in the safetensors format, the same bytes on every run.

The library orders the metadata at random; the header is rewritten with sorted keys. Drawn values are float32 numbers,
keyed by file and tensor name, so that adding a tensor changes no other.
"""

import json
import zlib
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save

FOLDER = Path(__file__).resolve().parents[2] / "tests" / "golden"


def generator(file, name):
    return np.random.default_rng(zlib.crc32(f"{file}/{name}".encode()))


def write(name, tensors, metadata):
    metadata = {
        "generator": "scripts/golden/generate",
        "torch": torch.__version__.split("+")[0],
        "transformers": version("transformers"),
        **{key: value if isinstance(value, str) else json.dumps(value) for key, value in metadata.items()},
    }
    tensors = {key: value.detach().contiguous() for key, value in tensors.items()}
    path = FOLDER / f"{name}.safetensors"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(_sorted_header(save(tensors, metadata)))
    assert load_file(path).keys() == tensors.keys()
    return path


def _sorted_header(data):
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + data[8 + length :]
