#include "tasks/harness/model.h"

#include <cmath>

namespace reel {

Model::Model(const ModelShape& shape, const ModelOptions& options, Init init)
    : shape_(shape), input_(shape.vocabulary == 0 ? "numbers" : options.input), dtype_(init.dtype) {
  const CellType& type = cell_type(options.cell);
  const Settings settings(options.cell, type.settings, options.settings);
  if (options.hidden < 1)
    throw OptionError("--hidden", fmt::format("1 or more units are needed, got {}", options.hidden));
  std::int64_t width = shape.inputs;
  if (input_ == "embedding") {
    width = options.embedding > 0 ? options.embedding : type.embedding ? type.embedding(settings) : options.hidden;
    embedding_ = add("embedding", init.normal({shape.vocabulary, width}, 1), "embedding");  // as PyTorch starts
  } else if (input_ == "one-hot") {
    width = shape.vocabulary;
  }
  for (std::int64_t l = 0; l < options.layers; ++l) {
    cells_.push_back(type.make(l == 0 ? width : options.hidden, options.hidden, settings, init));
    const std::string prefix = options.layers == 1 ? "cell." : fmt::format("cell{}.", l + 1);
    for (const Parameter& p : cells_.back()->parameters())
      add(prefix + p.name, p.value, p.group.empty() ? "cell" : p.group);
  }
  const double k = 1 / std::sqrt(static_cast<double>(options.hidden));  // PyTorch Linear's start
  V_ = add("head.V", init.uniform({shape.outputs, options.hidden}, k), "head");
  c_ = add("head.c", init.uniform({shape.outputs}, k), "head");
}

Tensor Model::add(const std::string& name, const Tensor& value, const std::string& group) {
  parameters_.push_back({name, value, group});
  return value;
}

Tensor Model::operator()(const Tensor& x) const {
  Tensor h = input_ == "embedding" ? embedding(x, embedding_)
             : input_ == "one-hot" ? one_hot(x, shape_.vocabulary, dtype_)
                                   : cast(x, dtype_);
  Tensor last;
  for (const auto& cell : cells_) {
    Sequence out = scan(*cell, cell->initial(h.dim(1)), h);
    h = out.hs;
    last = out.last[0];
  }
  return linear(shape_.every_step ? h : last, V_, c_);
}

std::int64_t Model::count() const {
  std::int64_t n = 0;
  for (const Parameter& p : parameters_) n += p.value.numel();
  return n;
}

std::string Model::table() const {
  std::size_t width = 9;
  for (const Parameter& p : parameters_) width = std::max(width, p.name.size());
  std::string text = fmt::format("{:<{}}  {:<14} {:>10}  {}\n", "parameter", width, "shape", "count", "group");
  for (const Parameter& p : parameters_)
    text += fmt::format("{:<{}}  {:<14} {:>10}  {}\n", p.name, width, p.value.shape().str(), p.value.numel(), p.group);
  return text + fmt::format("{:<{}}  {:<14} {:>10}\n", "total", width, "", count());
}

}  // namespace reel
