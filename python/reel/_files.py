"""Tensors in safetensors files."""

from __future__ import annotations

import os
from typing import Any, Mapping, overload

from . import _reel
from ._check import path as checked, shown
from ._reel import Error, Tensor
from ._tree import by_name, flatten


@overload
def load_safetensors(path: str | os.PathLike) -> dict[str, Tensor]: ...
@overload
def load_safetensors(path: str | os.PathLike, like: Any) -> Any: ...
def load_safetensors(path: str | os.PathLike, like: Any = None) -> Any:
    """The tensors of a safetensors file by name, in its order; or, as in `like`, in nested dicts, lists and tuples.

    Reel's own files have a checksum, which is verified. Throws Error with the path and the cause for any damage, and
    where the file has other names, shapes or dtypes than the tensors of `like`.
    """
    name = checked(path)
    tensors = _reel._load_safetensors(name)[0]
    if like is None:
        return tensors
    leaves, rebuild = flatten(like, "load_safetensors", "like{}")
    own = dict(zip(by_name(like, "load_safetensors", "like: "), leaves))
    refuse_misfits(name, tensors, own, "like", "without it there are the tensors by name")
    return rebuild([tensors[name] for name in own])


def refuse_misfits(path: str, tensors: Mapping[str, Tensor], own: Mapping[str, Tensor], what: str, hint: str) -> None:
    """Throws Error unless a file has tensors like these, besides what else a checkpoint has."""
    missing = [name for name in own if name not in tensors]
    extra = [name for name in tensors if name not in own and not name.startswith(("optimizer.", "carry."))]
    if missing or extra:
        said = [f"lacks {', '.join(missing)}"] * bool(missing) + [f"has {', '.join(extra)}"] * bool(extra)
        raise Error(f"[{path}] does not fit {what}: {' and '.join(said)}. Hint: {hint}")
    for name, place in own.items():
        found = tensors[name]
        if (found.shape, found.dtype) != (place.shape, place.dtype):
            raise Error(
                f"[{path}] does not fit {what}: {name} is {found.dtype.name} {found.shape}, {what} has "
                f"{place.dtype.name} {place.shape}"
            )


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
    path: str | os.PathLike,
    tensors: Mapping[str, Any] | list[Any] | tuple[Any, ...],
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Writes tensors, or arrays of NumPy or PyTorch, to a safetensors file, which is replaced as a whole.

    Those in nested dicts, lists and tuples have names with dots, such as "layers.0.w".
    Throws Error when the disk refuses or a dtype is not one of Reel's; then the old file stays.
    """
    named = by_name(tensors, "save_safetensors", keep_none=True)
    if not isinstance(metadata or {}, Mapping):
        raise Error(f"[save_safetensors] metadata: a dict of texts is needed, got {shown(metadata)}")
    texts = dict(metadata or {})
    for key, value in texts.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise Error(f"[save_safetensors] metadata: texts are needed, got {shown(key)}: {shown(value)}. Hint: str()")
    for name in (*named, *texts, *texts.values()):
        if not name.isascii() and name != name.encode(errors="replace").decode():
            raise Error(f"[save_safetensors] a name or a text of metadata has no UTF-8: {shown(name)}")
    _reel._save_safetensors(checked(path), named, texts)


def load_metadata(path: str | os.PathLike) -> dict[str, str]:
    """The texts in the header of a safetensors file, such as the step of a run's best parameters."""
    return _reel._load_safetensors(checked(path))[1]
