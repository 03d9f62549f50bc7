"""Golden values of the optimisers: 12 steps on 37 numbers, in NumPy and, where PyTorch has them, in torch.optim; and of
schedules of the learning rate."""

import warnings

import numpy as np
import torch

from common import assert_same, put, write

STEPS, SIZE, SPLIT = 12, 37, 20
LR = 0.01
CLIP = 0.5
DECAY = 0.03
SCHEDULE_STEPS, WARMUP, FLOOR = 60, 12, 0.1


def sgd(momentum=0.0):
    """v = mu v + g; p -= lr v."""
    def step(p, g, s, t):
        s["v"] = momentum * s.get("v", 0.0) + g
        return p - LR * s["v"]
    return step


def rmsprop(start, eps, eps_inside, decay=0.9):
    """s = rho s + (1 - rho) g^2; p -= lr g / (sqrt(s) + eps), or lr g / sqrt(s + eps). Reference sheet 0.2."""
    def step(p, g, s, t):
        s["s"] = decay * s.get("s", start) + (1 - decay) * g * g
        return p - LR * g / (np.sqrt(s["s"] + eps) if eps_inside else np.sqrt(s["s"]) + eps)
    return step


def adam(beta1=0.9, beta2=0.999, eps=1e-8, amsgrad=False):
    """Kingma and Ba, algorithm 1. amsgrad as PyTorch has it: the running maximum of v, then the bias correction."""
    def step(p, g, s, t):
        s["m"] = beta1 * s.get("m", 0.0) + (1 - beta1) * g
        s["v"] = beta2 * s.get("v", 0.0) + (1 - beta2) * g * g
        s["max"] = np.maximum(s.get("max", 0.0), s["v"]) if amsgrad else s["v"]
        mean, square = s["m"] / (1 - beta1 ** t), s["max"] / (1 - beta2 ** t)
        return p - LR * mean / (np.sqrt(square) + eps)
    return step


def adagrad(eps=1e-10):
    """s = s + g^2; p -= lr g / (sqrt(s) + eps), PyTorch's default eps."""
    def step(p, g, s, t):
        s["s"] = s.get("s", 0.0) + g * g
        return p - LR * g / (np.sqrt(s["s"]) + eps)
    return step


def l2(rule):
    """Weight decay as a part of the gradient."""
    return lambda p, g, s, t: rule(p, g + DECAY * p, s, t)


def decoupled(rule):
    """Loshchilov and Hutter, algorithm 2, where the rate multiplies the decay as PyTorch has it."""
    return lambda p, g, s, t: rule(p * (1 - LR * DECAY), g, s, t)


# name: (NumPy step, torch optimiser or None)
OPTIMIZERS = {
    "sgd": (sgd(), lambda p: torch.optim.SGD(p, lr=LR)),
    "sgd_momentum": (sgd(0.9), lambda p: torch.optim.SGD(p, lr=LR, momentum=0.9)),
    "rmsprop_torch": (rmsprop(0.0, 1e-8, False), lambda p: torch.optim.RMSprop(p, lr=LR, alpha=0.9, eps=1e-8)),
    "rmsprop_tf": (rmsprop(1.0, 1e-10, True), None),
    "rmsprop_theano": (rmsprop(1e-3, 0.0, False), None),
    "adam": (adam(), lambda p: torch.optim.Adam(p, lr=LR)),
    "adam_b0": (adam(beta1=0.0), lambda p: torch.optim.Adam(p, lr=LR, betas=(0.0, 0.999))),
    "amsgrad": (adam(amsgrad=True), lambda p: torch.optim.Adam(p, lr=LR, amsgrad=True)),
    "adagrad": (adagrad(), lambda p: torch.optim.Adagrad(p, lr=LR)),
    "sgd_l2": (l2(sgd(0.9)), lambda p: torch.optim.SGD(p, lr=LR, momentum=0.9, weight_decay=DECAY)),
    "rmsprop_l2": (l2(rmsprop(0.0, 1e-8, False)),
                   lambda p: torch.optim.RMSprop(p, lr=LR, alpha=0.9, eps=1e-8, weight_decay=DECAY)),
    "adam_l2": (l2(adam()), lambda p: torch.optim.Adam(p, lr=LR, weight_decay=DECAY)),
    "amsgrad_l2": (l2(adam(amsgrad=True)), lambda p: torch.optim.Adam(p, lr=LR, amsgrad=True, weight_decay=DECAY)),
    "adagrad_l2": (l2(adagrad()), lambda p: torch.optim.Adagrad(p, lr=LR, weight_decay=DECAY)),
    "adamw": (decoupled(adam()), lambda p: torch.optim.AdamW(p, lr=LR, weight_decay=DECAY)),
}


def run_numpy(step, p, gradients):
    state, path = {}, []
    for t, g in enumerate(gradients, start=1):
        p = step(p, g, state, t)
        path.append(p)
    return np.stack(path)


def run_torch(make, p, gradients):
    parameter = torch.tensor(p, requires_grad=True)
    optimizer, path = make([parameter]), []
    for g in gradients:
        parameter.grad = torch.tensor(g)
        optimizer.step()
        path.append(parameter.detach().numpy().copy())
    return np.stack(path)


def clip(tensors, g):
    """The global norm over two tensors clipped to CLIP: exactly, and PyTorch's way with 1e-6 added to the norm."""
    parts = [g[:SPLIT], g[SPLIT:]]
    norm = np.sqrt(sum(np.sum(part ** 2) for part in parts))
    assert norm > CLIP
    parameters = [torch.zeros(len(part), dtype=torch.float64, requires_grad=True) for part in parts]
    for parameter, part in zip(parameters, parts):
        parameter.grad = torch.tensor(part)
    torch_norm = torch.nn.utils.clip_grad_norm_(parameters, CLIP)
    torch_g = np.concatenate([parameter.grad.numpy() for parameter in parameters])
    assert_same("clip.norm", norm, torch_norm.numpy())
    assert_same("clip.g_torch", g * (CLIP / (norm + 1e-6)), torch_g)
    put(tensors, "clip.norm", norm)
    put(tensors, "clip.g", g * (CLIP / norm))
    put(tensors, "clip.g_torch", torch_g)


def torch_factors(make):
    """What PyTorch's scheduler multiplies a rate of 1 by at each step."""
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    scheduler, factors = make(optimizer), []
    for _ in range(SCHEDULE_STEPS):
        factors.append(scheduler.get_last_lr()[0])
        optimizer.step()
        scheduler.step()
    return np.array(factors)


def schedules(tensors):
    """The closed forms beside torch.optim.lr_scheduler."""
    lr = torch.optim.lr_scheduler
    t = np.arange(SCHEDULE_STEPS)
    warm = np.minimum(1, (t + 1) / WARMUP)

    def falling(first, shape):
        done = np.clip((t - first) / (SCHEDULE_STEPS - first), 0, 1)
        return FLOOR + (1 - FLOOR) * ((1 + np.cos(np.pi * done)) / 2 if shape == "cosine" else 1 - done)

    def cosine(o, steps):
        return lr.CosineAnnealingLR(o, steps, eta_min=FLOOR)

    def linear(o, steps):
        return lr.LinearLR(o, 1.0, FLOOR, total_iters=steps)

    def warmed(o, then):
        first = lr.LinearLR(o, 1 / WARMUP, total_iters=WARMUP - 1)
        return lr.SequentialLR(o, [first, then(o, SCHEDULE_STEPS - WARMUP)], [WARMUP])

    for name, numbers, make in (
        ("cosine", falling(0, "cosine"), lambda o: cosine(o, SCHEDULE_STEPS)),
        ("linear", falling(0, "linear"), lambda o: linear(o, SCHEDULE_STEPS)),
        ("constant_warm", warm, lambda o: lr.LinearLR(o, 1 / WARMUP, total_iters=WARMUP - 1)),
        ("cosine_warm", warm * falling(WARMUP, "cosine"), lambda o: warmed(o, cosine)),
        ("linear_warm", warm * falling(WARMUP, "linear"), lambda o: warmed(o, linear)),
        ("step_warm", warm * 0.5 ** (t // 20), lambda o: lr.ChainedScheduler(
            [lr.LinearLR(o, 1 / WARMUP, total_iters=WARMUP - 1), lr.StepLR(o, 20, 0.5)])),
    ):
        with warnings.catch_warnings():  # SequentialLR calls its own step() in a way that it warns of
            warnings.simplefilter("ignore")
            assert_same("schedule." + name, numbers, torch_factors(make))
        put(tensors, "schedule." + name, numbers)


def generate(folder):
    rng = np.random.default_rng(20)
    p0 = rng.standard_normal(SIZE)
    # Sizes from 1e-7 to 1, so that the place and size of eps show; one gradient that starts with zeros.
    g = rng.standard_normal((STEPS, SIZE)) * 10.0 ** rng.uniform(-7, 0.5, SIZE)
    g[:3, 5] = 0.0
    tensors = {}
    put(tensors, "p0", p0)
    put(tensors, "g", g)
    for name, (step, torch_form) in OPTIMIZERS.items():
        path = run_numpy(step, p0, g)
        if torch_form:
            assert_same(name, path, run_torch(torch_form, p0, g))
        put(tensors, name + ".p", path)
    clip(tensors, g[0])
    schedules(tensors)
    return [write(folder, "optimizers", tensors)]
