// A level of the R-Transformer (Wang et al. 2019): a recurrent cell over short windows, multi-head causal attention,
// and a feed-forward part, each as x + part(LN(x)). It has no state, because it processes the whole sequence at once.
#include <cmath>

#include "cells/cell.h"

namespace reel {
namespace {

class RTransformer final : public Cell {
 public:
  RTransformer(std::int64_t i, std::int64_t d, const Settings& s, Init& init)
      : Cell(i, d, init),
        window_(s.integer("window", 1)),
        heads_(s.integer("heads", 1)),
        dropout_(s.real("dropout", 0, 0.999)) {
    if (d < 2)  // its layer normalisation divides by d - 1
      throw SettingError("hidden", fmt::format("r_transformer needs 2 units or more, got {}", d));
    if (d % heads_ != 0)
      throw SettingError("r_transformer.heads",
                         fmt::format("the number of units, {}, is not divisible by {}", d, heads_));
    const auto layer = [&](const std::string& name, std::int64_t in, std::int64_t out) {
      const double bound = 1 / std::sqrt(static_cast<double>(in));  // PyTorch Linear's initialisation
      return Layer{parameter("W_" + name, init.uniform({out, in}, bound)),
                   parameter("b_" + name, init.uniform({out}, bound))};
    };
    if (i != d) encoder_ = layer("e", i, d);
    const CellType& type = cell_type(s.choice("cell"));
    std::map<std::string, std::string> given;
    for (const Setting& setting : type.settings) {
      if (setting.name == "width") given["width"] = std::to_string(s.integer("width", 1));
    }
    rnn_ = type.make(d, d, Settings(type.name, type.settings, given), init);
    for (Parameter p : rnn_->parameters()) {
      p.name = "rnn." + p.name;
      add(std::move(p));
    }
    for (int k = 0; k < 3; ++k) {
      const std::string name = fmt::format("norm{}", k + 1);
      norm_[k] = {parameter(name + ".a", init.constant({d}, 1)), parameter(name + ".b", init.constant({d}, 0))};
    }
    q_ = layer("q", d, d);
    k_ = layer("k", d, d);
    v_ = layer("v", d, d);
    o_ = layer("o", d, d);
    wide_ = layer("1", d, 4 * d);
    narrow_ = layer("2", 4 * d, d);
  }
  std::vector<State> states() const override { return {}; }
  bool recurrent() const override { return false; }
  Tensors step(const Tensors&, const Tensor&) const override {
    throw Error("r_transformer", "this level sees all times at once and has no single step");
  }
  void updated() override { rnn_->updated(); }
  Tensor penalty() const override { return rnn_->penalty(); }

  Sequence run(const Tensors&, const CellInput& in, const ScanOptions& options, Loc where) const override {
    if (options.reverse) fail("r_transformer", where, "it runs forward only");
    const Tensor xs = in.numbers(in.xs);
    Tensor x = encoder_.W.defined() ? encoder_(xs) : xs;  // [T, B, d]
    const Drop drop = [&](const Tensor& a) { return dropout_ > 0 && in.drop ? in.drop(a, dropout_) : a; };
    x = x + drop(local_rnn(norm_[0](x), where));
    x = x + drop(attention(norm_[1](x), drop));
    const Tensor hs = x + drop(narrow_(drop(relu(wide_(norm_[2](x))))));
    // Padding gives 0, also where a sequence has no steps: its last output is then that of the first row.
    return {in.lengths.defined() ? reel::where(in.valid(), hs, 0.0) : hs, {}};
  }
  Tensor output(const Tensors&) const override { return {}; }

 private:
  using Drop = std::function<Tensor(const Tensor&)>;
  struct Layer {
    Tensor W, b;
    Tensor operator()(const Tensor& x) const { return linear(x, W, b); }
  };
  struct Norm {  // a (x - mean) / (std + 1e-6) + b; std divides by d - 1, as in the R-Transformer's code
    Tensor a, b;
    Tensor operator()(const Tensor& x) const {
      const Tensor centred = x - mean(x, {-1}, true);
      return a * centred / (std_dev(x, {-1}, true, 1) + 1e-6) + b;
    }
  };

  /// For each time step, the cell's last output over the window that ends there, from a zero state. All windows form
  /// one batch. Before the start x is 0.
  Tensor local_rnn(const Tensor& x, const Loc& where) const {
    const std::int64_t T = x.dim(0), B = x.dim(1), d = hidden;
    const Tensor padded = pad(x, 0, window_ - 1, 0);
    Tensors shifted;
    for (std::int64_t s = 0; s < window_; ++s) shifted.push_back(slice(padded, 0, s, s + T));
    const Tensor windows = reshape(stack(shifted), {window_, T * B, d});
    const Sequence all = scan(*rnn_, rnn_->initial(T * B), windows, {}, where);
    return reshape(rnn_->output(all.last), {T, B, d});
  }

  /// Each head weighs the time steps up to t by softmax(q k / sqrt(size)).
  Tensor attention(const Tensor& x, const Drop& drop) const {
    const std::int64_t T = x.dim(0), B = x.dim(1), size = hidden / heads_;
    const auto by_head = [&](const Tensor& a) { return permute(reshape(a, {T, B, heads_, size}), {1, 2, 0, 3}); };
    const Tensor q = by_head(q_(x)), k = by_head(k_(x)), v = by_head(v_(x));  // [B, heads, T, size]
    const Tensor scores = matmul(q, k, {.transpose_b = true}) / std::sqrt(static_cast<double>(size));
    const Tensor times = arange(T, DType::i32, x.backend());
    const Tensor past = reshape(times, {1, T}) <= reshape(times, {T, 1});
    const Tensor weights = drop(softmax(where(past, scores, -1e9)));
    return o_(reshape(permute(matmul(weights, v), {2, 0, 1, 3}), {T, B, hidden}));
  }

  std::int64_t window_, heads_;
  double dropout_;
  std::unique_ptr<Cell> rnn_;
  Norm norm_[3];
  Layer encoder_, q_, k_, v_, o_, wide_, narrow_;
};

using enum Setting::Kind;
REEL_CELL(
    {"r_transformer",
     "R-Transformer layer: cell over local windows, attention, feed-forward",
     "Wang et al. 2019",
     "(n i + n) [i!=n] + cell + 12 n^2 + 15 n",
     {{"cell", choice, "rnn", "recurrent cell of the layer", {"rnn", "gru", "lstm", "srnn", "janet", "goru", "enrnn"}},
      {"width", integer, "8", "units per hidden layer of beta's network if the cell is srnn", {}, "cell=srnn"},
      {"window", integer, "6", "K: window size in time steps", {}},
      {"heads", integer, "4", "number of attention heads", {}},
      {"dropout", real, "0", "dropout rate after each part, on the attention weights and in the wide layer", {}}},
     [](std::int64_t i, std::int64_t n, const Settings& s, Init& init) {
       return std::make_unique<RTransformer>(i, n, s, init);
     }})

}  // namespace
}  // namespace reel
