// Pictures of what a trained network does: those of every stack of cells, and the interface for those of a task.
#pragma once
#include <functional>
#include <memory>

#include "tasks/app/options.h"
#include "tasks/app/picture_style.h"
#include "tasks/app/run_folder.h"
#include "tasks/training/task.h"

namespace reel {

/// A finished run.
struct Ended {
  const Task& task;
  const Model& model;
  const RunFolder& folder;
  std::uint64_t seed;
  std::vector<std::uint64_t> streams;  // of the first validation batch
  bool quiet = false;                  // no progress output
  PictureStyle style = {};
  /// Makes the model as it was before the first update; throws FileError if where it started from cannot be read.
  std::function<std::unique_ptr<Model>()> untrained = {};
};

/// A picture that --picture NAME draws into the run's folder.
struct Picture {
  std::string name, help;
  std::function<void(const Ended&)> draw;
};

struct PictureOptions {
  std::string names, size, font;
  /// Throws Usage.
  PictureStyle style() const { return picture_style("picture-size", size, "picture-font", font); }
};

/// Adds --picture NAME,NAME, --picture-size and --picture-font.
void add_pictures(Options& options, PictureOptions& variables, const std::vector<Picture>& known);
/// The pictures in this list; throws Usage for an unknown one.
std::vector<Picture> chosen_pictures(const std::string& names, const std::vector<Picture>& known);

/// Prints where a picture is, or why there is none.
void print_picture(const std::string& svg, const std::optional<std::string>& problem);

/// The pictures states, changes, gradients and eigenvalues, of all layers: the first three of all states, for
/// validation sequences. Their values are saved next to them, as NAME.safetensors.
std::vector<Picture> pictures_of_cells();

}  // namespace reel
