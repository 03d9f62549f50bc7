"""reel.torch.Cell as a peer: Reel's cell within PyTorch's model, loss, backward pass and optimiser."""

import reel
import reel.torch
import torch

from common import Recurrent


class ReelModule(Recurrent):
    """A cell of Reel, by its name there."""

    def __init__(self, name, i, n, **settings):
        super().__init__(n)
        self.inner = reel.torch.Cell(name, i, n, dtype=torch.get_default_dtype(), **settings)
        self.outputs = self.inner.cell.output_size

    def forward(self, x, every_step):
        hs, _ = self.inner(x)
        return hs if every_step else hs[-1]

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
