// Runs any cell with any weights on any input, all from files: to check a cell against another implementation, or to
// use weights trained elsewhere.
#include "tasks/app/run.h"
#include "tasks/training/device.h"
#include "tasks/training/safetensors.h"

namespace reel {
namespace {

struct ApplyOptions {
  std::string cell = "srnn", weights, input, output, weights_out, device = "cpu", dtype = "f32";
  std::int64_t input_size = 1, hidden = 128;
  std::uint64_t seed = 1;
  bool describe = false, init_only = false;
};

void print_description(const Cell& cell) {
  std::int64_t total = 0;
  for (const Parameter& p : cell.parameters()) {
    print_out("{}\t{}\t{}\n", p.name, p.value.shape().str(), name_of(p.value.dtype()));
    total += p.count();
  }
  const Tensors initial = cell.initial(1);
  for (std::size_t i = 0; i < initial.size(); ++i) {
    const State s = cell.states()[i];
    print_out("state.{}\t(B, {})\t{}\n", s.name, s.width, name_of(initial[i].dtype()));
  }
  print_out("total\t{}\n", total);
}

/// A tensor of a file, cast to the expected dtype. Throws Error naming it if its shape or its kind of dtype does not
/// fit.
Tensor fitting(const std::string& path, const std::string& name, const Tensor& found, const Shape& shape, DType dtype) {
  if (!(found.shape() == shape))
    throw Error(path, fmt::format("{} has shape {}, {} expected", name, found.shape().str(), shape.str()));
  if (is_complex(found.dtype()) && !is_complex(dtype))
    throw Error(path, fmt::format("{} is complex ({}), real numbers expected", name, name_of(found.dtype())));
  if (is_differentiable(found.dtype()) != is_differentiable(dtype))
    throw Error(path, fmt::format("{} is {}, {} expected", name, name_of(found.dtype()), name_of(dtype)));
  return cast(found, dtype);
}

/// Sets the cell's parameters. Fixed ones may be missing from the file, because the cell has values for them.
void load_weights(const Cell& cell, const std::string& path) {
  const TensorFile file = load_safetensors(path, cell.parameters().front().value.backend());
  std::map<std::string, bool> used;
  std::string missing;
  for (const Parameter& p : cell.parameters()) {
    const auto found =
        std::find_if(file.tensors.begin(), file.tensors.end(), [&](const auto& t) { return t.first == p.name; });
    used[p.name] = true;
    if (found == file.tensors.end()) {
      if (p.trained) missing += (missing.empty() ? "" : ", ") + p.name;
      continue;
    }
    fill_from(fitting(path, p.name, found->second, p.value.shape(), p.value.dtype()), p.value);
  }
  std::string extra;
  for (const auto& [name, tensor] : file.tensors) {
    if (!used.contains(name)) extra += (extra.empty() ? "" : ", ") + name;
  }
  if (!missing.empty()) throw Error(path, fmt::format("missing: {}. Hint: --describe lists what is expected", missing));
  if (!extra.empty()) throw Error(path, fmt::format("the cell has no {}. Hint: --describe lists what it has", extra));
}

void save_weights(const Cell& cell, const std::string& path) {
  TensorFile file;
  for (const Parameter& p : cell.parameters()) file.tensors.emplace_back(p.name, p.value);
  save_safetensors(path, file);
}

/// Computes y and the last states for x, and the gradients of Re sum(conj(dy) y) if dy is given.
TensorFile outputs(const Cell& cell, const std::string& path, DType dtype, Backend& device) {
  const TensorFile file = load_safetensors(path, device);
  const Tensor given = file.at("x");
  if (given.rank() != 3) throw Error(path, fmt::format("x is [T, B, {}]; got {}", cell.input, given.shape().str()));
  const std::int64_t T = given.dim(0), B = given.dim(1);
  const Tensor x = fitting(path, "x", given, {T, B, cell.input}, dtype);

  Tensors state = cell.initial(B);
  const std::vector<State> specs = cell.states();
  Tensor dy;
  for (const auto& [name, tensor] : file.tensors) {
    if (name == "x") continue;
    if (name == "dy") {
      dy = fitting(path, name, tensor, {T, B, cell.outputs()}, dtype);
      continue;
    }
    const auto spec =
        std::find_if(specs.begin(), specs.end(), [&](const State& s) { return "state." + s.name == name; });
    if (spec == specs.end()) throw Error(path, fmt::format("{} is neither x, dy nor a state of this cell", name));
    Tensor& s = state[static_cast<std::size_t>(spec - specs.begin())];
    s = fitting(path, name, tensor, s.shape(), s.dtype());
  }

  TensorFile out;
  Tape tape;
  const Sequence all = scan(cell, state, x);
  out.tensors.emplace_back("y", all.hs);
  for (std::size_t i = 0; i < specs.size(); ++i) out.tensors.emplace_back("state." + specs[i].name, all.last[i]);
  if (!dy.defined()) return out;
  Tensors wrt{x};
  std::vector<std::string> names{"grad.x"};
  for (const Parameter& p : cell.parameters()) {
    if (!p.trained) continue;
    wrt.push_back(p.value);
    names.push_back("grad." + p.name);
  }
  for (std::size_t i = 0; i < specs.size(); ++i) {
    wrt.push_back(state[i]);
    names.push_back("grad.state." + specs[i].name);
  }
  const Tensors gradients = grad({all.hs}, wrt, {.cotangents = {dy}});
  for (std::size_t i = 0; i < wrt.size(); ++i) out.tensors.emplace_back(names[i], gradients[i]);
  return out;
}

int apply_cell(int argc, const char* const* argv) {
  ApplyOptions o;
  Options options("apply", "Runs any cell with weights and input from safetensors files.");
  std::vector<std::string> cells;
  for (const CellType& type : cell_registry()) cells.push_back(type.name);
  options.choice("cell", o.cell, cells, "recurrent cell", "Model");
  options.add("input-size", o.input_size, "I: numbers an input has", "Model", Bounds{.low = 1, .high = most::units});
  options.add("hidden", o.hidden, "N: units of the state", "Model", Bounds{.low = 1, .high = most::units});
  options.choice("dtype", o.dtype, {"f32", "f64"}, "of parameters and states", "Model");
  options.add("seed", o.seed, "of the start, where no weights are given", "Model");
  options.flag("describe", o.describe, "print name, shape and dtype of parameters and states, and stop", "Files");
  options.add("weights", o.weights, "W.safetensors: the parameters; without it a fresh start", "Files");
  options.add("input", o.input, "X.safetensors: x [T, B, I], and if wanted state.NAME [B, .] and dy [T, B, outputs]",
              "Files");
  options.add("output", o.output,
              "Y.safetensors: y, the last state.NAME, and with dy grad.x, grad.NAME, grad.state.NAME", "Files");
  options.flag("init-only", o.init_only, "write a fresh start to --weights-out and stop", "Files");
  options.add("weights-out", o.weights_out, "W.safetensors to write", "Files");
  add_device(options, o.device);
  options.cells();
  options.parse(argc, argv);

  const CellType& type = cell_type(o.cell);
  const DType dtype = o.dtype == "f64" ? DType::f64 : DType::f32;
  std::unique_ptr<Cell> cell;
  Backend& device = use_device(o.device);
  try {
    Init init(o.seed, dtype, device);
    cell = type.make(o.input_size, o.hidden, Settings(o.cell, type.settings, options.settings(o.cell)), init);
  } catch (const Error& e) {
    throw Usage(option_text(e));
  }
  if (o.describe) {
    print_description(*cell);
    return 0;
  }
  if (o.init_only) {
    if (o.weights_out.empty()) throw Usage("--init-only writes to --weights-out FILE, which is not given");
    save_weights(*cell, o.weights_out);
    return 0;
  }
  if (o.input.empty() || o.output.empty())
    throw Usage("--input X.safetensors and --output Y.safetensors are needed (or --describe, or --init-only)");
  if (!o.weights.empty()) load_weights(*cell, o.weights);
  save_safetensors(o.output, outputs(*cell, o.input, dtype, device));
  return 0;
}

}  // namespace
}  // namespace reel

int main(int argc, char** argv) {
  return reel::run_program("apply", [&] { return reel::apply_cell(argc, argv); });
}
