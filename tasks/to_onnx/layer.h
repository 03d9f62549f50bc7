// A cell over time as an ONNX Scan.
#pragma once
#include "cells/cell.h"
#include "tasks/to_onnx/onnx_function.h"

namespace reel {

/// Sequences in an ONNX graph.
struct OnnxSequences {
  std::string xs;          // [time, batch, width]
  std::string batch;       // i64 [1]
  std::string valid = {};  // bool [time, batch, 1], false in padding; empty: there is none
};

struct OnnxLayer {
  const Cell& cell;
  std::string name = {};  // before the names of its states: "layer2."
  double zoneout = 0;
  bool reverse = false;
  bool has_states = true;  // first states are optional inputs of the graph, and last ones are outputs
};

/// Declares the last states of a layer as outputs of the graph: last.NAME, complex ones as last.NAME.re and .im.
void declare_last_states(OnnxGraph& graph, const OnnxLayer& layer);

/// Writes the layer and its optional inputs first.NAME [batch, width]; returns its outputs [time, batch, outputs].
std::string write_layer(OnnxGraph& graph, const OnnxLayer& layer, const OnnxSequences& in, const ConstantNames& names);

/// Sequences of which those in a batch may differ in length, as `lengths` i64 [batch] says.
std::string valid_steps(OnnxGraph& graph, const std::string& x, const std::string& lengths);

}  // namespace reel
