#include "tasks/training/model.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "cells/formula.h"

namespace reel {

Model::Model(const ModelShape& shape, const ModelOptions& options, Init init)
    : shape_(shape),
      input_(shape.vocabulary == 0 ? "numbers" : options.input),
      dropout_(options.dropout),
      checkpoint_every_(options.checkpoint_every),
      dtype_(init.dtype) {
  const CellType& type = cell_type(options.cell);
  const Settings settings(options.cell, type.settings, options.settings);
  std::int64_t width = shape.inputs;
  if (input_ == "embedding") {
    width = options.embedding > 0 ? options.embedding : type.embedding ? type.embedding(settings) : options.hidden;
    table_ = add({"embedding", init.normal({shape.vocabulary, width}, 1), "embedding"});  // as in PyTorch
  } else if (input_ == "one-hot") {
    width = shape.vocabulary;
    table_ = eye(width, dtype_, *init.backend);
  }
  for (std::int64_t l = 0; l < options.layers; ++l) {
    const Cell& cell = add_cell(options.layers == 1 ? "cell." : fmt::format("cell{}.", l + 1), width, options, init);
    width = cell.outputs();
  }
  std::tie(V_, c_) = add_head("head", shape.outputs, width, init);
}

const Cell& Model::add_cell(const std::string& prefix, std::int64_t width, const ModelOptions& options, Init& init) {
  const CellType& type = cell_type(options.cell);
  if (options.hidden < 1)
    throw SettingError("hidden", fmt::format("1 or more units are needed, got {}", options.hidden));
  const Settings settings(options.cell, type.settings, options.settings);
  const double layers = static_cast<double>(options.layers),
               numbers = layers * trained_numbers(type, width, options.hidden, options.settings);
  if (std::isfinite(numbers))  // otherwise the cell rejects these settings
    init.backend->require_memory("model", fmt::format("{:.3g} parameters and their gradients", numbers),
                                 2 * numbers * static_cast<double>(size_of(init.dtype)),
                                 layers > 1 ? "fewer --layers or a smaller --hidden" : "a smaller --hidden");
  cells_.push_back(type.make(width, options.hidden, settings, init));
  for (Parameter p : cells_.back()->parameters()) {
    p.name = prefix + p.name;
    if (p.group.empty()) p.group = "cell";
    add(std::move(p));
  }
  return *cells_.back();
}

std::pair<Tensor, Tensor> Model::add_head(const std::string& name, std::int64_t outputs, std::int64_t width,
                                          Init& init) {
  const double k = 1 / std::sqrt(static_cast<double>(width));  // PyTorch Linear's start
  const Tensor V = add({name + ".V", init.uniform({outputs, width}, k), "head"});
  return {V, add({name + ".c", init.uniform({outputs}, k), "head"})};
}

Tensor Model::add(Parameter parameter) {
  parameters_.push_back(std::move(parameter));
  return parameters_.back().value;
}

std::vector<Parameter> Model::trained() const {
  std::vector<Parameter> out;
  std::copy_if(parameters_.begin(), parameters_.end(), std::back_inserter(out),
               [](const Parameter& p) { return p.trained; });
  return out;
}

Tensor Model::penalty() const {
  Tensor total;
  for (const auto& cell : cells_) {
    if (const Tensor p = cell->penalty(); p.defined()) total = total.defined() ? total + p : p;
  }
  return total;
}

void Model::updated() {
  for (const auto& cell : cells_) cell->updated();
}

Tensor Model::operator()(const Tensor& x, const std::optional<StepContext>& training, Tensors* carry) const {
  CellInput in = shape_.vocabulary > 0 ? CellInput(x, table_) : CellInput(cast(x, dtype_));
  Tensor h, last;
  Tensors left;  // the last states of all layers, in order
  for (std::size_t l = 0; l < cells_.size(); ++l) {
    const auto& cell = cells_[l];
    if (l > 0 && dropout_ > 0 && training) {
      constexpr std::uint64_t first_stream = std::uint64_t{4} << 60;  // far from those of data and of initial values
      const std::size_t L = cells_.size();                            // one stream per layer of each step
      in =
          training->number.defined()
              ? dropout(h, dropout_, training->seed, first_stream + l, training->number * static_cast<double>(L))
              : dropout(h, dropout_, training->seed, first_stream + static_cast<std::uint64_t>(training->step) * L + l);
    }
    Tensors state = cell->initial(x.dim(1));
    if (carry && !carry->empty() && cell->recurrent())
      std::copy_n(carry->begin() + std::ssize(left), std::ssize(state), state.begin());
    Sequence out = scan(*cell, state, in, {.checkpoint_every = checkpoint_every_});
    if (cell->recurrent()) left.insert(left.end(), out.last.begin(), out.last.end());
    in = h = out.hs;
    last = cell->recurrent() ? cell->output(out.last) : at(out.hs, out.hs.dim(0) - 1);
  }
  if (carry) *carry = left;
  return linear(shape_.every_step ? h : last, V_, c_);
}

std::vector<std::pair<const Cell*, Tensor>> Model::layers(const Tensor& x) const {
  std::vector<std::pair<const Cell*, Tensor>> out;
  Tensor in = table_.defined() ? embedding(x, table_) : cast(x, dtype_);
  for (const auto& cell : cells_) {
    out.emplace_back(cell.get(), in);
    if (out.size() < cells_.size()) in = scan(*cell, cell->initial(x.dim(1)), in).hs;
  }
  return out;
}

std::int64_t Model::count() const {
  std::int64_t n = 0;
  for (const Parameter& p : parameters_) n += p.count();
  return n;
}

std::string Model::table() const {
  std::size_t width = 9;
  for (const Parameter& p : parameters_) width = std::max(width, p.name.size());
  std::string text = fmt::format("{:<{}}  {:<14} {:>10}  {}\n", "parameter", width, "shape", "count", "group");
  for (const Parameter& p : parameters_)
    text += fmt::format("{:<{}}  {:<14} {:>10}  {}\n", p.name, width, p.value.shape().str(), p.value.numel(),
                        p.trained ? p.group : "(fixed)");
  return text + fmt::format("{:<{}}  {:<14} {:>10}\n", "total", width, "", count());
}

}  // namespace reel
