// modReLU as the sources have it, by name.
#pragma once
#include "cells/cell.h"

namespace reel {

/// The variants of modReLU that cells offer as a setting.
inline std::vector<std::string> modrelu_names() {
  return {"plain", "urnn", "full_urnn", "srnn_urnn", "eunn", "eunn_complex", "goru"};
}

/// The small numbers of a variant: the definition (ENRNN, GORU, scoRNN, expRNN), those of amarshah/complex_RNN, of
/// stwisdom/urnn, of SRNN's port of uRNN, of jingli9111/EUNN-tensorflow for real and complex numbers, and of
/// jingli9111/GORU-tensorflow.
inline ModReluOptions modrelu_options(const std::string& name) {
  if (name == "urnn") return {.divide = 1e-5};
  if (name == "full_urnn") return {.inside = 1e-5, .divide = 1e-5};
  if (name == "srnn_urnn") return {.divide = 1e-6};
  if (name == "eunn") return {.shift = 0.01};
  if (name == "eunn_complex") return {.shift = 0.01, .divide = 0.01};
  if (name == "goru") return {.shift = 0.001};
  return {};
}

}  // namespace reel
