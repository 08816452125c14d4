"""GPT-2 in plain PyTorch, as its users write it: what both comparisons run against.

Pre-norm blocks with biases, learned positions, tied output, scaled_dot_product_attention; N(0, 0.02) with smaller
residual projections; AdamW with fused=True. No dropout, and nothing that a user would not do.
"""

from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Shape:
    vocabulary: int
    context: int
    width: int
    layers: int
    heads: int
    gelu: str = "none"  # torch's names: none is the exact one


class Attention(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.heads = shape.heads
        self.qkv = nn.Linear(shape.width, 3 * shape.width)
        self.out = nn.Linear(shape.width, shape.width)

    def forward(self, x):
        batch, length, width = x.shape
        heads = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in self.qkv(x).split(width, dim=2))
        y = F.scaled_dot_product_attention(*heads, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.attention_norm = nn.LayerNorm(shape.width)
        self.attention = Attention(shape)
        self.mlp_norm = nn.LayerNorm(shape.width)
        self.up = nn.Linear(shape.width, 4 * shape.width)
        self.down = nn.Linear(4 * shape.width, shape.width)
        self.gelu = shape.gelu

    def forward(self, x):
        x = x + self.attention(self.attention_norm(x))
        return x + self.down(F.gelu(self.up(self.mlp_norm(x)), approximate=self.gelu))


class GPT(nn.Module):
    """tokens, targets [batch, length] -> the summed or mean cross entropy."""

    def __init__(self, shape):
        super().__init__()
        self.embedding = nn.Embedding(shape.vocabulary, shape.width)
        self.position = nn.Embedding(shape.context, shape.width)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm = nn.LayerNorm(shape.width)
        self.output = nn.Linear(shape.width, shape.vocabulary, bias=False)
        self.output.weight = self.embedding.weight
        self._draw(0.02, 0.02 / (2 * shape.layers) ** 0.5)

    @torch.no_grad()
    def _draw(self, deviation, residual):
        for name, parameter in self.named_parameters():
            if parameter.dim() >= 2:
                into_residual = name.endswith(("attention.out.weight", "down.weight"))
                parameter.normal_(0, residual if into_residual else deviation)
            elif name.endswith("bias"):
                parameter.zero_()

    def forward(self, tokens, targets, reduction="mean"):
        x = self.embedding(tokens) + self.position.weight[: tokens.size(1)]
        for block in self.blocks:
            x = block(x)
        logits = self.output(self.norm(x))
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction=reduction)


def adamw(model, lr, betas, weight_decay):
    """Decay on matrices and embeddings only."""
    parameters = list(model.parameters())
    groups = [
        {"params": [p for p in parameters if p.dim() >= 2], "weight_decay": weight_decay},
        {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=lr, betas=betas, fused=True)


def train_step(model, optimizer, tokens, targets, clip=1.0):
    loss = model(tokens, targets)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), clip)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return loss.detach()
