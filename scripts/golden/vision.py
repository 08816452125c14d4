"""Golden files of whole tiny vision transformers: logits, mean loss and every gradient, from timm and transformers."""

from importlib.metadata import version

import torch
import torch.nn.functional as F

import draws
import files
import schema
from attention import call
from proof import truth
from vision_models import FAMILIES

BATCH = 4


def generate(family):
    name = f"vit_{family}"
    model, make, rename, about = FAMILIES[family]()
    parameters = draws.parameters(name, schema.vit_shapes(model), model)
    images = draws.normal(name, "images", (BATCH, model["channels"], model["image"], model["image"]))
    labels = torch.from_numpy(files.generator(name, "labels").integers(0, model["classes"], BATCH))
    pixels = {torch.float32: images, torch.float64: images.double()}

    def build():
        module, argument = make()
        module.eval()

        def function(tensors):
            pictures = pixels[tensors["patch.weight"].dtype]
            logits = call(module, rename(tensors), **{argument: pictures})
            logits = getattr(logits, "logits", logits)
            loss = F.cross_entropy(logits, labels)
            return {"logits": logits, "loss": loss.detach()}, loss

        return function

    zero = schema.vit_unseen(model)
    outputs, gradients, report = truth(build, parameters, zero)
    tensors = {**parameters, **outputs, **{f"grad.{key}": value for key, value in gradients.items()}}
    tensors |= dict(images=images, labels=labels)
    metadata = {"model": schema.text(model), "zero_gradients": zero, "timm": version("timm"), **about}
    return files.write(name, tensors, metadata), report
