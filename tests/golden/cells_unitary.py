"""Unitary cells: uRNN (sheet 10), full-capacity uRNN (11), EURNN (12)."""

import numpy as np
import torch

from activations import modrelu, torch_modrelu
from common import assert_same, put, write
from recurrent import Cell, complex_within, generate_cells, recurrence, torch_recurrence, within
from rotations import ANGLE, angle_shapes, pairs, rotate, torch_rotation_matrix

INPUT, N = 3, 6
THRESHOLD = within(-1.2, 0.2)  # modReLU's b: some units off
PERMUTATION = np.array([2, 5, 0, 3, 1, 4], dtype=np.int32)  # (Pi z)_j = z_{pi(j)}


def both_parts(p, state, kinks):
    """The read-out sees [re z; im z]."""
    return np.concatenate([state[0].real, state[0].imag])


def torch_both_parts(p, states):
    return torch.cat([states[0].real, states[0].imag], dim=-1)


# ---------------------------------------------------------------- uRNN

def urnn(variant):
    """z' = modReLU(W z + V x; b), W = D_3 R_2 F^-1 D_2 Pi R_1 F D_1."""
    F = np.exp(-2j * np.pi * np.outer(np.arange(N), np.arange(N)) / N) / np.sqrt(N)

    def step(p, state, x, kinks):
        def D(k, z): return np.exp(1j * p[f"omega_{k}"]) * z
        def R(k, z):
            v = p[f"v_{k}"]
            return z - 2 * v * (v.conj() @ z) / np.sum(np.abs(v) ** 2)
        z = R(1, F @ D(1, state[0]))
        z = np.array([z[j] for j in PERMUTATION])
        z = D(3, R(2, F.conj() @ D(2, z)))
        return (modrelu(z + p["V"] @ x, p["b"], variant, kinks),)

    def torch_unitary(p):
        """W^T: the rows of the identity sent through, each a vector of its own."""
        def R(k, z):
            v = p[f"v_{k}"]
            return z - 2 * (z @ v.conj())[:, None] * v / torch.linalg.vecdot(v, v).real
        fft, ifft = (lambda z: torch.fft.fft(z, norm="ortho")), (lambda z: torch.fft.ifft(z, norm="ortho"))
        D = [torch.exp(1j * p[f"omega_{k}"]) for k in (1, 2, 3)]
        z = R(1, fft(torch.diag(D[0])))[:, torch.tensor(PERMUTATION).long()]
        return {"W^T": D[2] * R(2, ifft(D[1] * z))}

    def torch_step(p, states, x):
        return (torch_modrelu(states[0] @ p["W^T"] + x.to(p["V"].dtype) @ p["V"].T, p["b"], variant),)

    shapes = {"omega_1": (N,), "omega_2": (N,), "omega_3": (N,), "v_1": (N,), "v_2": (N,), "V": (N, INPUT), "b": (N,)}
    draws = {f"omega_{k}": ANGLE for k in (1, 2, 3)} | {f"v_{k}": complex_within(-1, 1) for k in (1, 2)}
    return Cell(f"urnn_{variant}", "urnn", {"modrelu": variant}, shapes, {"z": N}, recurrence(step, both_parts),
                torch_recurrence(torch_step, torch_both_parts, torch_unitary), N,
                draws=draws | {"V": complex_within(-0.6, 0.6), "b": THRESHOLD}, complex_state=True,
                fixed={"perm": PERMUTATION})


# ---------------------------------------------------------------- full-capacity uRNN

def unitary(rng, shape):
    q, r = np.linalg.qr(rng.standard_normal(shape) + 1j * rng.standard_normal(shape))
    return q * (np.diag(r) / np.abs(np.diag(r)))


def full_urnn(variant):
    """z' = modReLU(W z + V x; b); W's gradient is the plain one, in all of C^{n x n}."""
    def step(p, state, x, kinks):
        return (modrelu(p["W"] @ state[0] + p["V"] @ x, p["b"], variant, kinks),)

    def torch_step(p, states, x):  # as the papers' code: one real matrix product on [re; im]
        W = torch.cat([torch.cat([p["W"].real, -p["W"].imag], 1), torch.cat([p["W"].imag, p["W"].real], 1)])
        a = torch_both_parts(p, states) @ W.T + x @ torch.cat([p["V"].real, p["V"].imag]).T
        return (torch_modrelu(torch.complex(a[:, :N], a[:, N:]), p["b"], variant),)

    return Cell(f"full_urnn_{variant}", "full_urnn", {"modrelu": variant},
                {"W": (N, N), "V": (N, INPUT), "b": (N,)}, {"z": N}, recurrence(step, both_parts),
                torch_recurrence(torch_step, torch_both_parts), N, complex_state=True,
                draws={"W": unitary, "V": complex_within(-0.6, 0.6), "b": THRESHOLD})


def golden_update():
    """The update that keeps W unitary: A = G W* - W G*, W' = (I + eta/2 A)^-1 (I - eta/2 A) W; it descends."""
    rng = np.random.default_rng(11)
    W, target = unitary(rng, (N, N)), unitary(rng, (N, N))
    eta, identity = 0.1, np.eye(N)
    G = W - target  # the gradient of 1/2 |W - target|^2
    A = G @ W.conj().T - W @ G.conj().T
    after = np.linalg.inv(identity + eta / 2 * A) @ (identity - eta / 2 * A) @ W
    A, W_torch = torch.tensor(A), torch.tensor(W)
    half = eta / 2 * A @ W_torch
    other = torch.linalg.solve(torch.eye(N) + eta / 2 * A, W_torch - half)
    assert_same("full_urnn_update", after, other.numpy())
    assert_same("full_urnn_update is unitary", after @ after.conj().T, identity)
    assert np.linalg.norm(after - target) < np.linalg.norm(W - target)
    tensors = {}
    for name, a in (("W", W), ("G", G), ("eta", np.float64(eta)), ("W_next", after)):
        put(tensors, name, a)
    return tensors


# ---------------------------------------------------------------- EURNN

def eurnn(style, n, capacity=0, is_complex=False):
    """h' = modReLU(W h + U x; b), W a product of rotations; complex: the read-out sees Re h."""
    variant = "eunn_complex" if is_complex else "eunn"

    def step(p, state, x, kinks):
        return (modrelu(rotate(p, state[0], style, capacity) + p["U"] @ x, p["b"], variant, kinks),)

    def torch_step(p, states, x):
        return (torch_modrelu(states[0] @ p["W"].T + x.to(p["U"].dtype) @ p["U"].T, p["b"], variant),)

    angles = angle_shapes(style, n, capacity, is_complex)
    assert sum(len(layer) for _, _, layer in pairs(style, n, capacity)) == sum(
        np.prod(shape) for name, shape in angles.items() if name.startswith("theta"))
    field = "complex" if is_complex else "real"
    settings = {"style": style, "field": field} | ({"capacity": capacity} if capacity else {})
    draws = dict.fromkeys(angles, ANGLE) | {"b": THRESHOLD if is_complex else within(-1.0, 0.2)}
    return Cell(f"eurnn_{style}_{field}", "eurnn", settings, angles | {"U": (n, INPUT), "b": (n,)}, {"h": n},
                recurrence(step, lambda p, state, kinks: state[0].real),
                torch_recurrence(torch_step, lambda p, states: states[0].real if is_complex else states[0],
                                 lambda p: {"W": torch_rotation_matrix(p, style, n, capacity)}), n,
                draws=draws | ({"U": complex_within(-0.6, 0.6)} if is_complex else {}), complex_state=is_complex)


CELLS = [
    urnn("plain"), urnn("urnn"), urnn("full_urnn"), urnn("srnn_urnn"), full_urnn("plain"), full_urnn("full_urnn"),
    eurnn("fft", 8), eurnn("fft", 8, is_complex=True),
    eurnn("tunable", 6, 4), eurnn("tunable", 6, 4, is_complex=True),
]


def generate(folder):
    return generate_cells(folder, CELLS) + [write(folder, "full_urnn_update", golden_update())]
