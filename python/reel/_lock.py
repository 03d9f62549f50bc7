"""The lock on a run's folder: that of tasks/io/lock.cpp, so that a program and Python respect each other, too."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import sys
import time
from typing import Iterator

from ._reel import Error

_open: set[int] = set()  # files that are locked by this process


def _let_go() -> None:
    """A process that was forked does not hold what its parent holds, nor beyond its end."""
    for file in _open:
        os.close(file)
    _open.clear()


os.register_at_fork(after_in_child=_let_go)


@contextlib.contextmanager
def locked(folder: str) -> Iterator[None]:
    """Has the folder for this process. The system releases the lock when the process ends, however it ends.

    Throws Error that says who has it.
    """
    path = os.path.join(folder, "lock")
    try:
        file = _locked_file(path)
    except BlockingIOError:
        raise Error(f"[{folder}] is in use by {_owner(path)}. Hint: wait for its end, or another folder.") from None
    except OSError as e:
        raise Error(f"[{path}] cannot be written: {e.strerror}") from None
    _open.add(file)
    try:
        program, host = os.path.basename(sys.argv[0]) or "python", socket.gethostname()
        since = time.strftime("%Y-%m-%d %H:%M:%S %z")
        with contextlib.suppress(OSError):  # on a full disk, say
            os.ftruncate(file, 0)
            os.write(file, f"{program} (process {os.getpid()} on {host}) since {since}\n".encode(errors="replace"))
        yield
    finally:
        if file in _open:
            _open.remove(file)
            with contextlib.suppress(OSError):
                os.unlink(path)
            os.close(file)


def _locked_file(path: str) -> int:
    """A file that is open and locked, where the file system has locks. Throws BlockingIOError if another has it."""
    while True:
        # a link or a pipe of this name must neither lead elsewhere nor block
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file), os.lstat(path)):  # its last owner may have removed it
                    return file
        except BlockingIOError:
            os.close(file)
            raise
        except OSError:
            return file
        os.close(file)


def _owner(path: str) -> str:
    """What the owner wrote, up to the end of the line."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.readline(400).strip() or "another program"
    except OSError:  # it is just ending
        return "another program"
