// Pictures of what a trained network does: those that every stack of cells has, and the form of those that a task adds.
#pragma once
#include <functional>

#include "tasks/harness/options.h"
#include "tasks/harness/run_folder.h"
#include "tasks/harness/task.h"

namespace reel {

/// A run that has ended.
struct Ended {
  const Task& task;
  const Model& model;
  const RunFolder& folder;
  std::uint64_t seed;
  std::vector<std::uint64_t> streams;  // the first ones that it was validated on
  bool quiet = false;                  // no progress
};

/// One that --picture NAME draws, into the run's folder.
struct Picture {
  std::string name, help;
  std::function<void(const Ended&)> draw;
};

/// Adds --picture NAME,NAME.
void add_pictures(Options& options, std::string& variable, const std::vector<Picture>& known);
/// Those that it names; throws Usage for one that is not known.
std::vector<Picture> chosen_pictures(const std::string& names, const std::vector<Picture>& known);

/// Prints where a picture is, or why there is none.
void print_picture(const std::string& svg, const std::optional<std::string>& problem);

/// states, changes, gradients: of all states of all layers, for sequences of the validation set. Beside the pictures
/// lie the numbers, as NAME.safetensors.
std::vector<Picture> pictures_of_cells();

}  // namespace reel
