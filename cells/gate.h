// What gated cells share: the affine part of a gate and its layer normalisation.
#pragma once
#include "cells/cell.h"

namespace reel {

/// Layer normalisation of one sum, or nothing.
struct Norm {
  Tensor g, beta;
  Tensor operator()(const Tensor& a) const { return g.defined() ? layer_norm(a, g, beta) : a; }
};

}  // namespace reel
