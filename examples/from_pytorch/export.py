"""Writes the weights of a recurrent module of PyTorch, and a sequence with its outputs, for main.cpp to read.

python3 export.py WEIGHTS.safetensors SEQUENCE.safetensors, with the packages torch and safetensors. Put your trained
module in the place of the one made here: nn.LSTM, nn.GRU or nn.RNN, with any number of layers.
"""

import sys

import torch
from safetensors.torch import save_file

module = torch.nn.LSTM(input_size=3, hidden_size=5, num_layers=2)
weights, sequence = sys.argv[1:]
save_file(module.state_dict(), weights)
with torch.no_grad():
    x = torch.randn(7, 2, 3)  # [T, B, I]
    y, _ = module(x)
save_file({"x": x, "y": y}, sequence)
