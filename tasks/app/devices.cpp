// --device: finding the device of a name.
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "tasks/app/option.h"
#include "tasks/app/run.h"

namespace reel {

void add_device(Options& options, std::string& variable) {
  options.add("device", variable, fmt::format("device to compute on: {}", fmt::join(backend_names(), ", ")), "Run");
}

namespace {
/// ". Hint: ..." for a device of another name than those of this build.
std::string device_hint(std::string name) {
  name.resize(std::min(name.find(','), name.size()));  // --precision has added to it
  const std::vector<std::string> kinds = backend_names();
  const auto has = [&](const std::string& kind) { return std::find(kinds.begin(), kinds.end(), kind) != kinds.end(); };
  const std::string kind = name.substr(0, name.find(':'));
  if (has(kind)) return "";  // the device is known, but cannot be had
  std::string letters, number;
  for (const char c : kind)
    if (std::isalpha(static_cast<unsigned char>(c)))
      letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else if (std::isdigit(static_cast<unsigned char>(c)))
      number += c;
  if (letters != "gpu" && letters != "cuda" && letters != "nvidia") return nearest_hint(letters, kinds, "--device ");
  if (!has("cuda")) return ". Hint: build with -DREEL_CUDA=ON, then --device cuda.";
  return fmt::format(". Hint: --device cuda{}.", number.empty() ? name.substr(kind.size()) : ":" + number);
}
}  // namespace

Backend& find_device(const std::string& name) {
  try {
    return backend(name.empty() ? "cpu" : name);
  } catch (const OutOfMemory&) {
    throw;
  } catch (const Error& e) {
    throw Usage(fmt::format("--device {}: {}{}", name, e.what(), device_hint(name)));
  }
}

Backend& use_device(const std::string& name) { return set_default_backend(find_device(name).name()); }

}  // namespace reel
