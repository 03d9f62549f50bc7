#include "tasks/training/predictor.h"

#include <algorithm>

#include "tasks/training/checkpoint_file.h"
#include "tasks/training/checksum.h"
#include "tasks/training/device.h"
#include "tasks/training/row_program.h"
#include "tasks/training/safetensors.h"
#include "tasks/training/trained_model.h"

namespace reel {

namespace {

/// In the metadata of a file of states: the checksum of the parameters that made them.
constexpr const char* parameters_key = "parameters";

std::string state_name(std::size_t i) { return fmt::format("state.{}", i); }

/// Throws Diverged with the path if a state is NaN or infinite: it would stay so.
void require_finite(const std::string& path, const Tensors& states) {
  Named named;
  for (std::size_t i = 0; i < states.size(); ++i) named.emplace_back(state_name(i), states[i]);
  if (const std::string what = not_finite(named); !what.empty()) throw Diverged(path, what);
}

}  // namespace

struct Predictor::Impl {
  explicit Impl(TrainedModel trained)
      : config(std::move(trained.config)), model(std::move(trained.model)), weights(std::move(trained.weights)) {
    if (model.recurrent()) trace_step();
  }

  void trace_step() {
    const NoGrad inference;
    initial = model.initial(1);
    std::vector<Spec> specs{config.shape.vocabulary > 0 ? Spec{DType::i32, {1}, &backend()}
                                                        : Spec{config.dtype, {1, config.shape.inputs}, &backend()}};
    for (const Tensor& s : initial) specs.push_back(s.spec());
    one_row.emplace(trace(specs, [&](const Tensors& in) {
      Tensors next(in.begin() + 1, in.end());
      Tensors out{model.step(in[0], next)};
      out.insert(out.end(), next.begin(), next.end());
      return out;
    }));
    outputs.resize(static_cast<std::size_t>(config.shape.outputs));
    set_states(initial);
  }

  void set_states(const Tensors& from) {
    for (std::size_t i = 0; i < from.size(); ++i) one_row->input(i + 1).assign(from[i]);
  }

  void require_steps() const {
    if (!model.recurrent())
      throw Error("predictor",
                  fmt::format("this model reads whole sequences, not row by row: {}",
                              config.options.bidirectional ? "it is bidirectional" : "a cell of it has no states"));
  }

  /// Throws Error if the file says that its states are of other parameters; one of an older version does not say.
  void require_own(const TensorFile& file) const {
    const auto of = file.metadata.find(parameters_key);
    if (of != file.metadata.end() && of->second != parameters())
      throw Error("predictor",
                  fmt::format("these states belong to a model whose parameters have the checksum {}; got {}. Hint: "
                              "read the earlier rows again, without these states",
                              of->second, parameters()));
  }

  std::string parameters() const {
    Tensors all;
    for (const Parameter& p : model.parameters()) all.push_back(p.value);
    return checksum(all);
  }

  /// Reads the row that is in the first input.
  std::span<const double> step() {
    const NoGrad inference;
    one_row->run();
    for (std::size_t i = 0; i < initial.size(); ++i) one_row->input(i + 1).assign(one_row->output(i + 1));
    const Tensor& y = one_row->output(0);
    dispatch_floating(y.dtype(), [&]<class T>(std::type_identity<T>) {
      std::copy_n(static_cast<const T*>(y.data()), outputs.size(), outputs.begin());
    });
    return outputs;
  }

  ModelConfig config;
  Model model;
  std::string weights;
  std::optional<RowProgram> one_row;  // a row and states to outputs and states; none if not recurrent
  Tensors initial;
  std::vector<double> outputs;
};

Predictor::Predictor(const std::string& run) : impl_(std::make_unique<Impl>(load_trained_model(run))) {}
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
  check_lengths(lengths, x.dim(0), x.dim(1));
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
  Tensor& x = impl_->one_row->input(0);
  dispatch_floating(c.dtype, [&]<class T>(std::type_identity<T>) {
    std::transform(row.begin(), row.end(), static_cast<T*>(x.data()), [](double v) { return static_cast<T>(v); });
  });
  return impl_->step();
}

std::span<const double> Predictor::next(std::int64_t symbol) {
  impl_->require_steps();
  const std::int64_t known = impl_->config.shape.vocabulary;
  if (known == 0) throw Error("predictor", fmt::format("this model reads rows of numbers, got the symbol {}", symbol));
  if (symbol < 0 || symbol >= known)
    throw Error("predictor", fmt::format("symbols are 0 to {}, got {}", known - 1, symbol));
  *impl_->one_row->input(0).data_as<std::int32_t>() = static_cast<std::int32_t>(symbol);
  return impl_->step();
}

void Predictor::reset() { impl_->set_states(impl_->initial); }

Tensors Predictor::states() const {
  Tensors out;
  for (std::size_t i = 0; i < impl_->initial.size(); ++i) {
    const Tensor& state = impl_->one_row->input(i + 1);
    out.push_back(Tensor::empty(state.spec()));
    out.back().assign(state);
  }
  return out;
}

void Predictor::set_states(const Tensors& states) {
  impl_->require_steps();
  const Tensors& own = impl_->initial;
  const auto same = [](const Tensor& a, const Tensor& b) { return a.spec() == b.spec(); };
  if (std::equal(states.begin(), states.end(), own.begin(), own.end(), same)) {
    impl_->set_states(states);
    return;
  }
  const auto listed = [](const Tensors& all) {
    std::string text;
    for (const Tensor& t : all) text += (text.empty() ? "" : ", ") + t.spec().str();
    return text.empty() ? "none" : text;
  };
  throw Error("predictor", fmt::format("the states of this model are {}; got {}", listed(own), listed(states)));
}

void Predictor::save_states(const std::string& path, const TensorFile& more) const {
  impl_->require_steps();
  const Tensors all = states();
  require_finite(path, all);
  TensorFile file = more;
  for (std::size_t i = 0; i < all.size(); ++i) file.tensors.emplace_back(state_name(i), all[i]);
  file.metadata[parameters_key] = impl_->parameters();
  save_safetensors(path, file);
}

TensorFile Predictor::load_states(const std::string& path, const std::vector<std::string>& more) {
  TensorFile file = load_safetensors(path), others;
  std::erase_if(file.tensors, [&](const auto& named) {
    if (std::find(more.begin(), more.end(), named.first) == more.end()) return false;
    others.tensors.push_back(named);
    return true;
  });
  try {
    Tensors states;
    for (std::size_t i = 0; i < file.tensors.size(); ++i) states.push_back(file.at(state_name(i)));
    require_finite(path, states);
    if (const std::string what = not_finite(others.tensors); !what.empty()) throw Diverged(path, what);
    impl_->require_own(file);
    set_states(states);
    return others;
  } catch (const Diverged&) {
    throw;
  } catch (const Error& e) {
    throw Error(path, e.what());
  }
}

}  // namespace reel
