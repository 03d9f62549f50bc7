#include "tasks/training/checkpoint.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "tasks/training/device.h"

namespace reel {

namespace {

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

void save(const std::string& path, const TensorFile& file) {
  if (const std::string what = not_finite(file.tensors); !what.empty()) throw Diverged(what);
  save_safetensors(path, file);
}

void fill(const TensorFile& file, const Named& places) {
  for (const auto& [name, place] : places) fill_from(file.at(name), place);
}

void check_carry(const std::string& path, const Tensors& carry, const std::vector<Spec>& needed) {
  const auto fits = [](const Tensor& state, const Spec& spec) { return state.spec() == spec; };
  if (std::equal(carry.begin(), carry.end(), needed.begin(), needed.end(), fits)) return;
  const auto list = [](const auto& all, const auto& spec_of) {
    std::string text;
    for (const auto& one : all) text += (text.empty() ? "" : ", ") + spec_of(one).str();
    return text.empty() ? "none" : text;
  };
  throw Error("checkpoint", fmt::format("{}: the carried states are {}, the next step needs {}", path,
                                        list(carry, [](const Tensor& t) { return t.spec(); }),
                                        list(needed, [](const Spec& s) { return s; })));
}

}  // namespace

std::string not_finite(const Model& model) { return not_finite(parameters_of(model)); }

void save_checkpoint(const std::string& path, const Model& model, const Optimizer& optimizer, const Schedule& schedule,
                     std::uint64_t seed, const Progressed& at) {
  if (!std::isfinite(at.running.loss) || !std::isfinite(at.running.grad_norm))
    throw Diverged("the mean loss or gradient norm became infinite");
  TensorFile file{everything(model, optimizer), metadata_of({at, optimizer.steps(), schedule}, seed)};
  for (std::size_t i = 0; i < at.carry.size(); ++i) file.tensors.emplace_back(fmt::format("carry.{}", i), at.carry[i]);
  save(path, file);
}

Loaded load_checkpoint(const std::string& path, const Model& model, Optimizer& optimizer, Schedule& schedule,
                       std::uint64_t seed, const CarryNeeded& needed) {
  const Named places = everything(model, optimizer);
  const TensorFile file = load_safetensors(path, places.front().second.backend());
  const Saved saved = read_saved(path, file, places, schedule, seed);
  if (const std::vector<Spec> specs = needed(saved.at.step); !specs.empty()) check_carry(path, saved.at.carry, specs);
  schedule = saved.schedule;
  optimizer.set_steps(saved.updates);
  fill(file, places);
  return {saved.at, file.checked};
}

void save_best(const std::string& path, const Model& model, const Best& best) {
  if (best.step < 1)
    throw Error("checkpoint", fmt::format("{}: the step is {}, it must be 1 or more", path, best.step));
  if (!std::isfinite(best.loss))
    throw Error("checkpoint", fmt::format("{}: the loss is {}, a finite one is needed", path, best.loss));
  TensorFile file{parameters_of(model),
                  {{"step", fmt::format("{}", best.step)}, {"valid_loss", fmt::format("{}", best.loss)}}};
  if (!std::isnan(best.accuracy)) file.metadata["accuracy"] = fmt::format("{}", best.accuracy);
  save(path, file);
}

Best best_of(const std::string& path) {
  if (!std::filesystem::exists(path)) return {};
  return read_best(path, load_safetensors(path));
}

void load_best(const std::string& path, const Model& model) {
  const Named places = parameters_of(model);
  const TensorFile file = load_safetensors(path, places.front().second.backend());
  check_tensors(path, file, places, 0);
  fill(file, places);
}

}  // namespace reel
