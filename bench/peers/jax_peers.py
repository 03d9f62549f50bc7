"""Reel's cells in JAX; as a program, the process that times training steps of one of them on some cores.

    python3 bench/peers/jax_peers.py --arrays FILE.npz --cell srnn/width=32 --units 128 --task copying --cores 0,1

It says when it is ready, and for each line {"budget": SECONDS, "least": STEPS, "unroll": [1, 4]} on stdin it answers
with milliseconds of a step, medians in the order of "unroll": [7.2, 6.9]. What fails is {"error": WHY}.
"""

import argparse
import json
import os
import sys
import time
from statistics import median

from rows import CLOCKS, parse_cell


def cells():
    """Imported when the cores are set: JAX makes its threads for the cores that it finds."""
    from jax_gated import Gru, Janet, Lstm, Rnn, Srnn
    from jax_memory import Nru, Sru
    from jax_orthogonal import Enrnn, Exprnn, Ornn, Scornn
    from jax_rotations import Eurnn, Goru
    from jax_unitary import Urnn
    return {"lstm": Lstm, "gru": Gru, "rnn": Rnn, "srnn": Srnn, "nru": Nru, "goru": Goru, "eurnn": Eurnn, "urnn": Urnn,
            "enrnn": Enrnn, "scornn": Scornn, "exprnn": Exprnn, "ornn": Ornn, "sru": Sru, "janet": Janet}


def make_cell(text, n):
    name, settings = parse_cell(text)
    return cells()[name](n, **settings)


def timed(training, clock):
    start = clock()
    training.step()
    return 1e3 * (clock() - start)


def medians(trainings, budget, least, clock):
    """Of steps that take turns, for so many seconds, but so many steps at least."""
    times, start = {unroll: [] for unroll in trainings}, time.perf_counter()
    while len(min(times.values(), key=len)) < least or time.perf_counter() - start < budget:
        for unroll, training in trainings.items():
            times[unroll].append(timed(training, clock))
    return [median(values) for values in times.values()]


def say(answer):
    print(json.dumps(answer), flush=True)


def serve(options):
    import numpy
    from jax_common import Training
    with numpy.load(options.arrays) as file:
        arrays = dict(file)
    cell = make_cell(options.cell, options.units)
    trainings = {int(unroll): Training(cell, options.task, arrays, int(unroll)) for unroll in options.unroll.split(",")}
    for training in trainings.values():
        training.step()  # compiles
        training.step()
    say("ready")
    for line in sys.stdin:
        order = json.loads(line)
        chosen = {unroll: trainings[unroll] for unroll in order["unroll"]}
        say(medians(chosen, order["budget"], order["least"], CLOCKS[options.clock]))


def main():
    parser = argparse.ArgumentParser(description="Times training steps of a cell in JAX, when told on stdin.")
    parser.add_argument("--arrays", required=True, help="what hand_over gives, as a file of NumPy")
    parser.add_argument("--cell", required=True, help="as srnn/width=32")
    parser.add_argument("--units", type=int, required=True)
    parser.add_argument("--task", required=True)
    parser.add_argument("--cores", required=True, help="as 0,1")
    parser.add_argument("--unroll", default="1,4", help="steps of time in the loop's body, as lax.scan takes it")
    parser.add_argument("--clock", choices=CLOCKS, default="wall")
    options = parser.parse_args()
    os.sched_setaffinity(0, [int(core) for core in options.cores.split(",")])
    try:
        serve(options)
    except Exception as error:
        say({"error": str(error) or repr(error)})
        raise


if __name__ == "__main__":
    main()
