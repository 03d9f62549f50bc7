#include "tasks/data/piano_roll.h"

#include <matio.h>

#include <memory>

#include "tasks/data/data_error.h"
#include "tasks/data/mat_check.h"

namespace reel {

namespace {

using Variable = std::unique_ptr<matvar_t, decltype(&Mat_VarFree)>;

/// Element i of a full matrix; -1 for a dtype that no piano roll has.
double number(const matvar_t& matrix, std::size_t i) {
  switch (matrix.data_type) {
    case MAT_T_UINT8:
      return static_cast<const std::uint8_t*>(matrix.data)[i];
    case MAT_T_INT8:
      return static_cast<const std::int8_t*>(matrix.data)[i];
    case MAT_T_DOUBLE:
      return static_cast<const double*>(matrix.data)[i];
    case MAT_T_SINGLE:
      return static_cast<const float*>(matrix.data)[i];
    default:
      return -1;
  }
}

std::vector<Tune> read_array(const std::string& set, const std::string& file, mat_t* mat, const char* name) {
  const auto bad = [&](const std::string& what) { return DataError(set, file, what); };
  const Variable array(Mat_VarRead(mat, name), Mat_VarFree);
  if (!array) throw bad(fmt::format("has no array \"{}\"", name));
  if (array->class_type != MAT_C_CELL || array->rank != 2 || !array->data)
    throw bad(fmt::format("\"{}\" is not an array of cells", name));
  std::vector<Tune> tunes;
  const std::size_t count = array->dims[0] * array->dims[1];
  for (std::size_t i = 0; i < count; ++i) {
    const matvar_t* roll = Mat_VarGetCell(array.get(), static_cast<int>(i));
    if (!roll || !roll->data || roll->rank != 2 || roll->isComplex || roll->dims[1] != piano_keys)
      throw bad(fmt::format("{}[{}] is not a matrix with {} columns", name, i, piano_keys));
    const std::size_t frames = roll->dims[0], keys = piano_keys;
    if (frames < 2) throw bad(fmt::format("{}[{}] has {} frames, 2 are needed to predict one", name, i, frames));
    Tune tune(frames * keys);
    for (std::size_t t = 0; t < frames; ++t) {
      for (std::size_t k = 0; k < keys; ++k) {
        const double value = number(*roll, k * frames + t);  // by columns
        if (value != 0 && value != 1) throw bad(fmt::format("{}[{}] at ({}, {}) is neither 0 nor 1", name, i, t, k));
        tune[t * keys + k] = value == 1;
      }
    }
    tunes.push_back(std::move(tune));
  }
  if (tunes.empty()) throw bad(fmt::format("\"{}\" is empty", name));
  return tunes;
}

}  // namespace

Tunes read_piano_rolls(const std::string& set, const std::string& path) {
  Mat_LogInitFunc("reel", [](int, char*) {});  // we report errors ourselves
  const std::string file = std::filesystem::path(path).filename();
  if (const std::string what = mat_damage(read_data(set, file, path, std::size_t{1} << 28)); !what.empty())
    throw DataError(set, file, what);
  const std::unique_ptr<mat_t, int (*)(mat_t*)> mat(Mat_Open(path.c_str(), MAT_ACC_RDONLY), Mat_Close);
  if (!mat) throw DataError(set, file, "is not a MATLAB file");
  return {read_array(set, file, mat.get(), "traindata"), read_array(set, file, mat.get(), "validdata"),
          read_array(set, file, mat.get(), "testdata")};
}

}  // namespace reel
