#include "tasks/app/cell_choice.h"

#include <utility>

#include "tasks/app/cell_weights.h"
#include "tasks/io/output.h"
#include "tasks/training/trained_model.h"

namespace reel {

void CellChoice::add(Options& options) {
  options.choice("cell", cell, cell_names(), "recurrent cell", "Model");
  options.add("input-size", input_size, "I: input size; with weights: from their shapes", "Model",
              Bounds{.low = 1, .high = most::units});
  options.add("hidden", hidden, "N: hidden size; with weights: from their shapes", "Model",
              Bounds{.low = 1, .high = most::units});
  options.choice("dtype", dtype, {"f32", "f64"}, "data type of parameters and states", "Model");
  options.add("seed", seed, "random seed of the initial values, unless weights are given", "Model");
}

void CellChoice::add_weights(Options& options) {
  options.add("layer", layer, "only this layer of the run, without embedding and read-out", "Files",
              Bounds{.low = 1, .high = most::layers});
  options.add("weights", weights, "W.safetensors: parameters, or a checkpoint of a run; empty: initial values",
              "Files");
}

std::unique_ptr<Cell> CellChoice::make(const Options& options, const std::string& program, Backend& device) const {
  const CellType& type = cell_type(cell);
  TensorFile file;
  if (!weights.empty()) {
    TensorFile all = load_safetensors(weights, device);
    if (!or_untrained) require_updates(weights, all);
    file = tensors_of_cell(weights, std::move(all), layer);
  }
  CellSize size{input_size, hidden};
  std::unique_ptr<Cell> made;
  try {
    const Settings settings(cell, type.settings, options.settings(cell));
    if (!weights.empty() && !(options.given("input-size") && options.given("hidden"))) {
      const auto given = [&](const char* name, std::int64_t n) {
        return options.given(name) ? std::optional(n) : std::nullopt;
      };
      size = size_of_weights(type, settings, weights, file, given("input-size", input_size), given("hidden", hidden));
    }
    Init init(seed, dtype == "f64" ? DType::f64 : DType::f32, device);
    made = type.make(size.input, size.hidden, settings, init);
  } catch (const SettingError& e) {
    throw Usage(option_text(e));
  }
  if (!weights.empty()) {
    for (const std::string& note : set_parameters(*made, weights, file)) print_err("{}: {}\n", program, one_line(note));
  }
  return made;
}

}  // namespace reel
