#include "tasks/app/cell_weights.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "cells/formula.h"
#include "tasks/training/checkpoint_file.h"
#include "tasks/training/device.h"

namespace reel {

namespace {

const Tensor* find(const TensorFile& file, const std::string& name) {
  const auto entry =
      std::find_if(file.tensors.begin(), file.tensors.end(), [&](const auto& t) { return t.first == name; });
  return entry == file.tensors.end() ? nullptr : &entry->second;
}

std::vector<std::string> names_of(const TensorFile& file) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : file.tensors) names.push_back(name);
  return names;
}

/// "cell." of a run with one layer, "cell2." of one with several; nothing for other names.
std::string layer_prefix(const std::string& name) {
  if (!name.starts_with("cell")) return "";
  const std::size_t dot = name.find_first_not_of("0123456789", 4);
  return dot != name.npos && name[dot] == '.' ? name.substr(0, dot + 1) : "";
}

/// Real numbers [..., 2] as complex ones [...].
Tensor complex_of_pairs(const Tensor& pairs, const Shape& shape) {
  const int last = pairs.rank() - 1;
  return reshape(complex(slice(pairs, last, 0, 1), slice(pairs, last, 1, 2)), {shape.begin(), shape.end()});
}

/// A complex tensor that is stored as real numbers; undefined if it is not.
Tensor find_complex(const TensorFile& file, const std::string& name, const Shape& shape) {
  const Tensor *pairs = find(file, name), *re = find(file, name + ".re"), *im = find(file, name + ".im");
  const auto is_real = [](const Tensor* t, const Shape& wanted) {
    return t && is_floating(t->dtype()) && t->shape() == wanted;
  };
  if (is_real(pairs, shape.insert(shape.rank(), 2))) return complex_of_pairs(*pairs, shape);
  if (!pairs && is_real(re, shape) && is_real(im, shape)) return complex(*re, *im);
  return {};
}

/// The first entry that makes these indices no permutation of 0, 1, ...; nothing if they are one.
std::optional<std::size_t> unfit_entry(const std::vector<std::int32_t>& order) {
  std::set<std::int32_t> seen;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order[i] < 0 || order[i] >= std::ssize(order) || !seen.insert(order[i]).second) return i;
  }
  return {};
}

/// Indices that are a permutation in the cell have to be one in the file.
void check_permutation(const std::string& path, const Parameter& p, const Tensor& found) {
  if (p.value.dtype() != DType::i32 || p.value.rank() != 1 || unfit_entry(p.value.values<std::int32_t>())) return;
  const auto order = found.values<std::int32_t>();
  if (const auto entry = unfit_entry(order))
    throw Error(path, fmt::format("{} is no permutation of 0 to {}: entry {} is {}, {}", p.name, order.size() - 1,
                                  *entry, order[*entry],
                                  order[*entry] < 0 || order[*entry] >= std::ssize(order) ? "out of range" : "again"));
}

/// The names by which a file may have a parameter.
std::array<std::string, 3> names_in_files(const std::string& name) { return {name, name + ".re", name + ".im"}; }

/// Has the file all trained parameters of the cell in their shapes, and nothing else?
bool fits(const Cell& cell, const std::string& path, const TensorFile& file) try {
  std::set<std::string> left;
  for (const auto& [name, tensor] : file.tensors) left.insert(name);
  for (const Parameter& p : cell.parameters()) {
    if (!find_tensor(path, file, p.name, p.value.shape(), p.value.dtype()).defined() && p.trained) return false;
    for (const std::string& name : names_in_files(p.name)) left.erase(name);
  }
  return left.empty();
} catch (const Error&) {
  return false;
}

/// Does a cell of these widths train more numbers than these? Told by its formula, without making it; false if there is
/// none, or it cannot be read.
bool trains_more(const CellType& type, const Settings& settings, std::int64_t input, std::int64_t hidden,
                 double numbers) try {
  return trained_numbers(type, input, hidden, settings.values()) > numbers;
} catch (const Error&) {
  return false;
}

/// Widths that the file's shapes suggest, the most frequent one first: extents, then twice these, because some
/// parameters have one number for two units, then small ones, because an input may stand beside something else in a
/// matrix.
std::vector<std::int64_t> likely_widths(const TensorFile& file) {
  std::map<std::int64_t, int> counts;
  for (const auto& [name, tensor] : file.tensors) {
    for (const std::int64_t n : tensor.shape()) counts[n] += 2;
  }
  for (const auto& [n, count] : std::map(counts)) counts.try_emplace(2 * n, 1);
  for (std::int64_t n = 1; n <= 32; ++n) counts.try_emplace(n, 0);
  counts.erase(0);
  std::vector<std::int64_t> widths;
  for (const auto& [n, count] : counts) widths.push_back(n);
  std::stable_sort(widths.begin(), widths.end(), [&](std::int64_t a, std::int64_t b) { return counts[a] > counts[b]; });
  return widths;
}

}  // namespace

TensorFile tensors_of_cell(const std::string& path, TensorFile file, std::int64_t layer) {
  std::set<std::string> prefixes;
  for (const auto& [name, tensor] : file.tensors) prefixes.insert(layer_prefix(name));
  prefixes.erase("");
  const std::string wanted = prefixes.contains("cell.") && layer == 1 ? "cell." : fmt::format("cell{}.", layer);
  if (prefixes.empty() && layer == 1) return file;
  if (!prefixes.contains(wanted))
    throw Error(path, prefixes.empty() ? fmt::format("is no run's file, so it has no layer {}", layer)
                                       : fmt::format("has no layer {}, only {}", layer, fmt::join(prefixes, ", ")));
  TensorFile out;
  for (auto& [name, tensor] : file.tensors) {
    if (name.starts_with(wanted)) out.tensors.emplace_back(name.substr(wanted.size()), tensor);
  }
  return out;
}

Tensor find_tensor(const std::string& path, const TensorFile& file, const std::string& name, const Shape& shape,
                   DType dtype) {
  if (is_complex(dtype)) {
    if (const Tensor pairs = find_complex(file, name, shape); pairs.defined()) return cast(pairs, dtype);
  }
  const Tensor* found = find(file, name);
  if (!found) return {};
  if (!(found->shape() == shape))
    throw Error(path, fmt::format("{} has shape {}, {} expected", name, found->shape().str(), shape.str()));
  if (is_complex(found->dtype()) && !is_complex(dtype))
    throw Error(path, fmt::format("{} is complex ({}), real numbers expected", name, name_of(found->dtype())));
  if (is_differentiable(found->dtype()) != is_differentiable(dtype))
    throw Error(path, fmt::format("{} is {}, {} expected", name, name_of(found->dtype()), name_of(dtype)));
  return cast(*found, dtype);
}

std::vector<std::string> set_parameters(const Cell& cell, const std::string& path, const TensorFile& file) {
  std::set<std::string> used;
  std::vector<std::string> missing, kept;
  std::vector<std::pair<Tensor, Tensor>> values;
  Named named;
  for (const Parameter& p : cell.parameters()) {
    for (const std::string& name : names_in_files(p.name)) used.insert(name);
    const Tensor found = find_tensor(path, file, p.name, p.value.shape(), p.value.dtype());
    if (found.defined()) {
      check_permutation(path, p, found);
      values.emplace_back(found, p.value);
      named.emplace_back(p.name, found);
    } else {
      (p.trained ? missing : kept).push_back(p.name);
    }
  }
  std::vector<std::string> extra;
  for (const std::string& name : names_of(file)) {
    if (!used.contains(name)) extra.push_back(name);
  }
  if (!missing.empty())
    throw Error(path, fmt::format("missing: {}. Hint: --describe lists what is expected; the file has {}",
                                  fmt::join(missing, ", "), fmt::join(names_of(file), ", ")));
  if (!extra.empty())
    throw Error(path, fmt::format("the cell has no {}. Hint: --describe lists what it has", fmt::join(extra, ", ")));
  for (const auto& [found, place] : values) fill_from(found, place);

  std::vector<std::string> notes;
  if (!kept.empty())
    notes.push_back(
        fmt::format("{} has no {}, which the cell does not train: its own values stay", path, fmt::join(kept, ", ")));
  if (const std::string what = not_finite(named); !what.empty()) notes.push_back(path + ": " + what);
  return notes;
}

CellSize size_of_weights(const CellType& type, const Settings& settings, const std::string& path,
                         const TensorFile& file, std::optional<std::int64_t> input,
                         std::optional<std::int64_t> hidden) {
  const std::vector<std::int64_t> widths = likely_widths(file);
  double numbers = 0;
  for (const auto& [name, tensor] : file.tensors) numbers += 2 * static_cast<double>(tensor.numel());  // may be complex
  const auto candidates = [&](std::optional<std::int64_t> given) { return given ? std::vector{*given} : widths; };
  for (const std::int64_t n : candidates(hidden)) {
    for (const std::int64_t i : candidates(input)) {
      if (trains_more(type, settings, i, n, numbers)) continue;
      try {
        Init init(1);
        if (fits(*type.make(i, n, settings, init), path, file)) return {i, n};
      } catch (const Error&) {  // a size that this cell does not take
      }
    }
  }
  throw Error(path,
              fmt::format("fits {} at no size. Hint: give --input-size and --hidden to see what differs; the file "
                          "has {}",
                          type.name, fmt::join(names_of(file), ", ")));
}

}  // namespace reel
