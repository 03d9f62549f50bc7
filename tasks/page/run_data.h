// What the folder of a run says, as pages show it.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tasks/app/run_folder.h"

namespace reel::page {

struct RunData {
  std::vector<std::pair<std::string, std::string>> options;  // of config.toml: "lr", "gru.biases"
  nlohmann::ordered_json record;                             // run.json; the task alone if it is not there yet
  std::vector<RunFolder::Row> rows;
};

/// Throws Error if the folder holds no run, or one that cannot be read.
RunData read_run(const std::string& folder);
/// The options in a config.toml; throws Error if it cannot be read.
std::vector<std::pair<std::string, std::string>> options_in(const std::string& config);

/// At most `most` rows: of each stretch of time the ones with the lowest and the highest of each number, so that no
/// peak is lost, and the last row.
std::vector<RunFolder::Row> thinned(const std::vector<RunFolder::Row>& rows, std::size_t most);

/// Rows as columns by name, as JSON.
nlohmann::ordered_json columns(const std::vector<RunFolder::Row>& rows);

/// The pictures in a folder but the curve, each {name, source}. Small ones are in the page itself, up to `room` bytes;
/// a further one is named as a file beside the page.
nlohmann::ordered_json pictures(const std::string& folder, std::size_t room);

}  // namespace reel::page
