"""Gated cells beyond the first ones: LSTM with peepholes and layer norm (sheet 4, 5), GRU with layer norm or modReLU
(6, 13), JANET (7)."""

import numpy as np
import torch
from torch.nn.functional import linear

from activations import layer_norm, modrelu, sigmoid, torch_layer_norm, torch_modrelu
from recurrent import Cell, gate_shapes, generate_cells, recurrence, torch_recurrence, within

INPUT, N = 3, 6
THRESHOLD = within(-1.0, 0.2)  # modReLU's b: some units off


def norm_shapes(names):
    return {k + s: (N,) for s in names for k in ("g", "beta")}


def norm_draws(names):
    return {"g" + s: within(0.5, 1.5) for s in names}


# ---------------------------------------------------------------- LSTM

def lstm(peephole="none", norm="none"):
    """peephole: none; diagonal: i, f see p * c, o sees p_o * c'; output: o sees V_o c'; full: all four see V c."""
    def normed(p, a, gate):
        return layer_norm(a, p["g" + gate], p["beta" + gate]) if norm == "layer" else a

    def step(p, state, x, kinks):
        h, c = state

        def gate(k, peep=0.0):
            return normed(p, p[f"W_{k}"] @ x + p[f"R_{k}"] @ h + p[f"b_{k}"] + peep, f"_{k}")
        if peephole == "full":
            i, f, o = (sigmoid(gate(k, p[f"V_{k}"] @ c)) for k in "ifo")
            g = np.tanh(gate("g", p["V_g"] @ c))
        elif peephole == "diagonal":
            i, f, g = sigmoid(gate("i", p["p_i"] * c)), sigmoid(gate("f", p["p_f"] * c)), np.tanh(gate("g"))
        else:
            i, f, g = sigmoid(gate("i")), sigmoid(gate("f")), np.tanh(gate("g"))
        c = f * c + i * g
        if peephole == "diagonal":
            o = sigmoid(gate("o", p["p_o"] * c))
        elif peephole == "output":
            o = sigmoid(gate("o", p["V_o"] @ c))
        elif peephole == "none":
            o = sigmoid(gate("o"))
        c = normed(p, c, "_c")  # carried as well
        return o * np.tanh(c), c

    def torch_step(p, states, x):
        h, c = states
        a = linear(torch.cat([x, h], -1), p["weights"], p["biases"])  # [B, 4 n]: i, f, g, o
        a = dict(zip("ifgo", a.chunk(4, dim=-1)))
        peeps = {}
        if peephole == "diagonal":
            peeps = {k: p["p_" + k] * c for k in "if"}
        elif peephole == "full":
            peeps = {k: linear(c, p["V_" + k]) for k in "ifgo"}

        def ready(k):
            s = a[k] + peeps.get(k, 0)
            return torch_layer_norm(s, p["g_" + k], p["beta_" + k]) if norm == "layer" else s
        c = torch.sigmoid(ready("f")) * c + torch.sigmoid(ready("i")) * torch.tanh(ready("g"))
        if peephole == "diagonal":
            peeps["o"] = p["p_o"] * c
        elif peephole == "output":
            peeps["o"] = linear(c, p["V_o"])
        o = torch.sigmoid(ready("o"))
        if norm == "layer":
            c = torch_layer_norm(c, p["g_c"], p["beta_c"])
        return o * torch.tanh(c), c

    def stacked(p):
        return {"weights": torch.cat([torch.cat([p["W_" + k], p["R_" + k]], dim=1) for k in "ifgo"]),
                "biases": torch.cat([p["b_" + k] for k in "ifgo"])}

    shapes = gate_shapes(["_i", "_f", "_g", "_o"], "W", "R", INPUT, N)
    shapes |= {"diagonal": {"p_" + k: (N,) for k in "ifo"}, "output": {"V_o": (N, N)},
               "full": {"V_" + k: (N, N) for k in "ifgo"}}.get(peephole, {})
    norms = ["_i", "_f", "_g", "_o", "_c"] if norm == "layer" else []
    name = "lstm" + (f"_{peephole}" if peephole != "none" else "") + ("_norm" if norms else "")
    return Cell(name, "lstm", {"biases": 1, "peephole": peephole, "norm": norm}, shapes | norm_shapes(norms),
                {"h": N, "c": N}, recurrence(step), torch_recurrence(torch_step, derive=stacked), N,
                draws=norm_draws(norms))


# ---------------------------------------------------------------- GRU

def gru(reset, activation="tanh", norm="none"):
    """Layer norm on each of the three pre-activations; modReLU (form A): b_c is its threshold, nothing is added."""
    def step(p, state, x, kinks):
        (h,) = state

        def normed(a, gate):
            return layer_norm(a, p["g" + gate], p["beta" + gate]) if norm == "layer" else a
        r = sigmoid(normed(p["U_r"] @ x + p["W_r"] @ h + p["b_r"], "_r"))
        z = sigmoid(normed(p["U_z"] @ x + p["W_z"] @ h + p["b_z"], "_z"))
        a = p["U_c"] @ x + (r * (p["W_c"] @ h) if reset == "after" else p["W_c"] @ (r * h))
        c = (modrelu(a, p["b_c"], "goru", kinks) if activation == "modrelu"
             else np.tanh(normed(a + p["b_c"], "_c")))
        return (z * h + (1 - z) * c,)

    def torch_step(p, states, x):
        (h,) = states

        def normed(a, gate):
            return torch_layer_norm(a, p["g" + gate], p["beta" + gate]) if norm == "layer" else a
        gates = linear(x, torch.cat([p["U_r"], p["U_z"]])) + linear(h, torch.cat([p["W_r"], p["W_z"]]))
        r, z = gates.chunk(2, dim=-1)
        r, z = torch.sigmoid(normed(r + p["b_r"], "_r")), torch.sigmoid(normed(z + p["b_z"], "_z"))
        a = linear(x, p["U_c"]) + (r * linear(h, p["W_c"]) if reset == "after" else linear(r * h, p["W_c"]))
        c = (torch_modrelu(a, p["b_c"], "goru") if activation == "modrelu"
             else torch.tanh(normed(a + p["b_c"], "_c")))
        return (torch.lerp(c, h, z),)

    norms = ["_r", "_z", "_c"] if norm == "layer" else []
    name = f"gru_{reset}" + ("_modrelu" if activation == "modrelu" else "") + ("_norm" if norms else "")
    shapes = gate_shapes(["_r", "_z", "_c"], "U", "W", INPUT, N) | norm_shapes(norms)
    draws = norm_draws(norms) | ({"b_c": THRESHOLD} if activation == "modrelu" else {})
    return Cell(name, "gru", {"biases": 1, "reset": reset, "activation": activation, "norm": norm}, shapes, {"h": N},
                recurrence(step), torch_recurrence(torch_step), N, draws=draws)


# ---------------------------------------------------------------- JANET

def janet(beta, norm="none"):
    """h' = sigmoid(s) h + (1 - sigmoid(s - beta)) tanh(.), s the forget pre-activation; beta = 0 in NRU, 1 in JANET."""
    def step(p, state, x, kinks):
        (h,) = state
        s = p["W_f"] @ h + p["U_f"] @ x + p["b_f"]
        a = p["W_c"] @ h + p["U_c"] @ x + p["b_c"]
        c = np.tanh(layer_norm(a, p["g_c"], p["beta_c"]) if norm == "layer" else a)
        return (sigmoid(s) * h + (1 - sigmoid(s - beta)) * c,)

    def torch_step(p, states, x):
        (h,) = states
        s = torch.addmm(torch.addmm(p["b_f"], x, p["U_f"].T), h, p["W_f"].T)
        a = torch.addmm(torch.addmm(p["b_c"], x, p["U_c"].T), h, p["W_c"].T)
        if norm == "layer":
            a = torch_layer_norm(a, p["g_c"], p["beta_c"])
        return (torch.sigmoid(s) * h + torch.sigmoid(beta - s) * torch.tanh(a),)

    norms = ["_c"] if norm == "layer" else []
    return Cell(f"janet_beta{beta}" + ("_norm" if norms else ""), "janet", {"beta": beta, "norm": norm},
                gate_shapes(["_f", "_c"], "U", "W", INPUT, N) | norm_shapes(norms), {"h": N}, recurrence(step),
                torch_recurrence(torch_step), N, draws=norm_draws(norms))


CELLS = [
    lstm("diagonal"), lstm("output"), lstm("full"), lstm(norm="layer"), lstm("diagonal", "layer"),
    gru("after", norm="layer"), gru("before", norm="layer"), gru("after", "modrelu"),
    janet(0), janet(1), janet(0, "layer"),
]


def generate(folder):
    return generate_cells(folder, CELLS)
