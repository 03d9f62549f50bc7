#include "tasks/training/model.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "cells/formula.h"
#include "tasks/training/device.h"
#include "tasks/training/option_checks.h"

namespace reel {

ModelOptions with_all_settings(ModelOptions options) {
  const auto whole = [](const std::string& cell, auto& settings) {
    settings = Settings(cell, cell_type(cell).settings, settings).values();
  };
  if (options.stack.empty()) whole(options.cell, options.settings);
  for (LayerOptions& layer : options.stack) whole(layer.cell, layer.settings);
  return options;
}

const std::vector<std::string>& ModelOptions::head_inits() {
  static const std::vector<std::string> all{"linear", "glorot-normal", "glorot-uniform", "eunn"};
  return all;
}

std::vector<LayerOptions> layers_of(const ModelOptions& o) {
  return o.stack.empty() ? std::vector(static_cast<std::size_t>(o.layers), LayerOptions{o.cell, o.hidden, o.settings})
                         : o.stack;
}

namespace {
void check(const ModelShape& shape, const ModelOptions& options, DType dtype) {
  if (shape.vocabulary < 0 || shape.inputs < 0 || (shape.vocabulary == 0 && shape.inputs == 0))
    throw SettingError("inputs", fmt::format("inputs (numbers at each step) or vocabulary (different symbols) is 1 or "
                                             "more, got inputs = {}, vocabulary = {}",
                                             shape.inputs, shape.vocabulary));
  require_least("outputs", shape.outputs, 1);
  require_least("layers", options.stack.empty() ? options.layers : std::ssize(options.stack), 1);
  require_least("embedding", options.embedding, 0);
  require_least("checkpoint_every", options.checkpoint_every, 0);
  for (const auto& [name, share] : {std::pair("dropout", options.dropout), std::pair("zoneout", options.zoneout)})
    if (!(share >= 0 && share < 1))
      throw SettingError(name, fmt::format("a share from 0 to below 1 is needed, got {}", share));
  require_one_of("input", options.input, {"embedding", "one-hot"});
  if (!is_floating(dtype)) throw SettingError("dtype", fmt::format("f32 or f64, got {}", name_of(dtype)));
}
}  // namespace

Model::Model(const ModelShape& shape, const ModelOptions& options, Init init)
    : shape_(shape),
      input_(shape.vocabulary == 0 ? "numbers" : options.input),
      bidirectional_(options.bidirectional),
      residual_(options.residual),
      variational_(options.variational),
      dropout_(options.dropout),
      zoneout_(options.zoneout),
      checkpoint_every_(options.checkpoint_every),
      dtype_(init.dtype) {
  check(shape, options, dtype_);
  const std::vector<LayerOptions> layers = layers_of(options);
  std::int64_t width = shape.inputs;
  if (input_ == "embedding") {
    const LayerOptions& first = layers.front();
    const CellType& type = cell_type(first.cell);
    const Settings settings(first.cell, type.settings, first.settings);
    width = options.embedding > 0 ? options.embedding : type.embedding ? type.embedding(settings) : first.hidden;
    table_ = add({"embedding", init.normal({shape.vocabulary, width}, 1), "embedding"});  // as in PyTorch
  } else if (input_ == "one-hot") {
    width = shape.vocabulary;
    table_ = eye(width, dtype_, *init.backend);
  } else if (shape.levels.defined()) {
    table_ = on(cast(shape.levels, dtype_), *init.backend);
  }
  for (std::size_t l = 0; l < layers.size(); ++l) {
    if (l > 0 && options.layer_norm) {
      const std::string name = fmt::format("norm{}", l + 1);
      const Tensor gain = add({name + ".gain", init.constant({width}, 1), "norm"});
      norms_.emplace_back(gain, add({name + ".bias", init.constant({width}, 0), "norm"}));
    }
    const std::string prefix = layers.size() == 1 ? "cell." : fmt::format("cell{}.", l + 1);
    std::int64_t outputs = add_cell(prefix, width, layers[l], init, layers.size()).outputs();
    if (bidirectional_) outputs += add_cell(prefix + "backward.", width, layers[l], init, layers.size()).outputs();
    if ((bidirectional_ || zoneout_ > 0) && !cells_.back()->recurrent())
      throw SettingError(
          bidirectional_ ? "bidirectional" : "zoneout",
          fmt::format("the cell {} has no states{}", layers[l].cell, bidirectional_ ? " and reads forward only" : ""));
    if (residual_ && l > 0 && outputs != width)
      throw SettingError("residual", fmt::format("layers of one width are needed: layer {} has {} inputs and {} "
                                                 "outputs",
                                                 l + 1, width, outputs));
    width = outputs;
  }
  std::tie(V_, c_) = add_head("head", shape.outputs, width, options.head_init, init);
}

const Cell& Model::add_cell(const std::string& prefix, std::int64_t width, const LayerOptions& options, Init& init,
                            std::size_t layers) {
  const CellType& type = cell_type(options.cell);
  if (options.hidden < 1)
    throw SettingError("hidden", fmt::format("1 or more units are needed, got {}", options.hidden));
  const Settings settings(options.cell, type.settings, options.settings);
  const double numbers = static_cast<double>(layers) * trained_numbers(type, width, options.hidden, options.settings);
  if (std::isfinite(numbers))  // otherwise the cell rejects these settings
    init.backend->require_memory("model", fmt::format("{:.3g} parameters and their gradients", numbers),
                                 2 * numbers * static_cast<double>(size_of(init.dtype)),
                                 layers > 1 ? "fewer layers or a smaller hidden size" : "a smaller hidden size");
  cells_.push_back(type.make(width, options.hidden, settings, init));
  for (Parameter p : cells_.back()->parameters()) {
    p.name = prefix + p.name;
    if (p.group.empty()) p.group = "cell";
    add(std::move(p));
  }
  return *cells_.back();
}

std::pair<Tensor, Tensor> Model::add_head(const std::string& name, std::int64_t outputs, std::int64_t width,
                                          const std::string& start, Init& init) {
  const Shape shape{outputs, width};
  Tensor V, c;
  if (start == "linear") {
    const double k = 1 / std::sqrt(static_cast<double>(width));
    V = init.uniform(shape, k);
    c = init.uniform({outputs}, k);
  } else if (start == "glorot-normal") {
    V = init.glorot_normal(shape);
    c = init.constant({outputs}, 0);
  } else if (start == "glorot-uniform") {
    V = init.glorot_uniform(shape);
    c = init.constant({outputs}, 0);
  } else if (start == "eunn") {  // as its code, which counts the inputs of the cell where Glorot has those of the head
    V = init.uniform(shape, std::sqrt(6 / static_cast<double>(cells_.front()->input + outputs)));
    c = init.constant({outputs}, 0.01);
  } else {
    throw SettingError("head-init", fmt::format("one of {} is needed, got \"{}\"",
                                                fmt::join(ModelOptions::head_inits(), ", "), start));
  }
  V = add({name + ".V", V, "head"});
  return {V, add({name + ".c", c, "head"})};
}

Tensor Model::add(Parameter parameter) {
  append(parameters_, std::move(parameter));
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
    if (const Tensor p = penalty_of(*cell); p.defined()) total = total.defined() ? total + p : p;
  }
  return total;
}

void Model::updated() {
  for (const auto& cell : cells_) cell->updated();
}

namespace {
/// The last valid rows [B, n] of hs [T, B, n].
Tensor last_of(const Tensor& hs, const Tensor& lengths) {
  const std::int64_t T = hs.dim(0), B = hs.dim(1);
  if (!lengths.defined()) return at(hs, T - 1);
  const Tensor rows = (maximum(lengths, 1.0) - 1.0) * static_cast<double>(B) + arange(B, DType::i32, hs.backend());
  return embedding(rows, reshape(hs, {T * B, -1}));
}
}  // namespace

bool Model::recurrent() const {
  return !bidirectional_ && std::all_of(cells_.begin(), cells_.end(), [](const auto& c) { return c->recurrent(); });
}

Tensors Model::initial(std::int64_t batch) const {
  Tensors all;
  if (bidirectional_) return all;
  for (const auto& cell : cells_) {
    const Tensors state = cell->initial(batch);
    all.insert(all.end(), state.begin(), state.end());
  }
  return all;
}

Tensor Model::dropped(const Tensor& h, std::size_t layer, const StepContext& at) const {
  constexpr std::uint64_t first_stream = std::uint64_t{4} << 60;   // far from those of data and of initial values
  const std::size_t L = cells_.size() / (bidirectional_ ? 2 : 1);  // one stream per layer of each step
  const Tensor x = variational_ ? Tensor::zeros({1, h.dim(1), h.dim(2)}, h.dtype(), h.backend()) + 1.0 : h;
  const Tensor kept =
      at.number.defined()
          ? dropout(x, dropout_, at.seed, first_stream + layer, at.number * static_cast<double>(L))
          : dropout(x, dropout_, at.seed, first_stream + static_cast<std::uint64_t>(at.step) * L + layer);
  return variational_ ? h * kept : kept;
}

Tensors Model::zoned(std::size_t c, std::int64_t T, std::int64_t batch, const StepContext& at) const {
  constexpr std::uint64_t first_stream = std::uint64_t{7} << 60;
  const auto states_below = [&](std::size_t end) {
    std::size_t n = 0;
    for (std::size_t i = 0; i < end; ++i) n += cells_[i]->states().size();
    return n;
  };
  const std::size_t all = states_below(cells_.size());  // streams of each training step
  std::uint64_t stream = first_stream + states_below(c);
  Tensors out;
  for (const State& s : cells_[c]->states()) {
    const Tensor ones = Tensor::full({T, batch, s.width}, 1, dtype_, device());
    const Tensor moves = at.number.defined()
                             ? dropout(ones, zoneout_, at.seed, stream, at.number * static_cast<double>(all))
                             : dropout(ones, zoneout_, at.seed, stream + static_cast<std::uint64_t>(at.step) * all);
    out.push_back(equal(moves, 0.0));
    ++stream;
  }
  return out;
}

std::function<Tensor(const Tensor&, double)> Model::inner_dropout(std::size_t c, const StepContext& at) const {
  constexpr std::uint64_t first_stream = std::uint64_t{8} << 60, most = 16;  // drops of a cell
  const std::uint64_t all = cells_.size() * most;                            // streams of each training step
  return [=, stream = first_stream + c * most](const Tensor& x, double share) mutable {
    const std::uint64_t own = stream++;
    return at.number.defined() ? dropout(x, share, at.seed, own, at.number * static_cast<double>(all))
                               : dropout(x, share, at.seed, own + static_cast<std::uint64_t>(at.step) * all);
  };
}

Tensor Model::into(std::size_t layer, const Tensor& h, const std::optional<StepContext>& training) const {
  const Tensor in = norms_.empty() ? h : layer_norm(h, norms_[layer - 1].first, norms_[layer - 1].second);
  return training && dropout_ > 0 ? dropped(in, layer, *training) : in;
}

/// Throws Error unless there are as many states as all layers have.
void Model::check_states(const Tensors& states) const {
  std::size_t all = 0;
  for (const auto& cell : cells_) all += cell->states().size();
  if (states.size() != all) throw Error("model", fmt::format("its layers have {} states, got {}", all, states.size()));
}

void Model::check_input(const Tensor& x, bool step) const {
  const bool symbols = shape_.vocabulary > 0, rows = x.defined() && indexes(x);
  const int axes = (step ? 1 : 2) + (rows || symbols ? 0 : 1);
  const bool fits = x.defined() && x.rank() == axes &&
                    (rows ? x.dtype() == DType::i32 : x.dim(-1) == shape_.inputs && !is_complex(x.dtype()));
  if (fits && !step && x.dim(0) < 1)
    throw Error("model", fmt::format("1 or more time steps are needed, got {}", x.spec().str()));
  if (fits) return;
  const char* const before = step ? "[B" : "[T, B";  // its axes in front of the inputs
  throw Error("model",
              fmt::format("x must be {}, got {}",
                          rows || symbols ? fmt::format("{}, i32 {}]", symbols ? "symbols" : "levels", before)
                                          : fmt::format("numbers {}, inputs] with {} inputs", before, shape_.inputs),
                          x.defined() ? x.spec().str() : "an undefined tensor"));
}

Tensor Model::operator()(const Tensor& x, const std::optional<StepContext>& training, Tensors* carry,
                         const Tensor& lengths) const {
  check_input(x, false);
  if (carry && !carry->empty() && bidirectional_)
    throw Error("model", "a bidirectional model reads whole sequences: no states carry over to the next batch");
  if (carry && !carry->empty()) check_states(*carry);
  CellInput in = indexes(x) ? CellInput(x, table_) : CellInput(cast(x, dtype_));
  const std::size_t directions = bidirectional_ ? 2 : 1;
  Tensor h, last;  // outputs at all steps, and at the end of each direction
  Tensors left;    // the last states of all layers, in order
  for (std::size_t c = 0; c < cells_.size(); c += directions) {
    if (c > 0) in = into(c / directions, h, training);
    in.lengths = lengths;
    in.zoneout.rate = zoneout_;
    in.every_step = shape_.every_step || c + directions < cells_.size() || !cells_[c]->recurrent();
    Tensors hs, lasts;  // of each direction
    for (std::size_t d = 0; d < directions; ++d) {
      const Cell& cell = *cells_[c + d];
      if (training) in.drop = inner_dropout(c + d, *training);
      if (training && zoneout_ > 0) in.zoneout.kept = zoned(c + d, x.dim(0), x.dim(1), *training);
      Tensors state = cell.initial(x.dim(1));
      if (carry && !carry->empty()) std::copy_n(carry->begin() + std::ssize(left), std::ssize(state), state.begin());
      const Sequence out = scan(cell, state, in, {.reverse = d == 1, .checkpoint_every = checkpoint_every_});
      left.insert(left.end(), out.last.begin(), out.last.end());
      hs.push_back(out.hs);
      lasts.push_back(cell.recurrent() ? output_of(cell, out.last) : last_of(out.hs, lengths));
    }
    const bool added = residual_ && c > 0;
    const auto joined = [&](const Tensor& below, const Tensors& parts) {
      const Tensor all = directions == 1 ? parts[0] : concat(parts, -1);
      return added ? below + all : all;
    };
    if (in.every_step) h = joined(h, hs);
    last = joined(last, lasts);
  }
  if (carry) *carry = bidirectional_ ? Tensors{} : left;
  return linear(shape_.every_step ? h : last, V_, c_);
}

Tensor Model::step(const Tensor& x, Tensors& states) const {
  if (!recurrent())
    throw Error("model", fmt::format("{} has no single step: it reads whole sequences",
                                     bidirectional_ ? "a bidirectional model" : "a cell without states"));
  check_input(x, true);
  if (states.empty()) states = initial(x.dim(0));
  check_states(states);
  Tensor h = numbers(x);
  const Zoneout zone{zoneout_};
  auto first = states.begin();
  for (std::size_t l = 0; l < cells_.size(); ++l) {
    const Cell& cell = *cells_[l];
    const auto count = static_cast<std::ptrdiff_t>(cell.states().size());
    const Tensors before(first, first + count);
    const Tensors next = zone.mean(before, cell.step(before, l > 0 ? into(l, h, std::nullopt) : h));
    const Tensor y = output_of(cell, next);
    h = residual_ && l > 0 ? h + y : y;
    first = std::copy(next.begin(), next.end(), first);
  }
  return linear(h, V_, c_);
}

std::vector<LayerInput> Model::layers(const Tensor& x) const {
  std::vector<LayerInput> out;
  const std::size_t directions = bidirectional_ ? 2 : 1;
  Tensor h = numbers(x);
  for (std::size_t c = 0; c < cells_.size(); c += directions) {
    CellInput in = c > 0 ? into(c / directions, h, std::nullopt) : h;
    in.zoneout.rate = zoneout_;
    Tensors hs;
    for (std::size_t d = 0; d < directions; ++d) {
      const Cell& cell = *cells_[c + d];
      out.push_back({&cell, d == 1 ? flip(in.xs, 0) : in.xs, c / directions + 1, d == 1, in.zoneout});
      if (c + directions < cells_.size()) hs.push_back(scan(cell, cell.initial(x.dim(1)), in, {.reverse = d == 1}).hs);
    }
    if (hs.empty()) break;
    const Tensor all = directions == 1 ? hs[0] : concat(hs, -1);
    h = residual_ && c > 0 ? h + all : all;
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
