"""counts.tsv: the parameter counts that the reference sheet quotes, each computed again here from the cell's formula.

total = free numbers of the cell + read-out (outputs y * o + o) + embedding (V * width) + extra. A complex number counts
as two, the unitary W of full_urnn as n^2; entries of a triangle that is not read do not count. h_0 counts where the
setting initial=trained is given. extra: what only the official code has (dummy or unused tensors, full triangles).
"""

from math import log2, sqrt


def lin(a, b):
    return a * b + b


def rnn(i, n, biases=2, norm="none", **_):
    return n * n + n * i + n * biases + (2 * n if norm == "layer" else 0)


def lstm(i, n, biases=2, peephole="none", initial="zero", **_):
    peep = {"none": 0, "diagonal": 3 * n, "output": n * n, "full": 4 * n * n}[peephole]
    return 4 * (i * n + n * n + biases * n) + peep + (2 * n if initial == "trained" else 0)


def gru(i, n, biases=2, **_):
    return 3 * (i * n + n * n + biases * n)


def janet(i, n, **_):
    return 2 * (i * n + n * n + n)


def sru(i, n, p, q, rates=5):
    return lin(rates * p, q) + lin(i + q, p) + lin(rates * p, n)


def nru(i, n, memory, heads):
    side = round(sqrt(memory * heads))
    return 2 * lin(memory + n, 2 * side) + 2 * lin(memory + n, heads) + lin(memory + n + i, n)


def urnn(i, n, initial="zero", **_):
    return 2 * n * i + n + 4 * n + 3 * n + (2 * n if initial == "trained" else 0)


def full_urnn(i, n, initial="zero", **_):
    return n * n + 2 * n * i + n + (2 * n if initial == "trained" else 0)


def angles(n, style, capacity=0):
    return n // 2 * round(log2(n)) if style == "fft" else capacity // 2 * (n // 2) + capacity // 2 * (n // 2 - 1)


def eurnn(i, n, style, field, capacity=0):
    if field == "complex":
        return 2 * angles(n, style, capacity) + n + 2 * i * n + n
    return angles(n, style, capacity) + i * n + n


def goru(i, n, style="fft", capacity=0):
    return 3 * i * n + 2 * n * n + 3 * n + angles(n, style, capacity)


def ornn(i, n, reflections, initial="zero"):
    return i * n + n * reflections - reflections * (reflections - 1) // 2 + n + (n if initial == "trained" else 0)


def scornn(i, n):
    return n * (n - 1) // 2 + n * i + n


exprnn = scornn


def nnrnn(i, n):
    return n * (n - 1) // 2 + n * (n - 1) // 2 - n // 2 + n + n + n * i


def spectral_rnn(i, n, reflections):
    return 2 * (n * reflections - reflections * (reflections - 1) // 2) + n + n * i + n


def enrnn(i, n, short, coupled, inputs="trained"):
    q = n - short
    coupling = q * short if coupled == "on" else 0
    return (n * i if inputs == "trained" else 0) + q * (q - 1) // 2 + short ** 2 + coupling + n


def srnn(i, n, width, layers=1, stack=1):
    one = lambda d: lin(d, width) + (layers - 1) * lin(width, width) + lin(width, n) + lin(d, n)
    return one(i) + (stack - 1) * one(n)


def r_transformer(i, n, cell, levels, width=0):
    inner = {"rnn": rnn, "gru": gru, "lstm": lstm}[cell](n, n) if cell != "srnn" else srnn(n, n, width)
    return lin(i, n) + levels * (inner + 4 * lin(n, n) + lin(n, 4 * n) + lin(4 * n, n) + 3 * 2 * n)


OUTPUTS = {"urnn": 2, "full_urnn": 2}  # values of y a unit; 1 for the others
UNUSED_LEVELS = 3 * lin(160, 160) + 2 * 160 + lin(160, 640) + lin(640, 160)  # R-Transformer: registered, never used

# section, cell, settings, i, n, o, embedding (V or 0; its width is i), extra, the total that the reference sheet quotes
COUNTS = [
    (1, rnn, {}, 2, 128, 1, 0, 0, 17025),
    (2, rnn, {"biases": 1, "norm": "layer"}, 10, 143, 9, 0, 0, 23604),
    (2, rnn, {"biases": 1, "norm": "layer"}, 1, 400, 10, 0, 0, 165610),
    (4, lstm, {}, 2, 128, 1, 0, 0, 67713),
    (4, lstm, {"biases": 1}, 2, 60, 1, 0, 0, 15181),
    (4, lstm, {"biases": 1}, 10, 68, 9, 0, 0, 22109),
    (4, lstm, {"biases": 1}, 10, 192, 9, 0, 0, 157641),
    (4, lstm, {"biases": 1}, 129, 158, 129, 0, 0, 202527),
    (4, lstm, {"biases": 1}, 129, 468, 129, 0, 0, 1179957),
    (4, lstm, {"biases": 1}, 350, 350, 50, 50, 0, 1016450),
    (4, lstm, {"biases": 1}, 1030, 1030, 50, 50, 0, 8594370),
    (4, lstm, {"biases": 1, "peephole": "diagonal"}, 10, 70, 9, 0, 0, 23529),
    (4, lstm, {"biases": 1, "peephole": "diagonal"}, 1, 200, 10, 0, 0, 164210),
    (4, lstm, {"biases": 1}, 10, 90, 9, 0, 0, 37179),
    (4, lstm, {"biases": 1}, 50, 184, 50, 0, 0, 182210),
    (4, lstm, {"biases": 1}, 129, 50, 129, 0, 0, 42579),
    (6, gru, {}, 2, 128, 1, 0, 0, 50817),
    (6, gru, {"biases": 1, "reset": "before"}, 10, 82, 9, 0, 0, 23625),
    (6, gru, {"biases": 1, "reset": "before"}, 1, 232, 10, 0, 0, 165194),
    (6, gru, {"biases": 1}, 10, 100, 9, 0, 0, 34209),
    (6, gru, {"biases": 1}, 50, 216, 50, 0, 0, 183866),
    (6, gru, {"biases": 1}, 129, 60, 129, 0, 0, 42069),
    (7, janet, {}, 10, 101, 9, 0, 0, 23542),
    (7, janet, {}, 1, 283, 10, 0, 0, 164150),
    (8, sru, {"p": 55, "q": 16}, 10, 60, 9, 0, 0, 23010),
    (8, sru, {"p": 155, "q": 50}, 1, 150, 10, 0, 0, 164770),
    (9, nru, {"memory": 64, "heads": 4}, 10, 80, 9, 0, 0, 23569),
    (9, nru, {"memory": 256, "heads": 4}, 1, 212, 10, 0, 0, 165554),
    (9, nru, {"memory": 256, "heads": 4}, 2, 128, 1, 0, 0, 102025),
    (9, nru, {"memory": 256, "heads": 4}, 129, 128, 129, 0, 0, 134793),
    (9, nru, {"memory": 256, "heads": 4}, 129, 256, 129, 0, 0, 267273),
    (9, nru, {"memory": 256, "heads": 4}, 129, 512, 129, 0, 0, 630537),
    (9, nru, {"memory": 256, "heads": 4}, 129, 1024, 129, 0, 0, 1750281),
    (9, nru, {"memory": 576, "heads": 4}, 200, 1000, 50, 50, 0, 2152450),
    (10, urnn, {"initial": "trained"}, 1, 512, 10, 0, 0, 16394),
    (10, urnn, {"initial": "trained"}, 10, 470, 9, 0, 0, 22569),
    (10, urnn, {"initial": "trained"}, 10, 512, 9, 0, 0, 24585),
    (10, urnn, {"initial": "trained"}, 2, 512, 1, 0, 0, 8193),
    (10, urnn, {"modrelu": "srnn_urnn"}, 2, 128, 1, 0, 2 * 2 * 128, 2305),
    (11, full_urnn, {"initial": "trained"}, 1, 116, 10, 0, 0, 16366),
    (11, full_urnn, {"initial": "trained"}, 10, 128, 9, 0, 0, 21641),
    (11, full_urnn, {"initial": "trained"}, 2, 120, 1, 0, 0, 15481),
    (12, eurnn, {"style": "fft", "field": "real"}, 1, 1024, 10, 0, 0, 17418),
    (12, eurnn, {"style": "fft", "field": "real"}, 10, 512, 9, 0, 0, 12553),
    (12, eurnn, {"style": "fft", "field": "complex"}, 10, 512, 9, 0, 0, 20489),
    (12, eurnn, {"style": "fft", "field": "real"}, 129, 128, 129, 0, 0, 33729),
    (12, eurnn, {"style": "fft", "field": "complex"}, 129, 128, 129, 0, 0, 50817),
    (12, eurnn, {"style": "fft", "field": "real"}, 50, 1024, 50, 0, 0, 108594),
    (12, eurnn, {"style": "fft", "field": "complex"}, 50, 1024, 50, 0, 0, 165938),
    (13, goru, {}, 10, 128, 9, 0, 0, 38601),
    (13, goru, {}, 50, 256, 50, 0, 0, 184114),
    (13, goru, {}, 129, 64, 129, 0, 0, 41729),
    (14, ornn, {"reflections": 16, "initial": "trained"}, 2, 128, 1, 0, 0, 2569),
    (14, ornn, {"reflections": 510, "initial": "trained"}, 49, 512, 49, 0, 0, 182574),
    (15, scornn, {}, 2, 170, 1, 0, 0, 15046),
    (15, scornn, {}, 10, 190, 9, 0, 0, 21764),
    (15, scornn, {}, 129, 425, 129, 0, 0, 200304),
    (16, exprnn, {}, 10, 190, 9, 0, 0, 21764),
    (17, nnrnn, {}, 200, 1024, 50, 50, -1024, 1314114),
    (17, nnrnn, {}, 200, 1024, 50, 50, 0, 1315138),
    (18, spectral_rnn, {"reflections": 60}, 2, 60, 1, 0, 60 * 59, 7501),
    (19, enrnn, {"short": 64, "coupled": "on"}, 2, 160, 1, 0, 0, 15441),
    (19, enrnn, {"short": 20, "coupled": "on"}, 10, 192, 9, 0, 0, 22395),
    (19, enrnn, {"short": 94, "coupled": "off"}, 129, 468, 129, 0, 0, 199928),
    (19, enrnn, {"short": 720, "coupled": "on", "inputs": "identity"}, 1030, 1030, 50, 50, 0, 893575),
    (20, srnn, {"width": 32}, 2, 128, 1, 0, 0, 4833),
    (20, srnn, {"width": 8}, 2, 128, 1, 0, 0, 1689),
    (20, srnn, {"width": 8}, 8, 128, 10, 10, 0, 3746),
    (20, srnn, {"width": 32, "layers": 3}, 1, 1024, 10, 0, 0, 48266),
    (20, srnn, {"width": 32, "layers": 3}, 129, 128, 129, 0, 0, 43777),
    (20, srnn, {"width": 32, "layers": 3}, 129, 256, 129, 0, 0, 81153),
    (20, srnn, {"width": 32, "layers": 3}, 129, 512, 129, 0, 0, 155905),
    (20, srnn, {"width": 32, "layers": 3}, 129, 1024, 129, 0, 0, 305409),
    (20, srnn, {"width": 32, "layers": 3}, 129, 2048, 129, 0, 0, 604417),
    (20, srnn, {"width": 128, "stack": 3}, 88, 2048, 88, 0, 0, 10083800),
    (21, r_transformer, {"cell": "rnn", "levels": 3}, 88, 160, 88, 0, UNUSED_LEVELS, 1394968),
    (21, r_transformer, {"cell": "gru", "levels": 3}, 88, 160, 88, 0, UNUSED_LEVELS, 1704088),
    (21, r_transformer, {"cell": "lstm", "levels": 3}, 88, 160, 88, 0, UNUSED_LEVELS, 1858648),
    (21, r_transformer, {"cell": "srnn", "levels": 3, "width": 160}, 88, 160, 88, 0, UNUSED_LEVELS, 1472248),
]


def generate(folder):
    lines = ["section\tcell\tsettings\tinput\thidden\toutput\tembedding\textra\ttotal"]
    for section, cell, settings, i, n, o, embedding, extra, total in COUNTS:
        name = cell.__name__
        count = cell(i, n, **settings) + lin(OUTPUTS.get(name, 1) * n, o) + embedding * i + extra
        assert count == total, f"{name} {settings} i={i} n={n} o={o}: {count}, not the quoted {total}"
        words = " ".join(f"{k}={v}" for k, v in settings.items()) or "-"
        lines.append(f"{section}\t{name}\t{words}\t{i}\t{n}\t{o}\t{embedding}\t{extra}\t{total}")
    path = folder / "counts.tsv"
    path.write_text("\n".join(lines) + "\n")
    return [path]
