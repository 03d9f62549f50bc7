// The variants of modReLU found in the sources, by name.
#pragma once
#include "cells/cell.h"

namespace reel {

/// The variants of modReLU that cells offer as a setting.
inline std::vector<std::string> modrelu_names() {
  return {"plain", "urnn", "full_urnn", "srnn_urnn", "eunn", "eunn_complex", "goru"};
}

/// The constants of a variant. "plain" is the definition (ENRNN, GORU, scoRNN, expRNN). The others are those of
/// amarshah/complex_RNN, stwisdom/urnn, SRNN's port of uRNN, jingli9111/EUNN-tensorflow (real and complex), and
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
