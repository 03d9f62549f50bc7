// Runs any cell, or the model of a run, with any weights on any input, all from files: to check a cell against another
// implementation, or to use weights trained elsewhere.
#include <algorithm>
#include <filesystem>
#include <set>

#include "tasks/app/cell_choice.h"
#include "tasks/app/cell_weights.h"
#include "tasks/app/options_file.h"
#include "tasks/app/output_file.h"
#include "tasks/app/run.h"
#include "tasks/apply/subject.h"

namespace reel {
namespace {

struct ApplyOptions {
  CellChoice choice;
  std::string run, input, output, weights_out, device = "cpu";
  bool describe = false, init_only = false;
};

void print_description(const Subject& subject) {
  std::int64_t total = 0;
  for (const Parameter& p : subject.parameters) {
    print_out("{}\t{}\t{}{}\n", p.name, p.value.shape().str(), name_of(p.value.dtype()), p.trained ? "" : "\tfixed");
    total += p.count();
  }
  const Tensors initial = subject.initial(1);
  for (std::size_t i = 0; i < initial.size(); ++i) {
    const State& s = subject.states[i];
    print_out("state.{}\t(B, {})\t{}\n", s.name, s.width, name_of(initial[i].dtype()));
  }
  print_out("y\t({}B, {})\t{}\n", subject.every_step ? "T, " : "", subject.outputs, name_of(subject.dtype));
  print_out("total\t{}\n", total);
}

void save_weights(const Cell& cell, const std::string& path) {
  TensorFile file;
  for (const Parameter& p : cell.parameters()) file.tensors.emplace_back(p.name, p.value);
  save_safetensors(path, file);
}

/// The tensors of the input file: x, first states, and the cotangents of y and of the last states. What the file does
/// not have is undefined.
struct Input {
  Tensor x, lengths, dy;
  Tensors state, dstate;
  bool differentiates() const {
    return dy.defined() || std::any_of(dstate.begin(), dstate.end(), [](const Tensor& t) { return t.defined(); });
  }
};

/// The shape of y for T steps of a batch.
Shape shape_of_y(const Subject& subject, std::int64_t T, std::int64_t B) {
  return subject.every_step ? Shape{T, B, subject.outputs} : Shape{B, subject.outputs};
}

Input read_input(const Subject& subject, const std::string& path, const TensorFile& file) {
  if (std::none_of(file.tensors.begin(), file.tensors.end(), [](const auto& t) { return t.first == "x"; }))
    throw Error(path, "has no tensor x, the input [T, B, .]");
  const Tensor given = file.at("x");
  const bool symbols = subject.inputs == 0;
  if (given.rank() != (symbols ? 2 : 3))
    throw Error(path, symbols ? fmt::format("x is symbols, i32 [T, B]; got {}", given.spec().str())
                              : fmt::format("x is [T, B, {}]; got {}", subject.inputs, given.shape().str()));
  const std::int64_t T = given.dim(0), B = given.dim(1);
  Input in;
  std::set<std::string> known;
  const auto find = [&](const std::string& name, const Shape& shape, DType type) {
    known.insert({name, name + ".re", name + ".im"});
    return find_tensor(path, file, name, shape, type);
  };
  in.x = symbols ? find("x", {T, B}, DType::i32) : find("x", {T, B, subject.inputs}, subject.dtype);
  in.lengths = find("lengths", {B}, DType::i32);
  try {
    check_lengths(in.lengths, T, B);
  } catch (const Error& e) {
    throw Error(path, e.what());
  }
  in.dy = find("dy", shape_of_y(subject, T, B), subject.dtype);
  const Tensors own = subject.initial(B);
  for (std::size_t i = 0; i < own.size(); ++i) {
    const std::string name = subject.states[i].name;
    in.state.push_back(find("state." + name, own[i].shape(), own[i].dtype()));
    in.dstate.push_back(find("dstate." + name, own[i].shape(), own[i].dtype()));
  }
  for (const auto& [name, tensor] : file.tensors) {
    if (!known.contains(name))
      throw Error(path, fmt::format("{} is neither x, lengths, dy nor a state (state.NAME, dstate.NAME): --describe "
                                    "lists the states",
                                    name));
  }
  return in;
}

/// y and the last states for x; and if there are cotangents, the gradients of Re(sum(conj(dy) y) + sum(conj(dstate)
/// state)).
TensorFile outputs(const Subject& subject, const Input& in) {
  TensorFile out;
  Tape tape;
  Tensors first = subject.initial(in.x.dim(1));  // on the tape: they may be made of parameters
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (in.state[i].defined()) first[i] = in.state[i];
  }
  const Sequence all = subject.run(first, in.x, in.lengths);
  const std::vector<State>& states = subject.states;
  out.tensors.emplace_back("y", all.hs);
  for (std::size_t i = 0; i < states.size(); ++i) out.tensors.emplace_back("state." + states[i].name, all.last[i]);
  if (!in.differentiates()) return out;
  Tensors of, cotangents, wrt;
  std::vector<std::string> names;
  const auto differentiate = [&](const Tensor& value, const Tensor& cotangent) {
    if (!cotangent.defined()) return;
    of.push_back(value);
    cotangents.push_back(cotangent);
  };
  const auto with_respect_to = [&](const std::string& name, const Tensor& value) {
    names.push_back("grad." + name);
    wrt.push_back(value);
  };
  differentiate(all.hs, in.dy);
  for (std::size_t i = 0; i < states.size(); ++i) differentiate(all.last[i], in.dstate[i]);
  if (subject.inputs > 0) with_respect_to("x", in.x);
  for (const Parameter& p : subject.parameters) {
    if (p.trained) with_respect_to(p.name, p.value);
  }
  for (std::size_t i = 0; i < states.size(); ++i) with_respect_to("state." + states[i].name, first[i]);
  const Tensors gradients = grad(of, wrt, {.cotangents = cotangents});
  for (std::size_t i = 0; i < wrt.size(); ++i) out.tensors.emplace_back(names[i], gradients[i]);
  return out;
}

/// The cell of a layer of a run and its settings, by name. Runs of older versions, of one kind of cell, have no
/// model.json.
std::vector<FileValue> options_of_layer(const std::string& run, std::int64_t layer) {
  if (!std::filesystem::exists(run + "/model.json")) {
    std::vector<FileValue> values = read_options_file(run + "/config.toml");
    const auto cell = std::find_if(values.begin(), values.end(), [](const FileValue& v) { return v.name == "cell"; });
    if (cell == values.end()) throw Usage(run + "/config.toml: has no cell, so this is no run of a cell");
    const std::string settings = cell->text + ".";
    std::erase_if(values, [&](const FileValue& v) {
      return v.name != "cell" && v.name != "hidden" && v.name != "dtype" && !v.name.starts_with(settings);
    });
    return values;
  }
  const ModelConfig config = load_model_config(run + "/model.json");
  const std::vector<LayerOptions> layers = layers_of(config.options);
  const LayerOptions& chosen =
      layers[static_cast<std::size_t>(std::clamp<std::int64_t>(layer, 1, std::ssize(layers)) - 1)];
  std::vector<FileValue> values;
  const auto add = [&](const std::string& name, const std::string& value) {
    values.push_back({.name = name, .type = "string", .text = value, .where = run});
  };
  add("cell", chosen.cell);
  add("hidden", std::to_string(chosen.hidden));
  add("dtype", std::string(name_of(config.dtype)));
  for (const auto& [name, value] : chosen.settings) add(chosen.cell + "." + name, value);
  return values;
}

/// With --run and --layer: the cell of the layer and its settings, where the user gives no others.
std::vector<FileValue> options_of_run(const ApplyOptions& o, const Options& options) {
  if (o.run.empty() || !options.given("layer")) return {};
  std::vector<FileValue> values = options_of_layer(o.run, o.choice.layer);
  const auto cell = std::find_if(values.begin(), values.end(), [](const FileValue& v) { return v.name == "cell"; });
  if (options.given("cell") && o.choice.cell != cell->text)  // a setting is "CELL.NAME"
    std::erase_if(values, [](const FileValue& v) { return v.name.find('.') != v.name.npos; });
  return values;
}

/// Parses the command line and the file; that of a run has options that apply has not.
void parse_or_say(Options& options, int argc, const char* const* argv) try {
  options.parse(argc, argv);
} catch (const Usage& e) {
  const std::string& config = options.config();
  const std::filesystem::path folder = std::filesystem::path(config).parent_path();
  const bool of_file = !config.empty() && std::string(e.what()).starts_with(config + ":");
  if (!of_file || !std::filesystem::exists(folder / "checkpoint.safetensors")) throw;
  throw Usage(
      fmt::format("--config {}: this is the file of a run, which has options that apply has not. Hint: --run {}",
                  config, folder.string()));
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
                                    {"weights", o.choice.weights},
                                    {"input", o.input},
                                    {"output", o.output},
                                    {"weights-out", o.weights_out}}) {
    if (options.given(name) && value.empty()) throw Usage(fmt::format("--{}: the name of the file is empty", name));
  }
  if (!o.run.empty() && !options.given("layer")) {
    std::vector<std::string> not_taken{"cell", "input-size", "hidden", "dtype", "seed", "weights", "init-only"};
    std::erase_if(not_taken, [&](const std::string& name) { return !options.given(name); });
    for (const auto& [name, value] : options.settings(o.choice.cell)) not_taken.push_back(o.choice.cell + "." + name);
    if (!not_taken.empty())
      throw Usage(
          fmt::format("--{}: --run alone takes the whole model as it was trained. Hint: --layer 1 takes the cell "
                      "of a layer",
                      not_taken[0]));
  }
  if (options.given("layer") && o.run.empty() && o.choice.weights.empty())
    throw Usage("--layer chooses from a --run or its --weights, which are not given");
  if (o.describe && !o.weights_out.empty())
    throw Usage("--weights-out: --describe writes no file. Hint: --init-only in its place");
  if (o.describe) return;
  if (o.init_only && !o.choice.weights.empty())
    throw Usage("--init-only writes a fresh start, so it takes no --weights");
  if (o.init_only && o.weights_out.empty()) throw Usage("--init-only writes to --weights-out FILE, which is not given");
  if (!o.init_only && !o.weights_out.empty()) throw Usage("--weights-out is written with --init-only only");
  if (!o.init_only && (o.input.empty() || o.output.empty()))
    throw Usage("--input X.safetensors and --output Y.safetensors are needed (or --describe, or --init-only)");
  for (const auto& [name, path] :
       {std::pair<const char*, const std::string&>{"output", o.output}, {"weights-out", o.weights_out}})
    require_output_file(name, path, {{"input", o.input}, {"weights", o.choice.weights}, {"config", options.config()}});
}

/// Runs the subject on the input file, or describes it.
void apply_subject(const Subject& subject, const ApplyOptions& o, Backend& device) {
  if (o.describe) return print_description(subject);
  const Input input = read_input(subject, o.input, load_safetensors(o.input, device));
  save_safetensors(o.output, outputs(subject, input));
  const std::string states = subject.states.empty() ? "" : " and last states";
  print_err("apply: {}: y {}{} in {}\n", subject.text, shape_of_y(subject, input.x.dim(0), input.x.dim(1)).str(),
            input.differentiates() ? (states.empty() ? " and gradients" : ", last states and gradients") : states,
            one_line(o.output));
}

int apply_files(int argc, const char* const* argv) {
  ApplyOptions o;
  CellChoice& choice = o.choice;
  Options options("apply",
                  "Runs any cell, or the model of a run, with weights and input from safetensors files.\n\n"
                  "  apply --cell lstm --weights W.safetensors --input X.safetensors --output Y.safetensors\n"
                  "  apply --run runs/mine --input X.safetensors --output Y.safetensors");
  choice.add(options);
  options.flag("describe", o.describe, "print name, shape and dtype of parameters, states and y, and exit", "Files");
  options.add("run", o.run, "run folder: use its whole model; with --layer only the cell of that layer", "Files");
  choice.add_weights(options);
  options.add("input", o.input,
              "X.safetensors: x [T, B, I], and optionally lengths [B], state.NAME [B, .], and cotangents dy [T, B, "
              "outputs] and dstate.NAME [B, .]",
              "Files");
  options.add("output", o.output,
              "Y.safetensors: y, the final state.NAME, and with cotangents grad.x, grad.NAME, grad.state.NAME",
              "Files");
  options.flag("init-only", o.init_only, "write initial values to --weights-out and exit", "Files");
  options.add("weights-out", o.weights_out, "W.safetensors to write", "Files");
  add_device(options, o.device);
  options.cells();
  options.fall_back_on([&] { return options_of_run(o, options); });
  parse_or_say(options, argc, argv);
  Backend& device = use_device(o.device);
  check_options(o, options);

  if (!o.run.empty() && !options.given("layer")) {
    const TrainedModel trained = load_trained_model(o.run, o.describe);
    print_err("apply: parameters of {}\n", one_line(trained.weights));
    apply_subject(subject_of(trained), o, device);
    return 0;
  }
  if (choice.weights.empty() && !o.run.empty() && !o.init_only) choice.weights = weights_of_run(o.run);
  choice.or_untrained = o.describe;
  const std::unique_ptr<Cell> cell = choice.make(options, "apply", device);
  if (o.init_only) {
    save_weights(*cell, o.weights_out);
    return 0;
  }
  if (choice.weights.empty() && !o.describe)
    print_err("apply: no --weights, so they are random, of --seed {}\n", choice.seed);
  const std::string config = o.run + "/model.json";
  const double zoneout =
      !o.run.empty() && std::filesystem::exists(config) ? load_model_config(config).options.zoneout : 0;
  apply_subject(subject_of(choice.cell, *cell, zoneout), o, device);
  return 0;
}

}  // namespace
}  // namespace reel

int main(int argc, char** argv) {
  return reel::run_program("apply", [&] { return reel::apply_files(argc, argv); });
}
