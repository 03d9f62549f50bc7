// Shared by the gated cells: optional layer normalisation of a gate.
#pragma once
#include "cells/cell.h"

namespace reel {

/// Layer normalisation of a pre-activation; without g it is the identity.
struct Norm {
  Tensor g, beta;
  Tensor operator()(const Tensor& a) const { return g.defined() ? layer_norm(a, g, beta) : a; }
};

}  // namespace reel
