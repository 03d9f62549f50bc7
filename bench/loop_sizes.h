// Loops of the sizes that networks have: what bench_loops times, and tests look at.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "cells/cell.h"

namespace reel::bench {

struct LoopSize {
  std::string cell;
  std::int64_t batch, hidden;
  std::map<std::string, std::string> settings = {};
  std::string name() const {
    std::string out = cell;
    for (const auto& [key, value] : settings) out += fmt::format("/{}={}", key, value);
    return fmt::format("{} ({}, {})", out, batch, hidden);
  }
};

inline std::vector<LoopSize> loop_sizes() {
  std::vector<LoopSize> out;
  for (const char* cell : {"lstm", "gru", "rnn"}) {
    for (const auto& [batch, hidden] :
         std::vector<std::pair<std::int64_t, std::int64_t>>{{20, 128}, {64, 256}, {16, 768}, {128, 768}})
      out.push_back({.cell = cell, .batch = batch, .hidden = hidden});
  }
  out.push_back({.cell = "srnn", .batch = 100, .hidden = 1024});
  for (const char* cell : {"nru", "urnn"}) out.push_back({.cell = cell, .batch = 20, .hidden = 128});
  return out;
}

/// The mean square of a cell's states [T, B, H] for inputs at random, and its gradients by the parameters.
class LoopStep {
 public:
  LoopStep(const LoopSize& size, std::int64_t time, Backend& device) : batch_(size.batch) {
    Init init(3, DType::f32, device);
    const CellType& type = cell_type(size.cell);
    cell_ = type.make(3, size.hidden, Settings(size.cell, type.settings, size.settings), init);
    for (const Parameter& p : cell_->parameters()) {
      if (p.trained) wrt_.push_back(p.value);
    }
    xs_ = uniform({time, size.batch, 3}, -1, 1, 5, 1, DType::f32, device);
  }
  Tensors operator()() const {
    Tape tape;
    const Tensor loss = mean(square(abs(scan(*cell_, cell_->initial(batch_), xs_).hs)));
    Tensors out{loss};
    for (const Tensor& g : grad({loss}, wrt_)) out.push_back(g);
    return out;
  }

 private:
  std::int64_t batch_;
  std::unique_ptr<Cell> cell_;
  Tensors wrt_;
  Tensor xs_;
};

}  // namespace reel::bench
