"""Rows of training steps that Reel and its peers take in turn, and the table of them: what scripts/bench-peers runs."""

import json
import os
import subprocess
import sys
import tempfile
import time
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from statistics import median

from common import Stopwatch
from goals import goals
from peers import CELLS, OWN_LOOP, check_place, make_training, place_name
from rows import Row, best, parse_cell, time_limit
from table import OURS, markdown, number, reference

TITLES = {"module": "reel.torch.Cell", "loss": "reel.torch.function", "torch": "PyTorch", "compiled": "torch.compile",
          "jax": "JAX"}


class Unmeasured(Exception):
    """Reel has no number for a row; says why."""


def reel_round(program, cell, shape, options):
    """One round of bench_cells: the file it writes."""
    device = options.device + ("" if options.precision == "f32" else f",{options.precision}")
    environment = os.environ | ({"LD_LIBRARY_PATH": options.libraries} if options.libraries else {})
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        command = [program, "--cells", cell, "--shapes", shape, "--threads", options.threads, "--budget",
                   options.budget, "--device", device, "--json", file.name]
        done = subprocess.run([str(part) for part in command], env=environment, capture_output=True, text=True)
        if done.returncode:
            raise Unmeasured((done.stderr.strip() or f"bench_cells: code {done.returncode}").splitlines()[-1])
        result = json.load(open(file.name))
    if not result["rows"]:
        raise Unmeasured("too large for this machine")
    return result


def note(failures, system, cell, shape, error):
    failures[f"{TITLES[system]} of {cell} at {shape}"] = (str(error).strip() or repr(error)).splitlines()[0]


def start(cell, shape, system, threads, options, failures):
    """The stopwatch of a peer, or None where it has no such form or it does not run here."""
    if system == "compiled" and parse_cell(cell)[0] in OWN_LOOP:
        return None
    row = Row.parse(shape)
    try:
        if system == "jax":
            from jax_stopwatch import JaxStopwatch  # not before: where there is no JAX there may be no NumPy either
            training = make_training(cell, row)
            return JaxStopwatch(training, cell, threads, options.compile_limit, options.limit, options.clock,
                                options.device, options.precision)
        with time_limit(options.compile_limit if system == "compiled" else options.limit):
            training = make_training(cell, row, system, options.device, options.precision)
            return Stopwatch(training, threads, options.clock)
    except Exception as error:
        note(failures, system, cell, shape, error)
        return None


def measure(program, cell, shape, options, failures):
    """Rounds of one row; gives its cells of the table, the goals it has and the last file of bench_cells."""
    threads = [int(count) for count in options.threads.split(",")]
    began = time.perf_counter()
    peers = {}
    try:
        for system in options.systems:
            peers[system] = start(cell, shape, system, threads, options, failures)
        peers = {system: peer for system, peer in peers.items() if peer}
        reel, share = {count: [] for count in threads}, []
        for done in range(options.rounds):
            if done and time.perf_counter() - began > options.limit:
                break
            file = reel_round(program, cell, shape, options)
            for row in file["rows"]:
                reel[row["threads"]].append(row["ms"])
            share.append(min(file["rows"], key=lambda row: row["ms"])["share"])
            for system, peer in list(peers.items()):
                try:
                    peer.run(options.budget, least=1)
                except Exception as error:
                    note(failures, system, cell, shape, error)
                    peers.pop(system).close()
    finally:
        for peer in peers.values():
            if peer:
                peer.close()

    count, own = best(reel)
    how = str(count) if options.device == "cpu" else "graph" if file["rows"][0]["graph"] else "kernels"
    line, middles = [cell, shape, f"{number(median(own))} ({how})"], {}
    for system in options.systems:
        if system not in peers:
            line += ["", ""]
            continue
        variant, rounds = best(peers[system].rounds)
        middles[system] = median(theirs / ours for ours, theirs in zip(own, rounds))  # goals are of Reel itself
        line.append(number(median(rounds)) + (f" ({named(variant)})" if options.device == "cpu" else ""))
        first = reference(system, options.systems)
        base = own if first is None else best(peers[first].rounds)[1] if first in peers else []
        line.append(spread([theirs / ours for ours, theirs in zip(base, rounds)]))
    return line + [f"{100 * median(share):.0f} %"], goals(cell, shape, median(own), middles), file


def spread(ratios):
    """Median and range; nothing without ratios."""
    if not ratios:
        return ""
    return f"{median(ratios):.2f}" + (f" ({min(ratios):.2f} to {max(ratios):.2f})" if len(ratios) > 1 else "")


def named(variant):
    """A number of threads, of JAX with its unroll."""
    return f"{variant[0]}, unroll {variant[1]}" if isinstance(variant, tuple) else str(variant)


def software(options):
    """The device and the versions of all peers."""
    jax = f", JAX {metadata.version('jax')} (jaxlib {metadata.version('jaxlib')})" if "jax" in options.systems else ""
    return place_name(options.device) + jax


def run(parser, options):
    """What the options say; gives the exit code."""
    check_place(parser, options)
    if options.device != "cpu":
        options.threads = "1"
    options.cells = options.cells or ",".join([*CELLS, "srnn/width=32"])
    program = Path(options.build) / "bin/bench_cells"
    if not program.exists():
        hint = f"cmake --build {options.build} --target bench_cells"
        parser.exit(1, f"bench-peers: {program} is not there. Hint: {hint}\n")
    unknown = [cell for cell in options.cells.split(",") if parse_cell(cell)[0] not in CELLS]
    if unknown:
        parser.exit(1, f"bench-peers: no peer for {', '.join(unknown)}; there are {', '.join(CELLS)}\n")
    tag = "goal  " if options.goals else ""
    if set(OURS) & set(options.systems):
        sys.path.insert(0, str(Path(options.build) / "python"))  # where REEL_PYTHON=ON puts the package; or an installed one
        if not find_spec("reel"):
            parser.exit(1, "bench-peers: module and loss need the package reel. Hint: scripts/test-python builds it\n")
    if "jax" in options.systems and not (find_spec("jax") and find_spec("jaxlib")):
        options.systems.remove("jax")
        print("JAX: not measured: it is not installed. Hint: scripts/bench-peers --install", flush=True)

    versions = software(options)
    print(f"{versions}, {options.precision}", flush=True)
    lines, failures, unmeasured, file = [], {}, 0, None
    for shape in options.shapes.split(","):
        for cell in options.cells.split(","):
            known = set(failures)
            try:
                line, reached, file = measure(program, cell, shape, options, failures)
            except Unmeasured as reason:
                print(f"{tag}{cell} {shape} {options.precision}: not measured: {reason}", flush=True)
                unmeasured += 1
                continue
            lines.append(line)
            print("  ".join(line), flush=True)
            for what in failures.keys() - known:
                print(f"{tag}{what}, {options.precision}: not measured: {failures[what]}", flush=True)
            for goal in reached if options.goals else []:
                print(f"{tag}{cell} {shape} {options.precision}: {goal}", flush=True)
            if options.out:  # after every row: a long run that is stopped has written what it found
                Path(options.out).write_text(markdown(lines, file, options, failures, versions))
    if lines and not options.out:
        print("\n" + markdown(lines, file, options, failures, versions))
    return 1 if unmeasured else 0
