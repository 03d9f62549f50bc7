#!/usr/bin/env python3
"""tests/fuzz/command_lines.py BIN [--lines N] [--seed S] [--programs A,B]: programs with options drawn at random.

The options are those that --help-all of each program names; their values are good ones, limits, huge ones, NaN, nothing, bytes
that are no text, paths that lead nowhere. Whatever they are, a program must end in 60 s of processor time with code 0, 1 or 2, by no
signal and with no report of a sanitizer, and an error must be one line. Prints each line that breaks this; exits with 1 then.
One line in twenty may draw pictures and compile loops: gnuplot and the compiler take ten times as long as all the rest.
"""
import argparse
import collections
import os
import pathlib
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile

PROGRAMS = ("copying adding denoising mnist paths charlm music babi speech table predict mechanism apply to_onnx compare "
            "reproduce sweep explain report").split()
SECONDS = 60  # of processor time: a machine may be busy
MEMORY = 12 << 30

NUMBERS = ["0", "1", "2", "3", "7", "16", "-1", "-0", "0.5", "1e-3", "1e3", "1e38", "1e308", "1e400", "-1e400", "nan", "-nan",
           "inf", "1e", "0x10", "1_000", " 1", "1 ", "+1", "1,2", "2147483647", "2147483648", "4294967296", "1000000000",
           "9007199254740993", "4611686018427387904", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
           "18446744073709551615", "18446744073709551616", "99999999999999999999999"]
TEXTS = ["", " ", "x", "a=b", "a=1,b=2", "gru,srnn", "4,5", "head=1e-3", ",", "=", "--", "-", "--seed", "\u00e9\u65e5", b"\xff\xfe", b"a\xc3",
         "a" * 5000, "a\nb", "a\tb", "\x1b[31m", "'", '"', "`id`", "$(id)", "%s%n", "|touch evil", "; touch evil", "~", "../..",
         "on", "off", "true", "false"]
PATHS = ["/nowhere/x", "/dev/null", "/dev/null/x", "/dev/zero", "/dev/full", "/proc/self/mem", "/", ".", "x" * 300, "out",
         "config.toml", "noise.bin", "run", "table.csv", "table.npy"]
COLUMNS = ["a", "b", "y", "who", "y,a", "a\nb", "'\"|;~", "z"]


def options_of(program):
    """Name -> whether it takes a value, and the words of its line that may be one."""
    text = subprocess.run([program, "--help-all"], capture_output=True, timeout=SECONDS, check=True).stdout.decode()
    found = {}
    for name, rest in re.findall(r"^ +(--[A-Za-z0-9_.-]+)(.*)$", text, re.M):
        found[name] = (bool(re.match(r" [A-Z<]", rest)), re.findall(r"[A-Za-z0-9_.-]+", rest))
    return found


def value(draw, words):
    kind = draw.random()
    if kind < 0.25 and words:
        return draw.choice(words)
    if kind < 0.65:
        return draw.choice(NUMBERS)
    if kind < 0.75:
        return str(draw.randrange(-5, 70))
    return draw.choice(draw.choice([TEXTS, TEXTS, TEXTS, PATHS, PATHS, COLUMNS]))


def write_table(folder):
    """A table, in which a run can be trained."""
    rows = [f"s{r // 8},{r * 37 % 11},{'' if r % 50 == 49 else r % 7},{r % 3},{r}" for r in range(96)]
    pathlib.Path(folder, "table.csv").write_text('who,a,b,y,"a\nb"\n' + "\n".join(rows) + "\n")
    head = "{'descr': '<i2', 'fortran_order': False, 'shape': (40, 2), }".ljust(117) + "\n"
    pathlib.Path(folder, "table.npy").write_bytes(b"\x93NUMPY\x01\0" + bytes([118, 0]) + head.encode() + bytes(range(160)))


PRESETS = """[t]
title = "Two cells"
task = "copying"
options = "--delay 3 --hidden 4 --batch 2 --valid-size 2 --steps 2 --quiet"
metric = "valid_loss"
expect = { below = 3 }
[t.cases]
a = "--lr 1e-3"
[t.models]
srnn = "--cell srnn"
gru = "--cell gru"
"""


def line(draw, options, program):
    out = []
    for name in draw.sample(sorted(options), min(len(options), draw.choice([0, 1, 1, 2, 2, 3, 4, 6]))):
        takes_value, words = options[name]
        if takes_value != (draw.random() < 0.03):  # now and then a flag with a value, or no value where one is expected
            v = value(draw, words)
            out += [name, v] if draw.random() < 0.7 else [name.encode() + b"=" + (v if isinstance(v, bytes) else v.encode())]
        else:
            out.append(name)
    if draw.random() < 0.05:
        out.insert(draw.randrange(len(out) + 1), draw.choice(TEXTS))
    # what is left alone is small, so that a good line ends soon
    small = {"--steps": "2", "--hidden": "4", "--batch": "2", "--valid-size": "2", "--delay": "3", "--length": "4",
             "--threads": "1"}
    if program == "table":
        small |= {"--data": draw.choice(["table.csv", "table.csv", "table.npy"]),
                  "--target": draw.choice(["y", "y", "a", "who", "c1"]), "--window": "5", "--missing": "zero"}
    if program == "mechanism":
        small |= {"--draws": "2", "--planes": "4", "--lengths": "2,3", "--symbols": "2,3"}
    if program == "predict" and "--test" not in out:
        small["--input"] = "table.csv"
    out += [w for name, v in small.items() if name in options and name not in out for w in (name, v)]
    if program in ("predict", "compare", "report") and draw.random() < 0.9:
        out.append("run")
    if program == "reproduce" and draw.random() < 0.5:
        out.append(draw.choice(["own", "own/t", "own/t/a-gru"]))
    if program == "apply" and draw.random() < 0.3:
        out += ["--run", "run"]
    out += [w for w in ("--quiet",) if w in options]
    if "--dry-run" in options and draw.random() < 0.6:
        out.append("--dry-run")
    return out


def limit():
    if not os.environ.get("ASAN_OPTIONS"):  # AddressSanitizer maps far more than it uses
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))


def problem(arguments, folder, environment):
    try:
        result = subprocess.run(arguments, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                                timeout=20 * SECONDS, preexec_fn=limit, check=False)
    except subprocess.TimeoutExpired:
        return "time", f"not done in {20 * SECONDS} s"
    code, errors = result.returncode, result.stderr
    if b"Sanitizer" in errors or b"runtime error:" in errors:
        return code, errors.decode(errors="replace")[:2000]
    if code not in (0, 1, 2):
        return code, f"ended with {code}: {errors[:300]!r}"
    if code != 0 and (errors.count(b"\n") != 1 or not errors.endswith(b"\n")):
        return code, f"code {code}, and not one line: {errors[:300]!r}"
    return code, None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("--lines", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--programs", default=",".join(PROGRAMS))
    given = parser.parse_args()
    programs = given.programs.split(",")
    if given.programs == ",".join(PROGRAMS) and not (given.bin / "to_onnx").exists():
        programs.remove("to_onnx")  # it is built where CMake finds ONNX
    options = {p: options_of(given.bin.resolve() / p) for p in programs}
    codes, bad = collections.Counter(), 0
    no_tools = dict(os.environ, PATH="/nowhere", REEL_COMPILE="off")
    trained = tempfile.TemporaryDirectory()
    write_table(trained.name)
    subprocess.run([given.bin.resolve() / "table", *"--data table.csv --target y --at each --window 6 --missing zero --hidden 4 "
                    "--batch 2 --steps 2 --threads 1 --quiet --out run".split()], cwd=trained.name, env=no_tools, check=True,
                   stdout=subprocess.DEVNULL)
    for number in range(given.lines):
        draw = random.Random(f"{given.seed} {number}")
        program = draw.choice(programs)
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "config.toml").write_text('steps = 2\nlr = 0.01\n[srnn]\nwidth = 4\n')
            pathlib.Path(folder, "noise.bin").write_bytes(draw.randbytes(400))
            shutil.copytree(trained.name, folder, dirs_exist_ok=True)
            pathlib.Path(folder, "presets").mkdir()
            pathlib.Path(folder, "presets/own.toml").write_text(PRESETS)  # those of the papers train for hours
            words = line(draw, options[program], program)
            tools = os.environ if draw.random() < 0.05 else no_tools
            code, what = problem([given.bin.resolve() / program, *words], folder, dict(tools, REEL_DATA=folder, REEL_PRESETS=f"{folder}/presets"))
            if pathlib.Path(folder, "evil").exists():
                what = "a command of a name was run"
            codes[code] += 1
            if what:
                bad += 1
                print(f"line {number}: {program} {' '.join(repr(w) for w in words)}\n    {what}", flush=True)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{given.lines} lines of {len(programs)} programs: codes {dict(sorted(codes.items(), key=str))}, {bad} broke the rules; "
          f"{used.ru_utime + used.ru_stime:.0f} s of processor time")
    sys.exit(1 if bad else 0)


main()
