"""Times training steps of a peer in JAX, which has a process of its own for each number of threads: JAX takes the cores
that it may run on when it starts. The processes live as long as the row and wait for their turns."""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy

from jax_hand_over import hand_over
from rows import time_limit, worth_repeating

UNROLLS = (1, 4)
MULTIPLIED = {"f32": "highest", "tf32": "tensorfloat32", "bf16": "bfloat16"}  # JAX's words for a GPU


class Process:
    """jax_peers.py on some cores, or on the GPU."""

    def __init__(self, cores, arrays, cell, row, clock, place):
        command = [sys.executable, Path(__file__).with_name("jax_peers.py"), "--arrays", arrays, "--cell", cell,
                   "--units", row.n, "--task", row.task, "--cores", ",".join(map(str, cores)),
                   "--unroll", ",".join(map(str, UNROLLS)), "--clock", clock]
        self.process = subprocess.Popen([str(part) for part in command], env=os.environ | place,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        text=True)

    def answer(self):
        """The next line that it writes."""
        line = self.process.stdout.readline()
        answer = json.loads(line) if line else {"error": f"the process of JAX ended with code {self.process.wait()}"}
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer

    def ask(self, order):
        try:
            self.process.stdin.write(json.dumps(order) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # there is no answer then, which says more
        return self.answer()

    def close(self):
        self.process.kill()
        self.process.communicate()


class JaxStopwatch:
    """As Stopwatch; `rounds` are by number of threads and unroll."""

    def __init__(self, training, cell, threads, start_limit, round_limit, clock, device, precision):
        """`start_limit`: seconds in which each process is to be ready; `round_limit`: beyond a round's budget."""
        cores = sorted(os.sched_getaffinity(0))
        place = {"JAX_PLATFORMS": "cpu"} if device == "cpu" else {
            "JAX_PLATFORMS": "cuda,cpu", "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
            "JAX_DEFAULT_MATMUL_PRECISION": MULTIPLIED[precision]}
        self.round_limit, self.processes = round_limit, {}
        with tempfile.TemporaryDirectory() as folder:
            arrays = Path(folder) / "arrays.npz"
            numpy.savez(arrays, **hand_over(training))
            try:
                for count in sorted({min(count, len(cores)) for count in threads}):
                    own = cores[:count] if device == "cpu" else cores
                    self.processes[count] = Process(own, arrays, cell, training.row, clock, place)
                    with time_limit(start_limit):
                        self.processes[count].answer()
            except BaseException:
                self.close()
                raise
        self.rounds = {(count, unroll): [] for count in self.processes for unroll in UNROLLS}
        self.variants = list(self.rounds)

    def run(self, budget, least=3):
        """One round, as Stopwatch has it: each number of threads has its share of the seconds."""
        counts = {count for count, _ in self.variants}
        for count in sorted(counts):
            unrolls = [unroll for own, unroll in self.variants if own == count]
            with time_limit(budget + self.round_limit):
                times = self.processes[count].ask({"budget": budget / len(counts), "least": least, "unroll": unrolls})
            for unroll, milliseconds in zip(unrolls, times):
                self.rounds[count, unroll].append(milliseconds)
        self.variants = worth_repeating(self.rounds)

    def close(self):
        for process in self.processes.values():
            process.close()
