"""What Reel is to reach on a GPU against PyTorch, and whether a row does."""

from dataclasses import dataclass

from peers import OWN_LOOP
from rows import parse_cell

FACTORS = {"torch": 10, "compiled": 3, "jax": 2}  # times as fast as PyTorch's steps one by one, as torch.compile's, as JAX
MILLISECONDS = {("srnn", "784x100x1024"): 4}  # a training step of SRNN on the pixels of a digit


@dataclass(frozen=True)
class Goal:
    text: str
    reached: bool

    def __str__(self):
        return f"{self.text}: {'reached' if self.reached else 'NOT REACHED'}"


def goals(cell, shape, milliseconds, ratios):
    """The goals of a row; `ratios` are those of the peers' times to Reel's, by system."""
    name, out = parse_cell(cell)[0], []
    for system, ratio in ratios.items():
        if system not in FACTORS:
            continue
        # PyTorch's own modules call cuDNN: the same speed is the goal there.
        of_cudnn = name in OWN_LOOP and system != "jax"
        peer, factor = ("cuDNN", 1) if of_cudnn else (system, FACTORS[system])
        out.append(Goal(f"{ratio:.2f} times as fast as {peer}, of {factor}", ratio >= factor))
    limit = MILLISECONDS.get((name, shape))
    if limit:
        out.append(Goal(f"{milliseconds:.2f} ms, to be under {limit}", milliseconds < limit))
    return out
