"""What is the same for every system: the rows of the table, how cells are named, and numbers of rounds. No PyTorch."""

import signal
import time
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median

TASKS = {"copying": (10, 10), "adding": (2, 1), "pixels": (1, 10), "frames": (None, 10)}  # symbols or numbers in (None:
# as many as there are units), outputs
GREYS = 256  # values of a pixel
PRECISIONS = ("f32", "tf32", "bf16")
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}  # seconds, and those of the process's threads


@contextmanager
def time_limit(seconds):
    """Raises TimeoutError inside its block when that takes longer: compiling has no end of its own."""
    def stop(signum, frame):
        raise TimeoutError(f"stopped after {seconds:g} s")
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@dataclass(frozen=True)
class Row:
    """Steps, batch and units, and the task whose inputs and loss it has, as bench_cells has them."""
    T: int
    B: int
    n: int
    task: str

    @staticmethod
    def parse(text):
        sizes, _, task = text.partition(":")
        T, B, n = (int(size) for size in sizes.split("x"))
        return Row(T, B, n, task or {750: "adding", 784: "pixels"}.get(T, "copying"))


def parse_cell(text):
    """srnn/width=32 -> "srnn", {"width": "32"}"""
    name, *settings = text.split("/")
    return name, dict(setting.split("=") for setting in settings)


def best(rounds):
    """The variant (a number of threads, say) with the smallest median over all rounds, and its rounds."""
    most = max(map(len, rounds.values()))
    return min(((key, values) for key, values in rounds.items() if len(values) == most), key=lambda p: median(p[1]))


def worth_repeating(rounds):
    """The variants to go on with: small operations on several threads can be many times slower, which is tried once."""
    fastest = min(values[0] for values in rounds.values())
    return [key for key, values in rounds.items() if values[0] < 2 * fastest]


def add_place(parser):
    parser.add_argument("--device", default="cpu", help="cpu, cuda or cuda:1")
    parser.add_argument("--precision", default="f32", choices=PRECISIONS, help="of products of f32, on a GPU")
