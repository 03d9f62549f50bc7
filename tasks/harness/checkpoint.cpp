#include "tasks/harness/checkpoint.h"

#include "cells/parse.h"
#include "tasks/harness/safetensors.h"

namespace reel {

namespace {

std::vector<std::pair<std::string, Tensor>> everything(const Model& model, const Optimizer& optimizer) {
  std::vector<std::pair<std::string, Tensor>> all;
  for (const Parameter& p : model.parameters()) all.emplace_back(p.name, p.value);
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

}  // namespace

void save_checkpoint(const std::string& path, const Model& model, const Optimizer& optimizer, const Schedule& schedule,
                     std::uint64_t seed, const Progressed& at) {
  TensorFile file;
  file.tensors = everything(model, optimizer);
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
  for (const auto& [name, place] : places) {
    const Tensor& saved = file.at(name);
    if (!(saved.spec() == place.spec()))
      throw Error("checkpoint",
                  fmt::format("{}: {} is {}, the model has {}", path, name, saved.spec().str(), place.spec().str()));
  }
  if (file.tensors.size() != places.size())
    throw Error("checkpoint",
                fmt::format("{}: holds {} tensors, the model has {}", path, file.tensors.size(), places.size()));
  const Progressed at{number<std::int64_t>(file, path, "step"),
                      number<double>(file, path, "seconds"),
                      {number<std::int64_t>(file, path, "running_steps"), number<double>(file, path, "running_loss"),
                       number<double>(file, path, "running_grad_norm")}};
  const auto updates = number<std::int64_t>(file, path, "updates");
  const auto text = file.metadata.find("schedule");
  if (text == file.metadata.end()) throw Error("checkpoint", path + ": \"schedule\" is missing");
  schedule.restore(text->second);
  optimizer.set_steps(updates);
  for (const auto& [name, place] : places) {
    Tensor target = place;
    target.assign(file.at(name));
  }
  return at;
}

}  // namespace reel
