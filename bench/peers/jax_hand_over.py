"""A training in PyTorch as plain arrays, from which JAX starts: the same parameters and batch."""

import torch


def hand_over(training):
    """Arrays by "parameter/NAME", "fixed/NAME" (of the cell) and "batch/x", "batch/y"."""
    model = training.model
    tensors = {f"parameter/{name}": p.detach() for name, p in model.named_parameters()}
    tensors |= {f"fixed/{name.removeprefix('cell.')}": b for name, b in model.named_buffers()}
    tensors |= {"batch/x": training.x, "batch/y": training.y}
    return {path: array(t) for path, t in tensors.items()}


def array(tensor):
    """A copy; complex numbers as a last axis of 2, integers in 32 bits."""
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    elif not tensor.is_floating_point():
        tensor = tensor.int()
    return tensor.detach().cpu().numpy().copy()
