"""Milliseconds of processor time of a training step (forward, and gradient of the parameters) of LEM written in Python.

lem.py T B N REPETITIONS prints the median; bench_lem, the target of lem.cpp, does so in C++.
"""

import statistics
import sys
import time

import reel


def lem(state, x, p):
    """Long Expressive Memory (Rusch et al. 2022) with dt = 1, as examples/own_cell/lem.cpp has it."""

    def gate(name, state):
        return reel.linear(x, p["V" + name], p["b" + name]) + reel.linear(state, p["W" + name])

    y, z = state
    dt1, dt2 = reel.sigmoid(gate("1", y)), reel.sigmoid(gate("2", y))
    z = (1 - dt1) * z + dt1 * reel.tanh(gate("z", y))
    y = (1 - dt2) * y + dt2 * reel.tanh(gate("y", z))
    return (y, z), y


def parameters(inputs, n):
    shapes = {"W": (n, n), "V": (n, inputs), "b": (n,)}
    names = [kind + gate for gate in "12zy" for kind in "WVb"]
    k = n**-0.5
    return {name: reel.uniform(shapes[name[0]], -k, k, seed=1, stream=i) for i, name in enumerate(names)}


def main():
    T, B, n, repetitions = map(int, sys.argv[1:5])
    xs, p = reel.normal((T, B, 8), seed=2), parameters(8, n)

    def loss(p):
        zeros = reel.zeros((B, n))
        return reel.sum(reel.square(reel.scan(lambda s, x: lem(s, x, p), (zeros, zeros), xs)[1]))

    times = []
    for _ in range(repetitions):
        start = time.thread_time()
        reel.grad(loss)(p)
        times.append(time.thread_time() - start)
    print(f"{1e3 * statistics.median(times):.3f}")


if __name__ == "__main__":
    main()
