// What a recurrent cell is: named parameters, a state, and one step. A cell of its own is one file: a class with step()
// in ops, its settings, and a line of registration. Weights have the papers' orientation: W [n, i] acts on a column x,
// which for rows of a batch is linear(x, W) = x Wt.
#pragma once
#include <functional>
#include <map>

#include "ops/ops.h"

namespace reel {

/// A trained tensor: its elements change in place, so copies of the handle see every update.
struct Parameter {
  std::string name;
  Tensor value;
  std::string group;  // parameters of one group share a learning rate; "" is the main group
};

/// An option of a cell: --srnn.width, or width in section [srnn] of a config file.
struct Setting {
  enum class Kind { integer, real, choice };
  std::string name;
  Kind kind;
  std::string fallback;  // the value without the option
  std::string help;
  std::vector<std::string> choices;  // for Kind::choice
};

/// The values of a cell's settings; those not given have their fallback.
class Settings {
 public:
  Settings(std::string cell, const std::vector<Setting>& known, const std::map<std::string, std::string>& given = {});
  /// Throws Error that names the option when the value is not a number, or not within low..high.
  std::int64_t integer(const std::string& name, std::int64_t low, std::int64_t high = 1 << 24) const;
  double real(const std::string& name) const;
  const std::string& choice(const std::string& name) const;

 private:
  const std::string& text(const std::string& name) const;
  std::string cell_;
  std::map<std::string, std::string> values_;
};

/// Where parameters come from when a model is made: dtype, device, and random numbers that differ for each parameter.
class Init {
 public:
  Init(std::uint64_t seed, DType dtype = DType::f32, Backend& backend = reel::backend())
      : dtype(dtype), backend(&backend), seed_(seed) {}
  /// Uniform in [-bound, bound).
  Tensor uniform(const Shape& shape, double bound);
  Tensor normal(const Shape& shape, double deviation);
  Tensor constant(const Shape& shape, double value) const { return Tensor::full(shape, value, dtype, *backend); }

  DType dtype;
  Backend* backend;

 private:
  std::uint64_t seed_, next_ = std::uint64_t{3} << 60;  // streams far from those of data
};

class Cell {
 public:
  Cell(std::int64_t input, std::int64_t hidden, const Init& init)
      : input(input), hidden(hidden), dtype_(init.dtype), backend_(init.backend) {}
  virtual ~Cell() = default;
  Cell(const Cell&) = delete;
  Cell& operator=(const Cell&) = delete;

  /// One time step: state and x [B, input] -> the next state; its first tensor is the output h [B, hidden].
  virtual Tensors step(const Tensors& state, const Tensor& x) const = 0;
  /// Names of the state's tensors, each [B, hidden].
  virtual std::vector<std::string> states() const { return {"h"}; }
  /// The state before the first step: zeros.
  Tensors initial(std::int64_t batch) const;
  const std::vector<Parameter>& parameters() const { return parameters_; }

  const std::int64_t input, hidden;

 protected:
  /// Names a tensor as a parameter of this cell.
  Tensor parameter(const std::string& name, const Tensor& value, const std::string& group = "");

 private:
  DType dtype_;
  Backend* backend_;
  std::vector<Parameter> parameters_;
};

/// All times of a cell: xs [T, B, input] -> outputs [T, B, hidden] and the last state.
struct Sequence {
  Tensor hs;
  Tensors last;
};
Sequence scan(const Cell& cell, const Tensors& state, const Tensor& xs, const ScanOptions& options = {},
              Where where = Where::current());

/// A kind of cell by name.
struct CellType {
  std::string name;
  std::string help;
  std::vector<Setting> settings;
  std::function<std::unique_ptr<Cell>(std::int64_t input, std::int64_t hidden, const Settings&, Init&)> make;
  /// Width of a symbol's embedding in front of this cell; the hidden size where it is not given.
  std::function<std::int64_t(const Settings&)> embedding = {};
};
std::vector<CellType>& cell_registry();
/// Throws Error that lists the known cells.
const CellType& cell_type(const std::string& name);
/// Puts a cell into the registry; once a cell, at namespace scope of its .cpp file.
#define REEL_CELL(...) \
  [[maybe_unused]] static const bool registered_cell = (cell_registry().push_back(CellType __VA_ARGS__), true);

/// An elementwise function by name: relu, tanh, sigmoid, leaky_relu, elu, softplus, identity.
std::vector<std::string> activation_names();
Tensor activate(const std::string& name, Arg x);

}  // namespace reel
