// What a recurrent cell is: named parameters, a state, and one step. A cell of its own is one file: a class with step()
// in ops, its settings, and a line of registration. Weights have the papers' orientation: W [n, i] acts on a column x,
// which for rows of a batch is linear(x, W) = x Wt.
#pragma once
#include <functional>
#include <map>

#include "cells/init.h"
#include "ops/ops.h"

namespace reel {

/// A tensor that belongs to a model: its elements change in place, so copies of the handle see every update.
struct Parameter {
  std::string name;
  Tensor value;
  std::string group = "";  // parameters of one group share a learning rate; "" is the main group
  bool trained = true;     // false: saved with the model, but neither counted nor updated (a permutation, a base)
  std::int64_t free = -1;  // how many real numbers of it are read, when not all (a triangle)
  /// Instead of the optimiser's rule: moves the value by `rate` against its gradient, on a manifold of its own.
  std::function<void(Tensor& value, const Tensor& gradient, double rate)> retract = {};

  /// How many real numbers are trained in it.
  std::int64_t count() const {
    if (!trained) return 0;
    return free >= 0 ? free : value.numel() * (is_complex(value.dtype()) ? 2 : 1);
  }
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
  /// Throws OptionError when there is no such setting, or the value is not of its kind.
  Settings(std::string cell, const std::vector<Setting>& known, const std::map<std::string, std::string>& given = {});
  /// Throws OptionError when the value is not within low..high.
  std::int64_t integer(const std::string& name, std::int64_t low, std::int64_t high = 1 << 24) const;
  double real(const std::string& name, double low = -1e300, double high = 1e300) const;
  const std::string& choice(const std::string& name) const;
  /// A choice of on and off.
  bool on(const std::string& name) const { return choice(name) == "on"; }
  /// "--srnn.width"
  std::string option(const std::string& name) const { return "--" + cell_ + "." + name; }

 private:
  std::string cell_;
  std::map<std::string, std::string> values_;
};

/// A tensor that a cell carries from step to step, [B, width].
struct State {
  std::string name;
  std::int64_t width;
  bool complex = false;
};

/// What a cell sees: numbers xs [T, B, input]; or symbols xs i32 [T, B], each standing for its row of a table [symbols,
/// input], which scan then works on where it can, as it has fewer rows (engine/tables.cpp).
struct CellInput {
  CellInput(Tensor numbers) : xs(std::move(numbers)) {}
  CellInput(Tensor symbols, Tensor table) : xs(std::move(symbols)), table(std::move(table)) {}
  /// The numbers of one time, or of all.
  Tensor numbers(const Tensor& x) const { return table.defined() ? embedding(x, table) : x; }
  Tensor xs, table;
};

/// All times of a cell: xs [T, B, input] -> outputs [T, B, outputs] and the last state.
struct Sequence {
  Tensor hs;
  Tensors last;
};

class Cell {
 public:
  /// Throws Error when a size is below 1.
  Cell(std::int64_t input, std::int64_t hidden, const Init& init);
  virtual ~Cell() = default;
  Cell(const Cell&) = delete;
  Cell& operator=(const Cell&) = delete;

  /// One time step: state and x [B, input] -> the next state. What does not depend on the state (a matrix made from its
  /// parameters) may be written here all the same: scan takes it out of the loop.
  virtual Tensors step(const Tensors& state, const Tensor& x) const = 0;
  /// The tensors of the state.
  virtual std::vector<State> states() const { return {{"h", hidden}}; }
  /// What a state shows to the layer above, [B, outputs()]; the first tensor of the state unless said otherwise.
  virtual Tensor output(const Tensors& state) const { return state[0]; }
  virtual std::int64_t outputs() const { return hidden; }
  /// The state before the first step: zeros unless it is trained.
  virtual Tensors initial(std::int64_t batch) const;
  /// All times: a scan of step() unless the cell is no recurrence.
  virtual Sequence run(const Tensors& state, const CellInput& in, const ScanOptions& options, Where where) const;
  /// How far a step moves the state along itself: what was at j is at j + shift() then, around the end.
  virtual std::int64_t shift() const { return 0; }
  /// False for one that sees all times at once: it has run(), but no step().
  virtual bool recurrent() const { return true; }
  /// Called after each update of the parameters: brings them back to where they must lie.
  virtual void updated() {}
  /// What is added to the loss, a scalar; undefined for nothing.
  virtual Tensor penalty() const { return {}; }

  const std::vector<Parameter>& parameters() const { return parameters_; }

  const std::int64_t input, hidden;

 protected:
  /// Names a tensor as a parameter of this cell.
  Tensor parameter(const std::string& name, const Tensor& value, const std::string& group = "");
  /// The same for one of which only `free` numbers are read.
  Tensor parameter(const std::string& name, const Tensor& value, const std::string& group, std::int64_t free);
  /// Names a tensor that belongs to this cell and is not trained.
  Tensor fixed(const std::string& name, const Tensor& value);
  void add(Parameter parameter) { parameters_.push_back(std::move(parameter)); }
  DType dtype() const { return dtype_; }
  Backend& device() const { return *backend_; }

 private:
  DType dtype_;
  Backend* backend_;
  std::vector<Parameter> parameters_;
};

/// All times of a cell from a state.
inline Sequence scan(const Cell& cell, const Tensors& state, const CellInput& in, const ScanOptions& options = {},
                     Where where = Where::current()) {
  return cell.run(state, in, options, where);
}

/// A kind of cell by name.
struct CellType {
  std::string name;
  std::string help;
  std::string source;  // the paper, and where in it
  /// How many numbers are trained, in n (hidden), i (input) and the settings, whose names stand for their values:
  /// "n m + n [initial=trained], m = reflections or min(16, n)". A bracket is 1 when what it says holds, 0 else; "or"
  /// takes its right side where the left one is 0. (formula.h reads it, and a test holds parameters() to it.)
  std::string count;
  std::vector<Setting> settings;
  std::function<std::unique_ptr<Cell>(std::int64_t input, std::int64_t hidden, const Settings&, Init&)> make;
  /// Width of a symbol's embedding in front of this cell; the hidden size where it is not given.
  std::function<std::int64_t(const Settings&)> embedding = {};
};
std::vector<CellType>& cell_registry();
/// Throws Error that lists the known cells.
const CellType& cell_type(const std::string& name);
/// Puts a cell into the registry: REEL_CELL({"name", "help", "source", "count", {settings}, maker}), at namespace scope
/// of its .cpp file.
#define REEL_CELL(...)                                        \
  [[maybe_unused]] static const bool REEL_OP_NAME(__LINE__) = \
      (cell_registry().push_back(__VA_ARGS__), true);  // NOLINT: a list in braces has no other form

/// An elementwise function by name: relu, tanh, sigmoid, leaky_relu, elu, softplus, identity.
std::vector<std::string> activation_names();
Tensor activate(const std::string& name, Arg x);

/// W x for real rows x and a W that may be complex: then two real products, a quarter of the work of a complex one.
Tensor linear_of_real(const Tensor& x, const Tensor& W);

}  // namespace reel
