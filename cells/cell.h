// A recurrent cell: named parameters, a state, and one step. To add a cell, write one file with a class whose step()
// uses ops, its settings, and a registration line. Weights follow the papers' orientation: W [n, i] acts on a column x,
// so on the rows of a batch it is linear(x, W) = x Wt.
#pragma once
#include <deque>
#include <functional>
#include <map>

#include "cells/init.h"
#include "cells/parameter.h"
#include "ops/ops.h"
#include "reel/version.h"

namespace reel {

/// A setting of a cell: srnn.width. Programs have it as an option, --srnn.width.
struct Setting {
  enum class Kind { integer, real, choice };
  std::string name;
  Kind kind;
  std::string fallback;  // the value if it is not given
  std::string help;
  std::vector<std::string> choices;  // for Kind::choice
  std::string only_if = {};          // when it is read: "style=tunable" or "chrono!=0"; empty: always
};

/// The values of a cell's settings; a setting that is not given takes its fallback.
class Settings {
 public:
  /// Throws SettingError for an unknown setting or a value of the wrong kind. The functions below throw Error for a
  /// setting that is not among those known, or of another kind; real() takes integers, too.
  Settings(std::string cell, const std::vector<Setting>& known, const std::map<std::string, std::string>& given = {});
  /// Throws SettingError when the value is not within low..high.
  std::int64_t integer(const std::string& name, std::int64_t low, std::int64_t high = 1 << 24) const;
  double real(const std::string& name, double low = -1e300, double high = 1e300) const;
  const std::string& choice(const std::string& name) const;
  /// For a setting whose choices are on and off.
  bool on(const std::string& name) const;
  /// All of them, as text.
  const std::map<std::string, std::string>& values() const { return values_; }
  /// The settings that have another value than the usual one and are not read, with the reason: {"capacity", "style is
  /// fft"}.
  std::vector<std::pair<std::string, std::string>> without_effect() const;
  /// "srnn.width"
  std::string path(const std::string& name) const { return cell_ + "." + name; }

 private:
  const std::string& at(const std::string& name) const;
  /// Throws Error unless the setting fits what it is asked for as.
  void require(const std::string& name, bool fits, const char* asked) const;

  std::string cell_;
  std::map<std::string, std::string> values_;
  std::map<std::string, Setting> known_;
};

/// A tensor that a cell carries from step to step, [B, width].
struct State {
  std::string name;
  std::int64_t width;
  bool complex = false;
};

/// Zoneout (Krueger et al. 2017, arXiv:1606.01305): each value of the states keeps the one before with probability
/// `rate` in training. Outside training it moves to the mean, rate h_{t-1} + (1 - rate) h_t.
struct Zoneout {
  double rate = 0;
  Tensors kept = {};  // in training: for each state a bool [T, B, width], true where it keeps its value
  /// The mean of the states before a step and after it.
  Tensors mean(const Tensors& before, Tensors after) const;
};

/// A cell's input: values xs [T, B, input], or symbols xs i32 [T, B] that index the rows of a table [symbols, input].
/// With symbols, scan delays the gather where it can, because the table has fewer rows than the batch
/// (engine/scan/passes/delay_gathers.cpp). With lengths i32 [B], sequence b has lengths[b] steps, and the rest of its
/// column is padding, over which its state does not change.
struct CellInput {
  CellInput(Tensor numbers) : xs(std::move(numbers)) {}
  CellInput(Tensor symbols, Tensor rows) : xs(std::move(symbols)), table(std::move(rows)) {}
  /// The input values of one time step, or of all of them.
  Tensor numbers(const Tensor& x) const { return table.defined() ? embedding(x, table) : x; }
  /// bool [T, B, 1]: false in padding. Needs lengths.
  Tensor valid() const;
  /// The same with zeros in the padding, so nothing depends on its contents, not even on NaN.
  CellInput cleared() const;
  Tensor xs, table, lengths = {};
  bool every_step = true;  // false: only the last state is wanted, and a recurrent cell computes no hs
  Zoneout zoneout = {};
  /// Dropout in training: drops this fraction of the values of x, with a new random stream at each call; empty
  /// otherwise.
  std::function<Tensor(const Tensor& x, double share)> drop = {};
};

/// The result over a full sequence xs [T, B, input]: outputs hs [T, B, outputs], undefined if they were not requested,
/// and the last state.
struct Sequence {
  Tensor hs;
  Tensors last;
};

struct CellType;

class Cell {
 public:
  /// Throws Error when a size is below 1.
  Cell(std::int64_t input, std::int64_t hidden, const Init& init);
  virtual ~Cell() = default;
  Cell(const Cell&) = delete;
  Cell& operator=(const Cell&) = delete;

  /// One time step: state and x [B, input] -> the next state. Computations that do not depend on the state (such as a
  /// matrix made from parameters) belong here too: scan hoists them out of the loop.
  virtual Tensors step(const Tensors& state, const Tensor& x) const = 0;
  /// The tensors of the state; a cell with step() has one or more.
  virtual std::vector<State> states() const { return {{"h", hidden}}; }
  /// The output to the layer above, [B, outputs()]; by default the first tensor of the state.
  virtual Tensor output(const Tensors& state) const { return state[0]; }
  virtual std::int64_t outputs() const { return hidden; }
  /// The state before the first step: zeros unless it is trained.
  virtual Tensors initial(std::int64_t batch) const;
  /// Runs a full sequence; by default a scan over step().
  virtual Sequence run(const Tensors& state, const CellInput& in, const ScanOptions& options, Loc where) const;
  /// How far a step rolls the state: element j moves to j + shift(), wrapping around.
  virtual std::int64_t shift() const { return 0; }
  /// The matrix that a step multiplies the state by, [n, n], real or complex; undefined for a cell that has several, or
  /// gates in between.
  virtual Tensor recurrent_matrix() const { return {}; }
  /// False for a cell that processes the full sequence at once: it has run(), but no step().
  virtual bool recurrent() const { return true; }
  /// Called after each update of the parameters, to project them back onto their constraints.
  virtual void updated() {}
  /// A scalar to add to the loss; undefined for none.
  virtual Tensor penalty() const { return {}; }

  const std::vector<Parameter>& parameters() const { return parameters_; }
  /// The name that it is registered by; "cell" for one that was made without the registry.
  const std::string& name() const { return name_; }
  /// f32 or f64, that of the real parameters and states.
  DType dtype() const { return dtype_; }

  const std::int64_t input, hidden;

 protected:
  /// Registers a tensor as a parameter of this cell.
  Tensor parameter(const std::string& name, const Tensor& value, const std::string& group = "");
  /// The same, for a parameter that uses only `free` real numbers.
  Tensor parameter(const std::string& name, const Tensor& value, const std::string& group, std::int64_t free);
  /// Registers a tensor that belongs to this cell but is not trained.
  Tensor fixed(const std::string& name, const Tensor& value);
  /// Throws Error if another parameter already has the name or the tensor.
  void add(Parameter parameter);
  Backend& device() const { return *backend_; }

 private:
  friend bool register_cell(CellType type, const char* file, const int& version);
  std::string name_ = "cell";
  DType dtype_;
  Backend* backend_;
  std::vector<Parameter> parameters_;
};

/// Runs a cell over a full sequence, from the given state; the contents of the padding do not matter. Throws Error
/// unless the states, before and after, are those of cell.states(), the outputs [T, B, outputs()], and lengths i32 [B]
/// of 0 to T; values on a GPU are not read.
Sequence scan(const Cell& cell, const Tensors& state, const CellInput& in, const ScanOptions& options = {},
              Loc where = Loc::current());
/// cell.output(state); throws Error unless it is [B, outputs()], of cell.dtype().
Tensor output_of(const Cell& cell, const Tensors& state);
/// cell.penalty(); throws Error unless it is undefined or a scalar of cell.dtype().
Tensor penalty_of(const Cell& cell);
/// Throws Error unless `lengths` are undefined, or i32 [B] from `least` to T.
void check_lengths(const Tensor& lengths, std::int64_t T, std::int64_t B, std::int32_t least = 1);

/// A registered kind of cell.
struct CellType {
  std::string name;
  std::string help;
  std::string source;  // the paper, and where in it
  /// The number of trained values, as a formula in n (hidden), i (input) and the names of settings: "n m + n
  /// [initial=trained], m = reflections or min(16, n)". A bracket is 1 if its condition holds, else 0; "a or b" is b
  /// where a is 0. formula.h evaluates it, and a test checks parameters() against it.
  std::string count;
  std::vector<Setting> settings;
  std::function<std::unique_ptr<Cell>(std::int64_t input, std::int64_t hidden, const Settings&, Init&)> make;
  /// The width of a symbol's embedding in front of this cell; the hidden size if not given.
  std::function<std::int64_t(const Settings&)> embedding = {};
  /// The source file that registers it, as REEL_CELL finds it.
  std::string file = {};

  /// True for a cell that comes with Reel: its file is in cells/ itself. Cells in cells/own/ or in another project are
  /// their authors' own: Reel's tables need not have them.
  bool built_in() const;
};
/// All registered cells. Throws Error if two of them have the same name (registry.h). Adding one leaves references to
/// the others valid, such as cell_type()'s.
std::deque<CellType>& cell_registry();
/// The names of all registered cells.
std::vector<std::string> cell_names();
/// The cell of this name; nullptr if there is none.
const CellType* find_cell(const std::string& name);
/// As find_cell(), but throws a SettingError that lists the known cells, with the nearest name as a hint.
const CellType& cell_type(const std::string& name);
/// Adds a cell to the registry, with the source file that it comes from and the version that it was compiled for.
bool register_cell(CellType type, const char* file, const int& version = REEL_VERSION_SYMBOL);
/// Registers a cell: REEL_CELL({"name", "help", "source", "count", {settings}, make}), at namespace scope of its .cpp
/// file.
#define REEL_CELL(...)                                        \
  [[maybe_unused]] static const bool REEL_OP_NAME(__LINE__) = \
      register_cell(__VA_ARGS__, __FILE__);  // NOLINT: a list in braces has no other form

/// An elementwise function by name: relu, tanh, sigmoid, leaky_relu, elu, softplus, identity.
std::vector<std::string> activation_names();
Tensor activate(const std::string& name, Arg x);

/// W x for real rows x and a real or complex W. A complex W takes two real products, which cost less than a complex
/// one.
Tensor linear_of_real(const Tensor& x, const Tensor& W);

}  // namespace reel
