// Arrays of NumPy as tables: .npy and .npz.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tasks/data/table.h"

namespace reel {

struct Array {
  std::vector<std::int64_t> shape = {};
  std::vector<double> values = {};  // in C order
  bool whole = false;               // integers
};

/// Reads the bytes of an .npy file of version 1 to 3: little-endian f2, f4, f8, i1 to i8, u1 to u8 or booleans, in C
/// order. Throws FileError for any kind of damage, and for more than 2^28 values.
Array parse_npy(const std::string& path, std::string_view bytes);

/// The arrays of an .npz file by their names. Throws FileError for any kind of damage, and for more than 2^31 bytes
/// or 2^28 values.
std::map<std::string, Array> parse_npz(const std::string& path, std::string_view bytes);

/// An array as a table with the columns c0, c1, ...: [rows] or [rows, columns], or sequences [N, T, columns].
Table table_of_array(const std::string& path, const Array& x);

/// Sequences x [N, T, F] with lengths [N], if there are any, and targets y: for a sequence [N], or for each step [N, T]
/// or [N, T, K]. The columns are c0, c1, ..., then y, or y0, y1, ... The target of a sequence stands in its last row. A
/// single array of another name is read as table_of_array does. Throws FileError for any other array.
Table table_of_arrays(const std::string& path, const std::map<std::string, Array>& arrays);

}  // namespace reel
