#include "cells/cell.h"

#include <fmt/ranges.h>
#include <algorithm>
#include <array>

#include "engine/core/error.h"
#include "engine/core/parse.h"

namespace reel {

namespace {
/// A number as it is always written: 1e-4 and 0.0001 are the same setting.
std::string plain(const Setting& setting, const std::string& text) {
  if (setting.kind == Setting::Kind::integer)
    if (const auto number = parse<std::int64_t>(text)) return fmt::format("{}", *number);
  if (setting.kind == Setting::Kind::real)
    if (const auto number = parse<double>(text)) return fmt::format("{}", *number);
  return text;
}

struct Condition {
  std::string other, value;
  bool equal;
};
/// "style=tunable" or "chrono!=0" in parts.
Condition condition_of(const Setting& setting) {
  const std::string& text = setting.only_if;
  const std::size_t at = text.find_first_of("!=");
  REEL_ASSERT(text.find('=') != text.npos);  // else the cell could not be registered
  const bool equal = text[at] == '=';
  return {text.substr(0, at), text.substr(at + (equal ? 1 : 2)), equal};
}
}  // namespace

Settings::Settings(std::string cell, const std::vector<Setting>& known, const std::map<std::string, std::string>& given)
    : cell_(std::move(cell)) {
  for (const Setting& s : known) {
    values_[s.name] = plain(s, s.fallback);
    known_[s.name] = s;
  }
  for (const auto& [name, value] : given) {
    const auto setting = std::find_if(known.begin(), known.end(), [&](const Setting& s) { return s.name == name; });
    if (setting == known.end()) throw SettingError(path(name), fmt::format("the cell {} has no such setting", cell_));
    using enum Setting::Kind;
    if (setting->kind == choice &&
        std::find(setting->choices.begin(), setting->choices.end(), value) == setting->choices.end())
      throw SettingError(path(name), fmt::format("\"{}\" is not one of {}", value, fmt::join(setting->choices, ", ")));
    if (setting->kind == integer && !parse<std::int64_t>(value))
      throw SettingError(path(name), fmt::format("\"{}\" is not an integer", value));
    if (setting->kind == real && !parse<double>(value))
      throw SettingError(path(name), fmt::format("\"{}\" is not a number", value));
    values_[name] = plain(*setting, value);
  }
}

const std::string& Settings::at(const std::string& name) const {
  const auto found = values_.find(name);
  if (found == values_.end())
    throw Error(cell_, fmt::format("reads the setting \"{}\", which REEL_CELL does not list", name));
  return found->second;
}

void Settings::require(const std::string& name, bool fits, const char* asked) const {
  if (fits) return;
  static constexpr std::array kinds{"an integer", "a real", "a choice"};
  throw Error(cell_, fmt::format("reads the setting \"{}\" as {}, and REEL_CELL lists it as {}", name, asked,
                                 kinds.at(static_cast<std::size_t>(known_.at(name).kind))));
}

const std::string& Settings::choice(const std::string& name) const { return at(name); }

bool Settings::on(const std::string& name) const {
  const std::string& value = at(name);
  const std::vector<std::string>& choices = known_.at(name).choices;
  require(name, std::find(choices.begin(), choices.end(), "on") != choices.end(), "on or off");
  return value == "on";
}

std::int64_t Settings::integer(const std::string& name, std::int64_t low, std::int64_t high) const {
  const std::string& text = at(name);
  require(name, known_.at(name).kind == Setting::Kind::integer, "an integer");
  const std::int64_t value = parse<std::int64_t>(text).value();
  if (value < low || value > high)
    throw SettingError(path(name), fmt::format("an integer in {}..{} expected, got {}", low, high, value));
  return value;
}

double Settings::real(const std::string& name, double low, double high) const {
  const std::string& text = at(name);
  require(name, known_.at(name).kind != Setting::Kind::choice, "a real");
  const double value = parse<double>(text).value();
  if (!(value >= low && value <= high))
    throw SettingError(path(name), fmt::format("a number in {}..{} expected, got {}", low, high, value));
  return value;
}

std::vector<std::pair<std::string, std::string>> Settings::without_effect() const {
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& [name, setting] : known_) {
    if (setting.only_if.empty() || values_.at(name) == plain(setting, setting.fallback)) continue;
    const auto [other, value, equal] = condition_of(setting);
    if ((at(other) == plain(known_.at(other), value)) != equal)
      out.emplace_back(name, fmt::format("{} is {}", other, at(other)));
  }
  return out;
}

Cell::Cell(std::int64_t inputs, std::int64_t units, const Init& init)
    : input(inputs), hidden(units), dtype_(init.dtype), backend_(init.backend) {
  if (hidden < 1) throw SettingError("hidden", fmt::format("1 or more units are needed, got {}", hidden));
  if (input < 1) throw Error("cell", fmt::format("1 or more inputs are needed, got {}", input));
}

Tensors Cell::initial(std::int64_t batch) const {
  Tensors state;
  for (const State& s : states())
    state.push_back(Tensor::zeros({batch, s.width}, s.complex ? complex_of(dtype_) : dtype_, *backend_));
  return state;
}

void Cell::add(Parameter parameter) { append(parameters_, std::move(parameter)); }

Tensor Cell::parameter(const std::string& name, const Tensor& value, const std::string& group) {
  add({.name = name, .value = value, .group = group});
  return value;
}

Tensor Cell::parameter(const std::string& name, const Tensor& value, const std::string& group, std::int64_t free) {
  add({.name = name, .value = value, .group = group, .free = free});
  return value;
}

Tensor Cell::fixed(const std::string& name, const Tensor& value) {
  add({.name = name, .value = value, .trained = false});
  return value;
}

Tensor CellInput::valid() const {
  const Tensor times = arange(xs.dim(0), DType::i32, xs.backend());
  return reshape(times, {-1, 1, 1}) < reshape(lengths, {1, -1, 1});
}

CellInput CellInput::cleared() const {
  if (!lengths.defined()) return *this;
  CellInput out = *this;
  out.xs = where(table.defined() ? reshape(valid(), {xs.dim(0), xs.dim(1)}) : valid(), xs, 0.0);
  return out;
}

Tensors Zoneout::mean(const Tensors& before, Tensors after) const {
  for (std::size_t i = 0; rate > 0 && i < after.size(); ++i) after[i] = rate * before[i] + (1 - rate) * after[i];
  return after;
}

namespace {
std::string given(const Tensor& x) { return x.defined() ? x.spec().str() : "an undefined tensor"; }

/// Throws Error for what scan, or the layer above, would refuse without the names of the cell and the state.
void check_step(const Cell& cell, const Tensors& before, const Tensors& after) {
  if (after.size() != before.size())
    throw Error(cell.name(), fmt::format("step() gives {} state{}, {} expected", after.size(),
                                         after.size() == 1 ? "" : "s", before.size()));
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (after[i].defined() && after[i].spec() == before[i].spec()) continue;
    const std::vector<State> states = cell.states();
    throw Error(cell.name(), fmt::format("step() gives {} as the state {}, {} expected", given(after[i]),
                                         i < states.size() ? states[i].name : std::to_string(i), given(before[i])));
  }
}

}  // namespace

Tensor output_of(const Cell& cell, const Tensors& state) {
  Tensor y = cell.output(state);
  const Shape needed{state.at(0).dim(0), cell.outputs()};
  if (!y.defined() || !(y.shape() == needed))
    throw Error(cell.name(), fmt::format("output() gives {}, [B, outputs()] = {} expected", given(y), needed.str()));
  if (y.dtype() != cell.dtype())  // the layer above and the head multiply it by real weights
    throw Error(cell.name(), fmt::format("output() gives {}, {} is expected{}", given(y), name_of(cell.dtype()),
                                         is_complex(y.dtype()) ? ". Hint: concat({real(y), imag(y)}, -1)" : ""));
  return y;
}

Tensor penalty_of(const Cell& cell) {
  Tensor p = cell.penalty();
  if (p.defined() && (p.rank() != 0 || p.dtype() != cell.dtype()))
    throw Error(cell.name(), fmt::format("penalty() gives {}, a scalar of {} expected. Hint: sum() of it", given(p),
                                         name_of(cell.dtype())));
  return p;
}

Sequence scan(const Cell& cell, const Tensors& state, const CellInput& in, const ScanOptions& options, Loc where) {
  const std::vector<State> states = cell.states();
  if (in.xs.rank() < 2) fail(cell.name().c_str(), where, "inputs are [T, B, ...], got {}", given(in.xs));
  const std::int64_t T = in.xs.dim(0), B = in.xs.dim(1);
  if (state.size() != states.size())
    fail(cell.name().c_str(), where, "{} state{} needed before the first step, got {}", states.size(),
         states.size() == 1 ? " is" : "s are", state.size());
  // What is needed of the state i, if x is not that.
  const auto other_than = [&](std::size_t i, const Tensor& x) -> std::string {
    const DType dtype = states[i].complex ? complex_of(cell.dtype()) : cell.dtype();
    const Shape shape{B, states[i].width};
    if (x.defined() && x.dtype() == dtype && x.shape() == shape) return "";
    return fmt::format("{} {}", name_of(dtype), shape.str());
  };
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (const std::string needed = other_than(i, state[i]); !needed.empty())
      fail(cell.name().c_str(), where, "the state {} before the first step is {}, {} is needed", states[i].name,
           given(state[i]), needed);
  }
  // Values on a GPU would have to be waited for, and a captured step cannot read them.
  if (in.lengths.defined() && in.lengths.concrete() && in.lengths.backend().runs_in_blocks())
    check_lengths(in.lengths, T, B, 0);
  Sequence all = cell.run(state, in.cleared(), options, where);
  if (all.last.size() != states.size())
    fail(cell.name().c_str(), where, "run() gives {} last states, {} expected", all.last.size(), states.size());
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (const std::string needed = other_than(i, all.last[i]); !needed.empty())
      fail(cell.name().c_str(), where, "run() gives {} as the last state {}, {} expected", given(all.last[i]),
           states[i].name, needed);
  }
  const Shape outputs{T, B, cell.outputs()};
  if (in.every_step && (!all.hs.defined() || !(all.hs.shape() == outputs)))
    fail(cell.name().c_str(), where, "run() gives {} as hs, [T, B, outputs()] = {} expected", given(all.hs),
         outputs.str());
  if (in.every_step && all.hs.dtype() != cell.dtype())
    fail(cell.name().c_str(), where, "run() gives {} as hs, {} is expected", given(all.hs), name_of(cell.dtype()));
  return all;
}

void check_lengths(const Tensor& lengths, std::int64_t T, std::int64_t B, std::int32_t least) {
  if (!lengths.defined()) return;
  if (lengths.dtype() != DType::i32 || !(lengths.shape() == Shape{B}))
    throw Error("lengths", fmt::format("i32 [{}] is expected, got {}", B, lengths.spec().str()));
  const std::vector<std::int32_t> all = lengths.values<std::int32_t>();
  for (std::size_t b = 0; b < all.size(); ++b) {
    if (all[b] < least || all[b] > T)
      throw Error("lengths",
                  fmt::format("{} to {} time steps are expected, got {} of sequence {}", least, T, all[b], b));
  }
}

Sequence Cell::run(const Tensors& state, const CellInput& in, const ScanOptions& options, Loc where) const {
  const Tensors& kept = in.zoneout.kept;
  Tensors xs{in.xs};
  xs.insert(xs.end(), kept.begin(), kept.end());
  if (in.lengths.defined()) xs.push_back(in.valid());
  ScanResult all = scan(
      [&](const Tensors& s, const Tensors& x) {
        Tensors next = step(s, in.numbers(x[0]));
        check_step(*this, s, next);
        for (std::size_t i = 0; i < kept.size(); ++i) next[i] = reel::where(x[1 + i], s[i], next[i]);
        if (kept.empty()) next = in.zoneout.mean(s, std::move(next));
        for (std::size_t i = 0; in.lengths.defined() && i < s.size(); ++i)
          next[i] = reel::where(x.back(), next[i], s[i]);
        const Tensor y = output_of(*this, next);  // even when only the last one is requested
        return Next{std::move(next), in.every_step ? Tensors{y} : Tensors{}};
      },
      state, xs, options, where);
  return {in.every_step ? all.ys[0] : Tensor{}, std::move(all.last)};
}

namespace {
/// A function's own list: a REEL_CELL of another file may ask for the names before this file's globals exist.
const std::vector<std::pair<std::string, Tensor (*)(Arg)>>& activations() {
  static const std::vector<std::pair<std::string, Tensor (*)(Arg)>> all{
      {"relu", [](Arg x) { return relu(x); }},        {"tanh", [](Arg x) { return tanh(x); }},
      {"sigmoid", [](Arg x) { return sigmoid(x); }},  {"leaky_relu", [](Arg x) { return leaky_relu(x); }},
      {"elu", [](Arg x) { return elu(x); }},          {"softplus", [](Arg x) { return softplus(x); }},
      {"identity", [](Arg x) { return x.tensor(); }},
  };
  return all;
}
}  // namespace

std::vector<std::string> activation_names() {
  std::vector<std::string> names;
  for (const auto& [name, f] : activations()) names.push_back(name);
  return names;
}

Tensor activate(const std::string& name, Arg x) {
  for (const auto& [known, f] : activations()) {
    if (known == name) return f(x);
  }
  fail("activation", x.where, "\"{}\" is not one of {}", name, fmt::join(activation_names(), ", "));
}

Tensor linear_of_real(const Tensor& x, const Tensor& W) {
  return is_complex(W.dtype()) ? complex(linear(x, real(W)), linear(x, imag(W))) : linear(x, W);
}

}  // namespace reel
