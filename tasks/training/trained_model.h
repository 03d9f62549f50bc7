// The model of a run folder with its trained parameters.
#pragma once
#include <string>

#include "tasks/training/model_file.h"
#include "tasks/training/safetensors.h"

namespace reel {

struct TrainedModel {
  ModelConfig config;
  Model model;
  std::string weights;  // the file that the parameters are from
};

/// The model of a run, with the parameters of its best validation, or those of its checkpoint if it keeps no best ones.
/// Throws Error naming the file that is missing, damaged, of another model, or, without `or_untrained`, of a run that
/// has done no update.
TrainedModel load_trained_model(const std::string& run, bool or_untrained = false);
/// Throws Error if these are the tensors of a checkpoint before the first update.
void require_updates(const std::string& path, const TensorFile& file);
/// Gives a model the parameters of a run, those of its best validation, or of a safetensors file, which may also hold
/// what a checkpoint does: the optimiser's state and carried states. Throws Error naming the file and what does not
/// fit.
void take_parameters(const std::string& run_or_file, const Model& model);
/// The folder of the run that these parameters are from, if they are of one.
std::string run_of_parameters(const std::string& run_or_file);

}  // namespace reel
