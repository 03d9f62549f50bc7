// Cells and models of runs as whole ONNX graphs.
#pragma once
#include <optional>

#include "tasks/data/table_spec.h"
#include "tasks/to_onnx/graph.h"
#include "tasks/training/trained_model.h"

namespace reel {

/// One cell: x [time, batch, inputs] -> y [time, batch, outputs]. `lengths`: the graph has an input of this name, i64
/// [batch]. Throws Error for an op that ONNX does not have.
OnnxGraph onnx_of_cell(const std::string& name, const Cell& cell, bool lengths);

/// The whole model of a run, from its inputs to its outputs. With a spec it reads the columns of the table as they are,
/// f64, and answers as `predict` does: in the targets' units, or with probabilities.
OnnxGraph onnx_of_model(const TrainedModel& trained, const std::optional<TableSpec>& spec, bool lengths);

}  // namespace reel
