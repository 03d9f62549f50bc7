// The parameters of one cell in a safetensors file, as Reel's own programs or those of others wrote it.
#pragma once
#include <optional>
#include <utility>

#include "cells/cell.h"
#include "tasks/training/safetensors.h"

namespace reel {

/// The tensors of one cell. A checkpoint of a run has them as "cell.NAME", or "cellL.NAME" in layer L of several, among
/// others; then these are returned by their own names. Throws Error if a run's file has no such layer.
TensorFile tensors_of_cell(const std::string& path, TensorFile file, std::int64_t layer);

/// A tensor of a file in the wanted dtype; undefined if the file has none of this name. A complex one may also be
/// stored as a real tensor with a last axis of 2, or as NAME.re and NAME.im. Throws Error naming it if its shape or its
/// kind of dtype does not fit.
Tensor find_tensor(const std::string& path, const TensorFile& file, const std::string& name, const Shape& shape,
                   DType dtype);

/// Sets the cell's parameters; returns what a user should know, a sentence each: fixed tensors that the file lacks and
/// that keep the cell's values, numbers that are not finite. Throws Error for missing, left-over or unfitting tensors.
std::vector<std::string> set_parameters(const Cell& cell, const std::string& path, const TensorFile& file);

/// The widths of a cell's input and state.
struct CellSize {
  std::int64_t input = 0, hidden = 0;
};

/// The widths at which all trained parameters of such a cell have the shapes of the file; those that are given are
/// kept. Throws Error if there are none.
CellSize size_of_weights(const CellType& type, const Settings& settings, const std::string& path,
                         const TensorFile& file, std::optional<std::int64_t> input, std::optional<std::int64_t> hidden);

}  // namespace reel
