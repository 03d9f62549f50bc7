#include "tasks/app/observers.h"

#include <fmt/core.h>

#include "tasks/app/preset.h"
#include "tasks/app/tensorboard.h"
#include "tasks/page/run_page.h"

namespace reel {

namespace {

/// The preset, or nothing if there is none of this name any more.
std::string still_there(const std::string& preset, const std::string& task) try {
  return preset.empty() ? "" : find_preset(preset, task).preset.name;
} catch (const Error&) {
  return "";
}

}  // namespace

std::vector<std::unique_ptr<Observer>> observers_of(const Shared& s, const RunFolder& folder, const std::string& title,
                                                    const std::string& task) {
  std::vector<std::unique_ptr<Observer>> out;
  if (!s.no_report)
    out.push_back(std::make_unique<page::RunPage>(fmt::format("{} with {}", title, s.cell),
                                                  still_there(s.train.preset, task), task));
  if (!s.tensorboard.empty()) out.push_back(std::make_unique<TensorBoard>(s.tensorboard, folder));
  return out;
}

}  // namespace reel
