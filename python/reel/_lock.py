"""The lock on a run's folder: that of tasks/io/lock.cpp, so that a program and Python respect each other, too."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import stat
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


class Lock:
    """The lock on a run's folder, while this process has it."""

    def __init__(self, folder: str, file: int) -> None:
        self._folder, self._file = folder, file

    def require_held(self) -> None:
        """Throws Error if the folder is no longer that of the run."""
        if not _is_named(self._file, os.path.join(self._folder, "lock")):
            raise Error(
                f"[{self._folder}] is not the folder of this run any more: it, or the file lock in it, was moved, "
                "removed or replaced"
            )


@contextlib.contextmanager
def locked(folder: str) -> Iterator[Lock]:
    """Has the folder for this process. The system releases the lock when the process ends, however it ends.

    Throws Error that says who has it.
    """
    path = os.path.join(folder, "lock")
    try:
        file = _locked_file(path)
    except BlockingIOError:
        raise Error(f"[{folder}] is in use by {_owner(path)}. Hint: wait until it ends, or use another folder.") from None
    except OSError as e:
        raise Error(f"[{path}] cannot be written: {e.strerror}") from None
    _open.add(file)
    try:
        program, host = os.path.basename(sys.argv[0]) or "python", socket.gethostname()
        since = time.strftime("%Y-%m-%d %H:%M:%S %z")
        with contextlib.suppress(OSError):  # on a full disk, say
            os.ftruncate(file, 0)
            os.write(file, f"{program} (process {os.getpid()} on {host}) since {since}\n".encode(errors="replace"))
        yield Lock(folder, file)
    finally:
        if file in _open:
            _open.remove(file)
            if _is_named(file, path):
                with contextlib.suppress(OSError):
                    os.unlink(path)
            os.close(file)


def _is_named(file: int, path: str) -> bool:
    """Whether the open file is the one of this path, which may have been removed, or replaced by another one."""
    try:
        return os.path.samestat(os.fstat(file), os.lstat(path))
    except OSError:
        return False


def _locked_file(path: str) -> int:
    """A file that is open and locked, where the file system has locks. Throws BlockingIOError if another has it."""
    while True:
        # a link or a pipe of this name must neither lead elsewhere nor block
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
        try:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise Error(f"[{path}] cannot be written: it is not an ordinary file")
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise
            except OSError:  # the file system has no locks
                pass
            if _is_named(file, path):  # its last owner may have removed it
                return file
        except BaseException:
            os.close(file)
            raise
        os.close(file)


def _owner(path: str) -> str:
    """What the owner wrote, up to the end of the line."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.readline(400).strip() or "another program"
    except OSError:  # it is just ending
        return "another program"
