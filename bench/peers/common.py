"""What the peers in PyTorch share: a model around a recurrent module, a training step, and how it is timed."""

import time
from statistics import median

import torch
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss

from rows import CLOCKS, GREYS, TASKS, worth_repeating


def set_precision(precision):
    """How a GPU multiplies f32: as Reel's --precision has it. In bf16 the forward pass is under autocast besides, for
    cuDNN has no other way to it; then what Reel keeps in f32 is bf16 here."""
    fast = precision != "f32"
    torch.set_float32_matmul_precision({"f32": "highest", "tf32": "high", "bf16": "medium"}[precision])
    torch.backends.cuda.matmul.allow_tf32 = fast
    torch.backends.cudnn.allow_tf32 = fast


def uniform(*shape, bound):
    return nn.Parameter(torch.empty(shape).uniform_(-bound, bound))


class Recurrent(nn.Module):
    """A cell over time, with what does not depend on the state taken out of the loop by hand.

    `names` says how its parameters are called in Reel: a string where it is one, a list where it is a stack of some.
    """
    names = {}

    def __init__(self, n):
        super().__init__()
        self.n = n
        self.outputs = n

    def derive(self):
        """What is made of the parameters alone: once a sequence."""
        return ()

    def project(self, x):
        """What is made of the inputs alone, [T, B, i] -> [T, B, .]: for all times at once."""
        return x

    def initial(self, x):
        """The state before the first step, a tuple."""
        return (x.new_zeros(x.shape[1], self.n),)

    def step(self, u, state, derived):
        """One time: its part of project(x), the state -> the next state."""
        raise NotImplementedError

    def output(self, h):
        """What the head sees of the state's first tensor, at one time or all times."""
        return h

    def forward(self, x, every_step):
        """[T, B, i] -> outputs [T, B, .] of all times, or of the last one [B, .]."""
        derived, state, hs = self.derive(), self.initial(x), []
        for u in self.project(x).unbind(0):
            state = self.step(u, state, derived)
            if every_step:
                hs.append(state[0])
        return self.output(torch.stack(hs) if every_step else state[0])

    def looked_up(self, embedding, symbols, every_step):
        """The same for symbols [T, B], from their embedding."""
        return self(embedding(symbols), every_step)

    def updated(self):
        """Called after each update of the parameters."""

    def set_threads(self, count):
        """The number of threads where PyTorch's own is not what counts."""

    def reel(self, tensors):
        """Tensors by the names of this module's parameters -> by Reel's names."""
        out = {}
        for own, names in self.names.items():
            if isinstance(names, str):
                out[names] = tensors[own]
            else:
                out |= dict(zip(names, tensors[own].chunk(len(names))))
        return out


class Model(nn.Module):
    def __init__(self, make_cell, row, width=None):
        super().__init__()
        inputs, outputs = TASKS[row.task]
        symbols = row.task == "copying"
        self.every_step = row.task in ("copying", "frames")
        self.embedding = nn.Embedding(inputs, width or row.n) if symbols else None
        self.cell = make_cell((width or row.n) if symbols else inputs or row.n, row.n)
        self.head = nn.Linear(self.cell.outputs, outputs)

    def forward(self, x):
        if self.embedding:
            return self.head(self.cell.looked_up(self.embedding, x, self.every_step))
        return self.head(self.cell(x, self.every_step))


class Training:
    """A model, a fixed batch, and what a training loop does with them."""

    def __init__(self, make_cell, row, width=None, compiled=False, device="cpu", precision="f32"):
        torch.manual_seed(1)
        torch.set_flush_denormal(True)  # as Reel's programs and JAX do
        self.row, self.device, self.half = row, torch.device(device), precision == "bf16"
        with self.device:  # all that is made here lies there
            self.model = Model(make_cell, row, width)
            self.x, self.y = self.batch()
        if compiled:
            self.model.cell.step = torch.compile(self.model.cell.step)
        # a small rate: the numbers stay as they are, however long it runs
        self.optimizer = torch.optim.RMSprop(self.model.parameters(), lr=1e-5, alpha=0.9, eps=1e-8)

    def batch(self):
        T, B = self.row.T, self.row.B
        if self.row.task == "copying":
            return torch.randint(10, (T, B)), torch.randint(10, (T, B))
        if self.row.task == "adding":
            return torch.rand(T, B, 2), 2 * torch.rand(B, 1)
        if self.row.task == "frames":
            return torch.rand(T, B, self.row.n), torch.randint(10, (T, B))
        return torch.randint(GREYS, (T, B, 1)) / (GREYS - 1.0), torch.randint(10, (B,))

    def loss(self):
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.half):
            out = self.model(self.x)
        out = out.float() if self.half else out
        if self.row.task == "adding":
            return mse_loss(out, self.y)
        return cross_entropy(out.flatten(0, -2), self.y.flatten())

    def step(self):
        self.optimizer.zero_grad()
        loss = self.loss()
        loss.backward()
        self.optimizer.step()
        self.model.cell.updated()
        return loss.item()

    def wait(self):
        """Until all that was asked of the device is done."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)


class Stopwatch:
    """Times training steps for each of some numbers of threads, which take turns."""

    def __init__(self, training, threads, clock="wall"):
        self.training, self.threads, self.clock = training, list(threads), CLOCKS[clock]
        for _ in range(1 if training.device.type == "cpu" else 3):
            for count in self.threads:
                self.timed(count)  # warm up
        self.rounds = {count: [] for count in self.threads}

    def timed(self, count):
        torch.set_num_threads(count)
        self.training.model.cell.set_threads(count)
        self.training.wait()
        start = self.clock()
        self.training.step()
        self.training.wait()
        return 1e3 * (self.clock() - start)

    def run(self, budget, least=3):
        """One round: so many seconds, so many steps at least. Its medians, in milliseconds, go to `rounds`."""
        times, start = {count: [] for count in self.threads}, time.perf_counter()
        while len(times[self.threads[0]]) < least or time.perf_counter() - start < budget:
            for count in self.threads:
                times[count].append(self.timed(count))
        for count in self.threads:
            self.rounds[count].append(median(times[count]))
        self.threads = worth_repeating(self.rounds)

    def close(self):
        """There is nothing to end."""
