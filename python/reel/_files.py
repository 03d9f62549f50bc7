"""Tensors in safetensors files."""

from __future__ import annotations

import os
from typing import Any, Mapping

from . import _reel
from ._check import kind_of, path as checked, shown
from ._reel import Error, Tensor


def load_safetensors(path: str | os.PathLike) -> dict[str, Tensor]:
    """The tensors of a safetensors file by name, in its order.

    Reel's own files have a checksum, which is verified. Throws Error with the path and the cause for any damage.
    """
    return _reel._load_safetensors(checked(path))[0]


def is_untrained(metadata: Mapping[str, str]) -> bool:
    """Whether it is that of a checkpoint whose run has done no update, so that the parameters are initial values."""
    return metadata.get("step") == "0" and "schedule" in metadata


def load_trained(path: str | os.PathLike) -> dict[str, Tensor]:
    """The tensors of a file, unless its run has done no update."""
    name = checked(path)
    tensors, metadata = _reel._load_safetensors(name)
    if is_untrained(metadata):
        raise Error(
            f"[{name}] its run has done no update, so the parameters are initial values. Hint: the program of its task "
            "with --resume trains it; a run that diverged at once needs a new start with a smaller --lr"
        )
    return tensors


def save_safetensors(
    path: str | os.PathLike, tensors: Mapping[str, Any], metadata: Mapping[str, str] | None = None
) -> None:
    """Writes tensors, or arrays of NumPy or PyTorch, to a safetensors file, which is replaced as a whole.

    Throws Error when the disk refuses or a dtype is not one of Reel's; then the old file stays.
    """
    if not isinstance(tensors, Mapping):
        raise Error(f"[save_safetensors] a dict of tensors is needed, got {kind_of(tensors)}")
    if not isinstance(metadata or {}, Mapping):
        raise Error(f"[save_safetensors] metadata: a dict of texts is needed, got {shown(metadata)}")
    texts = dict(metadata or {})
    for key, value in texts.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise Error(f"[save_safetensors] metadata: texts are needed, got {shown(key)}: {shown(value)}. Hint: str()")
    for name in (*map(str, tensors), *texts, *texts.values()):
        if not name.isascii() and name != name.encode(errors="replace").decode():
            raise Error(f"[save_safetensors] a name or a text of metadata has no UTF-8: {shown(name)}")
    _reel._save_safetensors(checked(path), dict(tensors), texts)


def load_metadata(path: str | os.PathLike) -> dict[str, str]:
    """The texts in the header of a safetensors file, such as the step of a run's best parameters."""
    return _reel._load_safetensors(checked(path))[1]
