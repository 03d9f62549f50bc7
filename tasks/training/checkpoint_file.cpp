#include "tasks/training/checkpoint_file.h"

#include <algorithm>
#include <cmath>

#include "engine/core/parse.h"

namespace reel {

namespace {

constexpr std::int64_t most = std::int64_t{1} << 53;  // counters are exact as f64, too
constexpr double largest = std::numeric_limits<double>::max();
constexpr const char* carried = "carry.";  // followed by an index

/// The index of the first value that is not finite; -1 if there is none.
template <class T>
std::ptrdiff_t first_not_finite(const std::vector<T>& values) {
  const auto bad = std::find_if(values.begin(), values.end(), [](T v) { return !std::isfinite(v); });
  return bad == values.end() ? -1 : bad - values.begin();
}

/// The real values of a tensor on any device; a complex value counts as two.
template <class T>
std::vector<T> numbers_of(const Tensor& x) {
  std::vector<T> out(x.bytes() / sizeof(T));
  if (!out.empty()) x.backend().read(out.data(), x.data(), x.bytes());
  return out;
}

template <class T>
std::string problem(const std::string& name, const Tensor& x) {
  const std::vector<T> numbers = numbers_of<T>(x);
  const std::ptrdiff_t at = first_not_finite(numbers);
  if (at < 0) return {};
  const T value = numbers[static_cast<std::size_t>(at)];
  return fmt::format("{}: element {} is {}", name, is_complex(x.dtype()) ? at / 2 : at,
                     std::isnan(value) ? "NaN" : "infinite");
}

std::string text_at(const std::string& path, const TensorFile& file, const std::string& key) {
  const auto found = file.metadata.find(key);
  if (found == file.metadata.end()) throw Error("checkpoint", fmt::format("{}: \"{}\" is missing", path, key));
  return found->second;
}

template <class T>
T number(const std::string& path, const TensorFile& file, const std::string& key, T low, T high) {
  const std::string text = text_at(path, file, key);
  const std::optional<T> value = parse<T>(text);
  if (!value) throw Error("checkpoint", fmt::format("{}: \"{}\" is \"{}\", not a number", path, key, text));
  if (!(*value >= low && *value <= high))
    throw Error("checkpoint", fmt::format("{}: \"{}\" is {}, it must be from {} to {}", path, key, text, low, high));
  return *value;
}

}  // namespace

std::string not_finite(const Named& tensors) {
  for (const auto& [name, x] : tensors) {
    if (!is_differentiable(x.dtype())) continue;
    const std::string what = real_of(x.dtype()) == DType::f32 ? problem<float>(name, x) : problem<double>(name, x);
    if (!what.empty()) return what;
  }
  return {};
}

void check_tensors(const std::string& path, const TensorFile& file, const Named& places, std::size_t others) {
  Named taken;
  for (const auto& [name, place] : places) {
    const auto saved =
        std::find_if(file.tensors.begin(), file.tensors.end(), [&](const auto& t) { return t.first == name; });
    if (saved == file.tensors.end()) throw OtherModel("checkpoint", fmt::format("{}: {} is missing", path, name));
    if (!(saved->second.spec() == place.spec()))
      throw OtherModel("checkpoint", fmt::format("{}: {} is {}, the model has {}", path, name,
                                                 saved->second.spec().str(), place.spec().str()));
    taken.push_back(*saved);
  }
  if (file.tensors.size() != places.size() + others)
    throw Error("checkpoint",
                fmt::format("{}: holds {} tensors, the model has {}", path, file.tensors.size(), places.size()));
  if (const std::string what = not_finite(taken); !what.empty())
    throw Error("checkpoint", fmt::format("{}: {}", path, what));
}

std::map<std::string, std::string> metadata_of(const Saved& saved, std::uint64_t seed) {
  return {{"step", fmt::format("{}", saved.at.step)},
          {"seed", fmt::format("{}", seed)},
          {"seconds", fmt::format("{}", saved.at.seconds)},
          {"shards", fmt::format("{}", saved.at.shards)},
          {"updates", fmt::format("{}", saved.updates)},
          {"schedule", saved.schedule.state()},
          {"running_steps", fmt::format("{}", saved.at.running.steps)},
          {"running_loss", fmt::format("{}", saved.at.running.loss)},
          {"running_grad_norm", fmt::format("{}", saved.at.running.grad_norm)}};
}

Saved read_saved(const std::string& path, const TensorFile& file, const Named& places, const Schedule& schedule,
                 std::uint64_t seed) {
  constexpr std::uint64_t any = std::numeric_limits<std::uint64_t>::max();
  if (number<std::uint64_t>(path, file, "seed", 0, any) != seed)
    throw Error("checkpoint", fmt::format("{}: belongs to a run with another seed", path));
  Named states;
  for (const auto& [name, tensor] : file.tensors)
    if (name.starts_with(carried)) states.emplace_back(name, tensor);
  check_tensors(path, file, places, states.size());
  if (const std::string what = not_finite(states); !what.empty())
    throw Error("checkpoint", fmt::format("{}: {}", path, what));
  const auto step = number<std::int64_t>(path, file, "step", 0, most);
  Saved saved{{step,
               number<double>(path, file, "seconds", 0, largest),
               {number<std::int64_t>(path, file, "running_steps", 0, step),
                number<double>(path, file, "running_loss", -largest, largest),
                number<double>(path, file, "running_grad_norm", 0, largest)}},
              number<std::int64_t>(path, file, "updates", 0, step),
              schedule};
  if (!saved.schedule.restore(text_at(path, file, "schedule")))
    throw Error("checkpoint",
                fmt::format("{}: \"schedule\" is \"{}\", no state of one", path, text_at(path, file, "schedule")));
  for (std::size_t i = 0; i < states.size(); ++i) {
    const std::string name = fmt::format("{}{}", carried, i);
    const auto state = std::find_if(states.begin(), states.end(), [&](const auto& s) { return s.first == name; });
    if (state == states.end()) throw Error("checkpoint", fmt::format("{}: {} is missing", path, name));
    saved.at.carry.push_back(state->second);
  }
  saved.at.shards =
      file.metadata.contains("shards") ? number<int>(path, file, "shards", 0, std::numeric_limits<int>::max()) : -1;
  return saved;
}

Best read_best(const std::string& path, const TensorFile& file) {
  Best best{number<std::int64_t>(path, file, "step", 1, most),
            number<double>(path, file, "valid_loss", -largest, largest)};
  if (file.metadata.contains("accuracy")) best.accuracy = number<double>(path, file, "accuracy", 0, 1);
  return best;
}

}  // namespace reel
