// Writes a trained model, or any cell, as an ONNX file, in which each layer is a Scan: for programs that know nothing
// of Reel.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tasks/app/cell_choice.h"
#include "tasks/app/output_file.h"
#include "tasks/app/provenance.h"
#include "tasks/app/run.h"
#include "tasks/data/table_of_run.h"
#include "tasks/data/vocabulary.h"
#include "tasks/io/files.h"
#include "tasks/to_onnx/models.h"

namespace reel {
namespace {

int to_onnx(int argc, const char* const* argv) {
  CellChoice choice;
  std::vector<std::string> runs;
  std::string output;
  bool lengths = false;
  Options options(
      "to_onnx",
      "Exports a model as an ONNX file (opset 17). RUN is a run folder; without it, the model is one cell.\n\n"
      "  to_onnx runs/mine --output mine.onnx\n"
      "  to_onnx --cell lstm --weights W.safetensors --output lstm.onnx\n\n"
      "Inputs: x [time, batch, I], and optionally the initial states, first.NAME [batch, N]. Outputs: y and "
      "the final states, last.NAME. See docs/onnx.md.");
  options.arguments("RUN", runs);
  choice.add(options);
  choice.add_weights(options);
  options.add("output", output, "FILE.onnx to write", "Files");
  options.flag("lengths", lengths,
               "the model also takes `lengths` [batch]: number of steps of each sequence; the rest is padding",
               "Files");
  options.cells();
  options.parse(argc, argv);
  if (runs.size() > 1) throw Usage(fmt::format("the folder of one run is expected, got {}", runs.size()));
  if (output.empty()) throw Usage("--output: the name of the file is needed, FILE.onnx");
  if (std::error_code error; !has_ending(output, ".onnx") && (!std::filesystem::exists(output, error) ||
                                                              std::filesystem::is_regular_file(output, error)))
    throw Usage(fmt::format("--output {}: a name that ends with .onnx is expected", output));
  require_output_file("output", output, {{"weights", choice.weights}, {"config", options.config()}});
  if (options.given("weights") && choice.weights.empty()) throw Usage("--weights: the name of the file is empty");
  if (options.given("layer") && choice.weights.empty())
    throw Usage("--layer chooses from the --weights of a run, which are not given");
  for (const char* name : {"cell", "input-size", "hidden", "dtype", "seed", "weights"})
    if (!runs.empty() && options.given(name))
      throw Usage(fmt::format("--{}: RUN has this setting already; leave it out", name));
  if (!runs.empty() && !options.settings(choice.cell).empty())
    throw Usage(fmt::format("--{}.{}: RUN has this setting already; leave it out", choice.cell,
                            options.settings(choice.cell).begin()->first));
  use_device("cpu");

  std::string what;
  std::string bytes;
  if (runs.empty()) {
    if (choice.weights.empty()) print_err("to_onnx: no --weights, so they are random, of --seed {}\n", choice.seed);
    const std::unique_ptr<Cell> cell = choice.make(options, "to_onnx", backend());
    what = fmt::format("{} with I = {}, N = {}", choice.cell, cell->input, cell->hidden);
    bytes = onnx_of_cell(choice.cell, *cell, lengths).bytes(version());
  } else {
    const TrainedModel trained = load_trained_model(runs[0]);
    const std::optional<TableSpec> spec = table_of_run(runs[0], trained.config.task);
    OnnxGraph graph = onnx_of_model(trained, spec, lengths);
    if (const auto characters = vocabulary_of_run(runs[0], trained.config.shape.vocabulary); !characters.empty())
      graph.metadata("reel.characters", nlohmann::json(characters).dump());
    what = "parameters of " + one_line(trained.weights);
    bytes = graph.bytes(version());
  }
  write_atomically(output, bytes);
  print_err("to_onnx: {}: {} bytes in {}\n", what, bytes.size(), one_line(output));
  return 0;
}

}  // namespace
}  // namespace reel

int main(int argc, char** argv) {
  return reel::run_program("to_onnx", [&] { return reel::to_onnx(argc, argv); });
}
