#include "tasks/harness/checkpoint.h"

#include <algorithm>
#include <filesystem>

#include "engine/parse.h"
#include "tasks/harness/safetensors.h"

namespace reel {

namespace {

using Named = std::vector<std::pair<std::string, Tensor>>;

Named parameters_of(const Model& model) {
  Named all;
  for (const Parameter& p : model.parameters()) all.emplace_back(p.name, p.value);
  return all;
}

Named everything(const Model& model, const Optimizer& optimizer) {
  Named all = parameters_of(model);
  const auto state = optimizer.state();
  all.insert(all.end(), state.begin(), state.end());
  return all;
}

template <class T>
T number(const TensorFile& file, const std::string& path, const std::string& key) {
  const auto found = file.metadata.find(key);
  const std::optional<T> value = found == file.metadata.end() ? std::nullopt : parse<T>(found->second);
  if (value) return *value;
  throw Error("checkpoint", fmt::format("{}: \"{}\" is missing or not a number", path, key));
}

/// Throws Error unless the file has all these tensors, of the same kind, and `others` besides.
void check_places(const TensorFile& file, const std::string& path, const Named& places, std::size_t others) {
  for (const auto& [name, place] : places) {
    const Tensor& saved = file.at(name);
    if (!(saved.spec() == place.spec()))
      throw Error("checkpoint",
                  fmt::format("{}: {} is {}, the model has {}", path, name, saved.spec().str(), place.spec().str()));
  }
  if (file.tensors.size() != places.size() + others)
    throw Error("checkpoint",
                fmt::format("{}: holds {} tensors, the model has {}", path, file.tensors.size(), places.size()));
}

void fill(const TensorFile& file, const Named& places) {
  for (const auto& [name, place] : places) {
    Tensor target = place;
    target.assign(file.at(name));
  }
}

constexpr const char* carried = "carry.";  // and a number

}  // namespace

void save_checkpoint(const std::string& path, const Model& model, const Optimizer& optimizer, const Schedule& schedule,
                     std::uint64_t seed, const Progressed& at) {
  TensorFile file;
  file.tensors = everything(model, optimizer);
  for (std::size_t i = 0; i < at.carry.size(); ++i)
    file.tensors.emplace_back(fmt::format("{}{}", carried, i), at.carry[i]);
  file.metadata = {{"step", fmt::format("{}", at.step)},
                   {"seed", fmt::format("{}", seed)},
                   {"seconds", fmt::format("{}", at.seconds)},
                   {"updates", fmt::format("{}", optimizer.steps())},
                   {"schedule", schedule.state()},
                   {"running_steps", fmt::format("{}", at.running.steps)},
                   {"running_loss", fmt::format("{}", at.running.loss)},
                   {"running_grad_norm", fmt::format("{}", at.running.grad_norm)}};
  save_safetensors(path, file);
}

Progressed load_checkpoint(const std::string& path, const Model& model, Optimizer& optimizer, Schedule& schedule,
                           std::uint64_t seed) {
  const auto places = everything(model, optimizer);
  const TensorFile file = load_safetensors(path, places.front().second.backend());
  if (number<std::uint64_t>(file, path, "seed") != seed)
    throw Error("checkpoint", fmt::format("{}: belongs to a run with another seed", path));
  const auto states = std::count_if(file.tensors.begin(), file.tensors.end(),
                                    [](const auto& tensor) { return tensor.first.starts_with(carried); });
  check_places(file, path, places, static_cast<std::size_t>(states));
  Progressed at{number<std::int64_t>(file, path, "step"),
                number<double>(file, path, "seconds"),
                {number<std::int64_t>(file, path, "running_steps"), number<double>(file, path, "running_loss"),
                 number<double>(file, path, "running_grad_norm")}};
  const auto updates = number<std::int64_t>(file, path, "updates");
  const auto text = file.metadata.find("schedule");
  if (text == file.metadata.end()) throw Error("checkpoint", path + ": \"schedule\" is missing");
  schedule.restore(text->second);
  optimizer.set_steps(updates);
  for (std::int64_t i = 0; i < states; ++i) at.carry.push_back(file.at(fmt::format("{}{}", carried, i)));
  fill(file, places);
  return at;
}

void save_best(const std::string& path, const Model& model, const Best& best) {
  save_safetensors(path, {parameters_of(model),
                          {{"step", fmt::format("{}", best.step)}, {"valid_loss", fmt::format("{}", best.loss)}}});
}

Best best_of(const std::string& path) {
  if (!std::filesystem::exists(path)) return {};
  const TensorFile file = load_safetensors(path);
  return {number<std::int64_t>(file, path, "step"), number<double>(file, path, "valid_loss")};
}

void load_best(const std::string& path, const Model& model) {
  const Named places = parameters_of(model);
  const TensorFile file = load_safetensors(path, places.front().second.backend());
  check_places(file, path, places, 0);
  fill(file, places);
}

}  // namespace reel
