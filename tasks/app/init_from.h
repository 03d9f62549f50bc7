// The parameters of another run to start from: --init-from.
#pragma once
#include <string>
#include <vector>

#include "tasks/training/model_file.h"

namespace reel {

/// Takes the parameters that --init-from names; `config` is of the model, if model.json can describe it. Throws
/// SettingError for those of another model, with the options that differ where that is known, and FileError for a
/// damaged file or a run that has done no update.
void start_from(const std::string& from, const Model& model, const ModelConfig* config);

/// The options by which a model differs from that of the run that the parameters are from, by name: "--gru.reset was
/// before and is after". Empty if there are none, or nobody knows, as for a file beside no model.json.
std::vector<std::string> changed_options(const std::string& from, const ModelConfig& now);

}  // namespace reel
