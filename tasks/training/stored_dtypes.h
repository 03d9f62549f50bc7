// The element types of safetensors files. Those that Reel does not compute with become ones that it has: F16 and BF16
// are read as f32, I64, I16, I8 and U8 as i32.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "engine/core/dtype.h"

namespace reel {

struct StoredDType {
  const char* name;
  std::size_t bytes;  // of an element in the file
  DType dtype;        // that it is read as; C64 and F64 are stored as they are computed with
  /// Converts n elements; null where the bytes are the same. Returns the index of the first number that the dtype
  /// cannot hold.
  std::optional<std::size_t> (*convert)(const char* from, std::size_t n, void* to) = nullptr;
};

/// The type of this name; null if Reel does not read it.
const StoredDType* stored_dtype(std::string_view name);

/// "F32, F64, ...": the names of all.
std::string stored_dtypes();

}  // namespace reel
