"""reel.torch as a peer: Reel's cell within PyTorch's model, loss, backward pass and optimiser; and model and loss as one
function of Reel within PyTorch's backward pass and optimiser."""

import reel
import reel.torch
import torch

from common import Recurrent, Training


class ReelModule(Recurrent):
    """A cell of Reel, by its name there."""

    def __init__(self, name, i, n, **settings):
        super().__init__(n)
        self.inner = reel.torch.Cell(name, i, n, dtype=torch.get_default_dtype(), **settings)
        self.outputs = self.inner.cell.output_size

    def forward(self, x, every_step):
        return self.inner(x, every_step=every_step)[0]

    def looked_up(self, embedding, symbols, every_step):
        return self.inner(symbols, table=embedding.weight, every_step=every_step)[0]

    def updated(self):
        self.inner.updated()

    def set_threads(self, count):
        reel.set_threads(count)

    def take(self, peer):
        """The parameters of a peer in PyTorch, a Recurrent."""
        own = dict(self.inner.named_parameters())
        with torch.no_grad():
            for name, value in peer.reel(dict(peer.named_parameters())).items():
                own[name.replace(".", "_")].copy_(value)


class ReelLoss(Training):
    """The training of a ReelModule whose embedding, head and loss are Reel's, too."""

    def loss(self):
        model, cell = self.model, self.model.cell.inner
        classes = self.row.task != "adding"

        def loss(x, y, table, parameters, W, b):
            hs, _ = cell.cell.run(x, parameters=parameters, table=table, every_step=model.every_step)
            out = reel.linear(hs, W, b)
            return reel.cross_entropy(out, y) if classes else reel.mse(out, y)

        x, table = (self.x.int(), model.embedding.weight) if model.embedding else (self.x, None)
        y = self.y.int() if classes else self.y
        return reel.torch.function(loss)(x, y, table, cell.by_name(), model.head.weight, model.head.bias)
