// Tables from any file: those of tasks/data/table.h, and safetensors.
#pragma once
#include <filesystem>

#include "ops/ops.h"
#include "tasks/data/arrays.h"
#include "tasks/data/data_error.h"
#include "tasks/io/lower.h"
#include "tasks/training/safetensors.h"

namespace reel {

/// The tensors of a safetensors file as arrays. Throws FileError for a complex one, and for more than 2^28 values.
inline std::map<std::string, Array> arrays_of(const std::string& path, const TensorFile& file) {
  std::map<std::string, Array> arrays;
  std::size_t values = 0;
  for (const auto& [name, tensor] : file.tensors) {
    if (is_complex(tensor.dtype())) throw FileError(fmt::format("{}: {}: real numbers are expected", path, name));
    values += static_cast<std::size_t>(tensor.numel());
    if (values > most_values) throw FileError(fmt::format("{}: more than {} values", path, most_values));
    Array array{.shape = {}, .values = cast(tensor, DType::f64).values<double>()};
    array.shape.assign(tensor.shape().begin(), tensor.shape().end());
    array.whole = tensor.dtype() == DType::i32 || tensor.dtype() == DType::boolean;
    arrays.emplace(name, std::move(array));
  }
  return arrays;
}

/// Reads a file as read_table does, or arrays x, y and lengths of safetensors as table_of_arrays does.
inline Table load_table(const std::string& path, const std::vector<std::string>& as_written = {}) {
  if (lower(std::filesystem::path(path).extension()) != ".safetensors") return read_table(path, as_written);
  std::string bytes;
  TensorFile file;
  try {
    bytes = read_file(path, std::uint64_t{1} << 30);
    file = parse_safetensors(path, bytes, backend("cpu"));
  } catch (const OutOfMemory&) {
    throw;
  } catch (const Error& e) {
    throw FileError(e.what());
  }
  Table table = table_of_arrays(path, arrays_of(path, file));
  add_checksum(table, bytes);
  return table;
}

}  // namespace reel
