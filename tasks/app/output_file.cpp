#include "tasks/app/output_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>

#include "tasks/app/options.h"
#include "tasks/app/run_folder.h"
#include "tasks/io/files.h"
#include "tasks/io/lower.h"

namespace reel {

namespace fs = std::filesystem;

namespace {

constexpr const char* numbers_of_pictures[] = {"states", "changes", "gradients", "eigenvalues"};

/// Where the path leads, whether or not a file is there.
fs::path place(const std::string& path) {
  std::error_code error;
  const fs::path real = fs::weakly_canonical(fs::absolute(path, error), error);
  return error ? fs::path(path) : real;
}

bool same(const std::string& a, const std::string& b) {
  std::error_code error;
  return place(a) == place(b) || fs::equivalent(a, b, error);
}

/// True for the numbers of a picture of the run, states.safetensors beside states-1-h.svg; without pictures predict may
/// keep states of that name.
bool is_of_picture(const fs::path& file) {
  const auto known = [&](const std::string& name) { return file.filename() == name + ".safetensors"; };
  if (std::none_of(std::begin(numbers_of_pictures), std::end(numbers_of_pictures), known)) return false;
  std::error_code error;
  for (fs::directory_iterator at(file.parent_path(), error), end; !error && at != end; at.increment(error))
    if (at->path().extension() == ".svg" && at->path().filename().string().starts_with(file.stem().string()))
      return true;
  return false;
}

bool is_of_run(const fs::path& file) {
  const std::string name = file.filename();
  const bool known = is_run_file(name) || name == "lock";
  std::error_code error;
  return (known || is_of_picture(file)) && fs::exists(file.parent_path() / "config.toml", error);
}

}  // namespace

void require_output_file(const std::string& option, const std::string& path,
                         const std::vector<std::pair<std::string, std::string>>& inputs) {
  if (path.empty()) return;
  require_writable(path);
  std::error_code error;
  if (fs::exists(path, error) && !fs::is_regular_file(path, error)) return;  // a device loses nothing
  for (const auto& [name, input] : inputs)
    if (!input.empty() && same(path, input))
      throw Usage(fmt::format("--{} {}: this is the file of --{}, which would be lost. Hint: another name", option,
                              path, name));
  if (is_of_run(place(path)))
    throw Usage(fmt::format(
        "--{} {}: this is a file of the run in that folder, which would be lost. Hint: another name", option, path));
}

bool has_ending(const std::string& path, std::string_view ending) { return lower(path).ends_with(ending); }

}  // namespace reel
