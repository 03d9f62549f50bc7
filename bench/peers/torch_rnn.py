"""PyTorch's own recurrent modules: nn.RNN, nn.LSTM, nn.GRU."""

from torch import nn

from common import Recurrent


class OwnModule(Recurrent):
    """One of PyTorch's modules; `suffixes` are Reel's gates in PyTorch's order."""
    module, input_weight, state_weight, suffixes = None, "U", "W", [""]

    def __init__(self, i, n):
        super().__init__(n)
        self.inner = self.module(i, n)
        theirs = {"weight_ih": self.input_weight, "weight_hh": self.state_weight, "bias_ih": "b", "bias_hh": "b2"}
        self.names = {f"inner.{own}_l0": [name + s for s in self.suffixes] for own, name in theirs.items()}

    def forward(self, x, every_step):
        hs, _ = self.inner(x)
        return hs if every_step else hs[-1]


class Rnn(OwnModule):
    module = nn.RNN


class Lstm(OwnModule):
    module, input_weight, state_weight, suffixes = nn.LSTM, "W", "R", ["_i", "_f", "_g", "_o"]


class Gru(OwnModule):
    module, suffixes = nn.GRU, ["_r", "_z", "_c"]
