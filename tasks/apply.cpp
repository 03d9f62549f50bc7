// Runs any cell with any weights on any input, all from files: to check a cell against another implementation, or to
// use weights trained elsewhere.
#include <filesystem>
#include <set>

#include "engine/core/parse.h"
#include "tasks/app/cell_weights.h"
#include "tasks/app/options_file.h"
#include "tasks/app/run.h"

namespace reel {
namespace {

struct ApplyOptions {
  std::string cell = "srnn", run, weights, input, output, weights_out, device = "cpu", dtype = "f32";
  std::int64_t input_size = 1, hidden = 128, layer = 1;
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

void save_weights(const Cell& cell, const std::string& path) {
  TensorFile file;
  for (const Parameter& p : cell.parameters()) file.tensors.emplace_back(p.name, p.value);
  save_safetensors(path, file);
}

/// The tensors of the input file: x, first states, and the cotangents of y and of the last states. What the file does
/// not have is undefined, but for first states, which are the cell's own.
struct Input {
  Tensor x, dy;
  Tensors state, dstate;
  bool differentiates() const {
    return dy.defined() || std::any_of(dstate.begin(), dstate.end(), [](const Tensor& t) { return t.defined(); });
  }
};

Input read_input(const Cell& cell, const std::string& path, const TensorFile& file, DType dtype) {
  const Tensor given = file.at("x");
  if (given.rank() != 3) throw Error(path, fmt::format("x is [T, B, {}]; got {}", cell.input, given.shape().str()));
  const std::int64_t T = given.dim(0), B = given.dim(1);
  Input in;
  std::set<std::string> known;
  const auto find = [&](const std::string& name, const Shape& shape, DType type) {
    known.insert({name, name + ".re", name + ".im"});
    return find_tensor(path, file, name, shape, type);
  };
  in.x = find("x", {T, B, cell.input}, dtype);
  in.dy = find("dy", {T, B, cell.outputs()}, dtype);
  in.state = cell.initial(B);
  for (std::size_t i = 0; i < in.state.size(); ++i) {
    Tensor& first = in.state[i];
    const std::string name = cell.states()[i].name;
    if (const Tensor found = find("state." + name, first.shape(), first.dtype()); found.defined()) first = found;
    in.dstate.push_back(find("dstate." + name, first.shape(), first.dtype()));
  }
  for (const auto& [name, tensor] : file.tensors) {
    if (!known.contains(name))
      throw Error(path, fmt::format("{} is neither x, dy nor a state of this cell (state.NAME, dstate.NAME)", name));
  }
  return in;
}

/// y and the last states for x; and if there are cotangents, the gradients of Re(sum(conj(dy) y) + sum(conj(dstate)
/// state)).
TensorFile outputs(const Cell& cell, const Input& in, double zoneout) {
  TensorFile out;
  Tape tape;
  CellInput x(in.x);
  x.zoneout.rate = zoneout;
  const Sequence all = scan(cell, in.state, x);
  const std::vector<State> specs = cell.states();
  out.tensors.emplace_back("y", all.hs);
  for (std::size_t i = 0; i < specs.size(); ++i) out.tensors.emplace_back("state." + specs[i].name, all.last[i]);
  if (!in.differentiates()) return out;
  Tensors of, cotangents, wrt{in.x};
  const auto differentiate = [&](const Tensor& value, const Tensor& cotangent) {
    if (!cotangent.defined()) return;
    of.push_back(value);
    cotangents.push_back(cotangent);
  };
  differentiate(all.hs, in.dy);
  for (std::size_t i = 0; i < specs.size(); ++i) differentiate(all.last[i], in.dstate[i]);
  std::vector<std::string> names{"grad.x"};
  for (const Parameter& p : cell.parameters()) {
    if (!p.trained) continue;
    wrt.push_back(p.value);
    names.push_back("grad." + p.name);
  }
  for (std::size_t i = 0; i < specs.size(); ++i) {
    wrt.push_back(in.state[i]);
    names.push_back("grad.state." + specs[i].name);
  }
  const Tensors gradients = grad(of, wrt, {.cotangents = cotangents});
  for (std::size_t i = 0; i < wrt.size(); ++i) out.tensors.emplace_back(names[i], gradients[i]);
  return out;
}

/// The value of an option among these words, as "--name value" or "--name=value".
std::optional<std::string> value_of(const std::vector<std::string>& words, const std::string& option) {
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i] == option && i + 1 < words.size()) return words[i + 1];
    if (words[i].starts_with(option + "=")) return words[i].substr(option.size() + 1);
  }
  return std::nullopt;
}

/// The cell and its settings of a run's layer, as options before those that were typed, which go over them. Sets
/// `zoneout` to the run's.
std::vector<std::string> with_options_of_run(int argc, const char* const* argv, double& zoneout) {
  std::vector<std::string> typed(argv, argv + argc);
  const std::optional<std::string> run = value_of(typed, "--run");
  if (!run || run->empty()) return typed;
  const std::string path = *run + "/config.toml";
  const std::size_t layer = parse<std::size_t>(value_of(typed, "--layer").value_or("1")).value_or(1);
  std::vector<std::string> all{typed.front()};
  std::vector<FileValue> values = read_options_file(path);
  for (FileValue& value : values) {  // a stack has one for each layer
    if (value.name == "zoneout") zoneout = parse<double>(value.text).value_or(0);
    if (value.name != "cell" && value.name != "hidden") continue;
    const std::vector<std::string> of_layers = split_list(value.text);
    if (of_layers.size() > 1 && layer >= 1 && layer <= of_layers.size()) value.text = of_layers[layer - 1];
  }
  const auto cell = std::find_if(values.begin(), values.end(), [](const FileValue& v) { return v.name == "cell"; });
  if (cell == values.end()) throw Usage(path + ": has no cell, so this is no run of a cell");
  for (const FileValue& value : values) {
    const bool of_cell = value.name == "cell" || value.name == "hidden" || value.name == "dtype" ||
                         value.name.starts_with(cell->text + ".");
    if (of_cell && !value_of(typed, "--" + value.name)) all.push_back("--" + value.name + "=" + value.text);
  }
  all.insert(all.end(), typed.begin() + 1, typed.end());
  return all;
}

/// The parameters that a run ended with: the best ones of a task with data, otherwise the last.
std::string weights_of_run(const std::string& run) {
  for (const char* name : {"/best.safetensors", "/checkpoint.safetensors"}) {
    if (std::filesystem::exists(run + name)) return run + name;
  }
  throw Error(run, "has neither best.safetensors nor checkpoint.safetensors");
}

/// Throws Usage for options that are missing, empty, or would have no effect.
void check_options(const ApplyOptions& o, const Options& options) {
  for (const auto& [name, value] : {std::pair<const char*, const std::string&>{"run", o.run},
                                    {"weights", o.weights},
                                    {"input", o.input},
                                    {"output", o.output},
                                    {"weights-out", o.weights_out}}) {
    if (options.given(name) && value.empty()) throw Usage(fmt::format("--{}: the name of the file is empty", name));
  }
  if (o.describe) return;
  if (o.init_only && !o.weights.empty()) throw Usage("--init-only writes a fresh start, so it takes no --weights");
  if (o.init_only && o.weights_out.empty()) throw Usage("--init-only writes to --weights-out FILE, which is not given");
  if (!o.init_only && !o.weights_out.empty()) throw Usage("--weights-out is written with --init-only only");
  if (!o.init_only && (o.input.empty() || o.output.empty()))
    throw Usage("--input X.safetensors and --output Y.safetensors are needed (or --describe, or --init-only)");
}

int apply_cell(int argc, const char* const* argv) {
  ApplyOptions o;
  Options options("apply", "Runs any cell with weights and input from safetensors files.");
  std::vector<std::string> cells;
  for (const CellType& type : cell_registry()) cells.push_back(type.name);
  options.choice("cell", o.cell, cells, "recurrent cell", "Model");
  options.add("input-size", o.input_size, "I: numbers an input has; with weights their shapes tell", "Model",
              Bounds{.low = 1, .high = most::units});
  options.add("hidden", o.hidden, "N: units of the state; with weights their shapes tell", "Model",
              Bounds{.low = 1, .high = most::units});
  options.choice("dtype", o.dtype, {"f32", "f64"}, "of parameters and states", "Model");
  options.add("seed", o.seed, "of the start, where no weights are given", "Model");
  options.flag("describe", o.describe, "print name, shape and dtype of parameters and states, and stop", "Files");
  options.add("run", o.run, "run folder: its cell, settings and weights", "Files");
  options.add("layer", o.layer, "which layer of a run's weights", "Files", Bounds{.low = 1, .high = most::layers});
  options.add("weights", o.weights,
              "W.safetensors: the parameters, also a checkpoint of a run; without it a fresh start", "Files");
  options.add("input", o.input,
              "X.safetensors: x [T, B, I], and if wanted state.NAME [B, .], and cotangents dy [T, B, outputs] and "
              "dstate.NAME [B, .]",
              "Files");
  options.add("output", o.output,
              "Y.safetensors: y, the last state.NAME, and with cotangents grad.x, grad.NAME, grad.state.NAME", "Files");
  options.flag("init-only", o.init_only, "write a fresh start to --weights-out and stop", "Files");
  options.add("weights-out", o.weights_out, "W.safetensors to write", "Files");
  add_device(options, o.device);
  options.cells();
  double zoneout = 0;  // of a run: its layers were trained to keep a part of their states
  const std::vector<std::string> words = with_options_of_run(argc, argv, zoneout);
  std::vector<const char*> pointers;
  for (const std::string& word : words) pointers.push_back(word.c_str());
  options.parse(static_cast<int>(pointers.size()), pointers.data());
  Backend& device = use_device(o.device);
  check_options(o, options);

  const CellType& type = cell_type(o.cell);
  const DType dtype = o.dtype == "f64" ? DType::f64 : DType::f32;
  if (o.weights.empty() && !o.run.empty() && !o.init_only) o.weights = weights_of_run(o.run);
  std::unique_ptr<Cell> cell;
  TensorFile weights;
  if (!o.weights.empty()) weights = tensors_of_cell(o.weights, load_safetensors(o.weights, device), o.layer);
  try {
    const Settings settings(o.cell, type.settings, options.settings(o.cell));
    if (!o.weights.empty() && !(options.given("input-size") && options.given("hidden"))) {
      const auto given = [&](const char* name, std::int64_t n) {
        return options.given(name) ? std::optional(n) : std::nullopt;
      };
      const CellSize size = size_of_weights(type, settings, o.weights, weights, given("input-size", o.input_size),
                                            given("hidden", o.hidden));
      o.input_size = size.input;
      o.hidden = size.hidden;
    }
    Init init(o.seed, dtype, device);
    cell = type.make(o.input_size, o.hidden, settings, init);
  } catch (const SettingError& e) {
    throw Usage(option_text(e));
  }
  if (!o.weights.empty()) {
    for (const std::string& note : set_parameters(*cell, o.weights, weights)) print_err("apply: {}\n", one_line(note));
  }
  if (o.describe) {
    print_description(*cell);
    return 0;
  }
  if (o.init_only) {
    save_weights(*cell, o.weights_out);
    return 0;
  }
  if (o.weights.empty()) print_err("apply: no --weights, so they are random, of --seed {}\n", o.seed);
  const Input input = read_input(*cell, o.input, load_safetensors(o.input, device), dtype);
  save_safetensors(o.output, outputs(*cell, input, zoneout));
  print_err("apply: {} with I = {}, N = {}: y {}{} in {}\n", o.cell, cell->input, cell->hidden,
            Shape{input.x.dim(0), input.x.dim(1), cell->outputs()}.str(),
            input.differentiates() ? ", last states and gradients" : " and last states", one_line(o.output));
  return 0;
}

}  // namespace
}  // namespace reel

int main(int argc, char** argv) {
  return reel::run_program("apply", [&] { return reel::apply_cell(argc, argv); });
}
