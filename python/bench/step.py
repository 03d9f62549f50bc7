"""Processor time of a training step whose loop runs a cell by C++ and by a step in Python that calls the cell.

Both loops are the same program, so the difference is what Python costs: the step is traced once in each call.
"""

import statistics
import time

import reel

T, B, N = 100, 32, 64


def main():
    xs = reel.normal((T, B, 8), seed=2)
    for name in ("lstm", "gru", "srnn"):
        cell = reel.cell(name, 8, N)

        def by_cell(p, cell=cell):
            return reel.sum(reel.square(cell.run(xs, parameters=p)[0]))

        def by_step(p, cell=cell):
            def step(state, x):
                state = cell.step(state, x, p)
                return state, cell.output(state)

            return reel.sum(reel.square(reel.scan(step, cell.initial(B), xs)[1]))

        times = {by_cell: [], by_step: []}
        for _ in range(120):
            for loss, taken in times.items():
                start = time.thread_time()
                reel.grad(loss)(cell.parameters())
                taken.append(time.thread_time() - start)
        cpp, python = (1e3 * statistics.median(taken) for taken in times.values())
        print(f"{name}: C++ {cpp:.2f} ms, step in Python {python:.2f} ms")


if __name__ == "__main__":
    main()
