#include "tasks/training/predictor.h"

#include <algorithm>
#include <filesystem>

#include "engine/scan/program.h"
#include "tasks/training/checkpoint.h"
#include "tasks/training/device.h"

namespace reel {

namespace {

ModelConfig config_of(const std::string& run) {
  const std::string path = run + "/model.json";
  if (std::filesystem::exists(path)) return load_model_config(path);
  if (!std::filesystem::exists(run + "/config.toml")) throw Error(run, "is not the folder of a run");
  throw Error(run,
              "has no model.json: its task has a model of its own, or an older Reel made the run. Hint: the program "
              "of its task with --resume writes the file");
}

Model made(const ModelConfig& c) { return Model(c.shape, c.options, Init(1, c.dtype)); }

/// Gives the model the parameters of a file that may hold more, as a checkpoint does.
void take_parameters(const std::string& path, const Model& model) {
  const TensorFile file = load_safetensors(path);
  Named places;
  for (const Parameter& p : model.parameters()) places.emplace_back(p.name, p.value);
  check_tensors(path, file, places, file.tensors.size() - std::min(places.size(), file.tensors.size()));
  for (const auto& [name, place] : places) fill_from(file.at(name), place);
}

std::string state_name(std::size_t i) { return fmt::format("state.{}", i); }

/// Throws Diverged with the path if a state is NaN or infinite: it would stay so.
void require_finite(const std::string& path, const Tensors& states) {
  Named named;
  for (std::size_t i = 0; i < states.size(); ++i) named.emplace_back(state_name(i), states[i]);
  if (const std::string what = not_finite(named); !what.empty()) throw Diverged(path, what);
}

}  // namespace

/// One time step of the whole model as a program, traced once. What does not depend on row and states, such as an
/// orthogonal matrix made of its parameters, is computed once and kept.
struct Predictor::Impl {
  explicit Impl(const std::string& run) : config(config_of(run)), model(made(config)) {
    weights = run + "/best.safetensors";
    if (!std::filesystem::exists(weights)) weights = run + "/checkpoint.safetensors";
    take_parameters(weights, model);
    if (model.recurrent()) trace_step();
  }

  void trace_step() {
    const NoGrad inference;
    initial = states = model.initial(1);
    std::vector<Spec> specs{config.shape.vocabulary > 0 ? Spec{DType::i32, {1}, &backend()}
                                                        : Spec{config.dtype, {1, config.shape.inputs}, &backend()}};
    for (const Tensor& s : states) specs.push_back(s.spec());
    Traced traced = trace(specs, [&](const Tensors& in) {
      Tensors next(in.begin() + 1, in.end());
      Tensors out{model.step(in[0], next)};
      out.insert(out.end(), next.begin(), next.end());
      return out;
    });
    program = std::move(traced.program);
    values.resize(program.values.size());
    std::move(traced.consts.begin(), traced.consts.end(), values.begin() + program.inputs);
    std::vector<char> moving(program.values.size(), 0);
    std::fill_n(moving.begin(), program.inputs, 1);
    mark_descendants(program, moving);
    std::erase_if(program.nodes, [&](const Program::Node& node) {
      if (moving[static_cast<std::size_t>(node.out)]) return false;
      apply_node(node, values);
      return true;
    });
    outputs.resize(static_cast<std::size_t>(config.shape.outputs));
  }

  void require_steps() const {
    if (!model.recurrent())
      throw Error("predictor",
                  fmt::format("this model reads whole sequences, not row by row: {}",
                              config.options.bidirectional ? "it is bidirectional" : "a cell of it has no states"));
  }

  std::span<const double> step(Tensor row) {
    const NoGrad inference;
    values[0] = std::move(row);
    std::copy(states.begin(), states.end(), values.begin() + 1);
    for (const Program::Node& node : program.nodes) apply_node(node, values);
    const auto value = [&](std::size_t i) { return values[static_cast<std::size_t>(program.outputs[i])]; };
    for (std::size_t i = 0; i < states.size(); ++i) states[i] = value(i + 1);
    const Tensor y = value(0);
    dispatch_floating(y.dtype(), [&]<class T>(std::type_identity<T>) {
      std::copy_n(static_cast<const T*>(y.data()), outputs.size(), outputs.begin());
    });
    return outputs;
  }

  ModelConfig config;
  Model model;
  std::string weights;
  Program program;
  Tensors values;  // by id; those of consts and of what depends on them alone stay
  Tensors initial, states;
  std::vector<double> outputs;
};

Predictor::Predictor(const std::string& run) : impl_(std::make_unique<Impl>(run)) {}
Predictor::~Predictor() = default;
Predictor::Predictor(Predictor&&) noexcept = default;
Predictor& Predictor::operator=(Predictor&&) noexcept = default;

const ModelConfig& Predictor::config() const { return impl_->config; }
const std::string& Predictor::weights() const { return impl_->weights; }

Tensor Predictor::operator()(const Tensor& x, const Tensor& lengths) const {
  const ModelShape& shape = impl_->config.shape;
  if (shape.vocabulary > 0) {
    if (x.rank() != 2 || x.dtype() != DType::i32)
      throw Error("predictor", fmt::format("x must be symbols, i32 [T, B], got {}", x.spec().str()));
  } else if (x.rank() != 3 || x.dim(2) != shape.inputs || is_complex(x.dtype())) {
    throw Error("predictor",
                fmt::format("x must be numbers [T, B, inputs] with {} inputs, got {}", shape.inputs, x.spec().str()));
  }
  if (x.dim(0) < 1) throw Error("predictor", fmt::format("1 or more time steps are needed, got {}", x.spec().str()));
  const NoGrad inference;
  return impl_->model(x, std::nullopt, nullptr, lengths);
}

bool Predictor::row_by_row() const { return impl_->model.recurrent(); }

std::span<const double> Predictor::next(std::span<const double> row) {
  impl_->require_steps();
  const ModelConfig& c = impl_->config;
  if (c.shape.vocabulary > 0) throw Error("predictor", "this model reads symbols, got a row of numbers");
  if (std::ssize(row) != c.shape.inputs)
    throw Error("predictor", fmt::format("a row has {} numbers, got {}", c.shape.inputs, row.size()));
  Tensor x = Tensor::empty({c.dtype, {1, c.shape.inputs}, &backend()});
  dispatch_floating(c.dtype, [&]<class T>(std::type_identity<T>) {
    std::transform(row.begin(), row.end(), static_cast<T*>(x.data()), [](double v) { return static_cast<T>(v); });
  });
  return impl_->step(std::move(x));
}

std::span<const double> Predictor::next(std::int64_t symbol) {
  impl_->require_steps();
  const std::int64_t known = impl_->config.shape.vocabulary;
  if (known == 0) throw Error("predictor", fmt::format("this model reads rows of numbers, got the symbol {}", symbol));
  if (symbol < 0 || symbol >= known)
    throw Error("predictor", fmt::format("symbols are 0 to {}, got {}", known - 1, symbol));
  return impl_->step(Tensor::from<std::int32_t>(std::vector<std::int32_t>{static_cast<std::int32_t>(symbol)}, {1}));
}

void Predictor::reset() { impl_->states = impl_->initial; }

const Tensors& Predictor::states() const { return impl_->states; }

void Predictor::set_states(const Tensors& states) {
  impl_->require_steps();
  const Tensors& own = impl_->initial;
  const auto same = [](const Tensor& a, const Tensor& b) { return a.spec() == b.spec(); };
  if (std::equal(states.begin(), states.end(), own.begin(), own.end(), same)) {
    impl_->states = states;
    return;
  }
  const auto listed = [](const Tensors& all) {
    std::string text;
    for (const Tensor& t : all) text += (text.empty() ? "" : ", ") + t.spec().str();
    return text.empty() ? "none" : text;
  };
  throw Error("predictor", fmt::format("the states of this model are {}; got {}", listed(own), listed(states)));
}

void Predictor::save_states(const std::string& path) const {
  impl_->require_steps();
  require_finite(path, impl_->states);
  TensorFile file;
  for (std::size_t i = 0; i < impl_->states.size(); ++i) file.tensors.emplace_back(state_name(i), impl_->states[i]);
  save_safetensors(path, file);
}

void Predictor::load_states(const std::string& path) {
  const TensorFile file = load_safetensors(path);
  try {
    Tensors states;
    for (std::size_t i = 0; i < file.tensors.size(); ++i) states.push_back(file.at(state_name(i)));
    require_finite(path, states);
    set_states(states);
  } catch (const Diverged&) {
    throw;
  } catch (const Error& e) {
    throw Error(path, e.what());
  }
}

}  // namespace reel
