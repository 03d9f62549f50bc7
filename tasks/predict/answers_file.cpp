#include "tasks/predict/answers_file.h"

#include <bit>
#include <cmath>
#include <filesystem>

#include "tasks/app/options.h"
#include "tasks/data/csv.h"
#include "tasks/io/files.h"
#include "tasks/io/lower.h"
#include "tasks/io/output.h"
#include "tasks/training/safetensors.h"

namespace reel {

namespace {

/// The bytes of an .npy file of version 1.0 with f64 [rows, columns].
std::string npy(const std::vector<double>& values, std::size_t columns) {
  static_assert(std::endian::native == std::endian::little);
  std::string header =
      fmt::format("{{'descr': '<f8', 'fortran_order': False, 'shape': ({}, {}), }}", values.size() / columns, columns);
  const std::size_t before = 10;  // magic, version, length of the header
  header.resize((before + header.size() + 1 + 63) / 64 * 64 - before - 1, ' ');
  header += '\n';
  std::string out = "\x93NUMPY\x01";
  out += '\0';
  out += static_cast<char>(header.size() & 255);
  out += static_cast<char>(header.size() >> 8);
  return out + header + std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double));
}

}  // namespace

std::string field_of(const Column& column, std::int64_t row) {
  const auto at = static_cast<std::size_t>(row);
  if (!column.texts.empty())
    return column.texts[at] < 0 ? "" : column.words[static_cast<std::size_t>(column.texts[at])];
  return std::isnan(column.numbers[at]) ? "" : fmt::format("{}", column.numbers[at]);
}

AnswersFile::AnswersFile(const TableSpec& spec, std::string path)
    : spec_(spec),
      path_(std::move(path)),
      kind_(path_.empty() ? ".csv" : lower(std::filesystem::path(path_).extension())) {
  if (kind_ != ".csv" && kind_ != ".npy" && kind_ != ".safetensors")
    throw Usage(fmt::format("--output {}: a name that ends with .csv, .npy or .safetensors is expected", path_));
}

void AnswersFile::header(std::vector<std::string> names) {
  if (kind_ != ".csv") return;
  for (const std::string& target : spec_.target_names()) names.push_back(target);
  for (const std::string& name : spec_.classes) names.push_back("p(" + name + ")");
  write_row(names, true);
}

void AnswersFile::write_row(const std::vector<std::string>& fields, bool in_header) {
  std::string line;
  for (const std::string& field : fields) line += (line.empty() ? "" : ",") + csv_field(field, in_header);
  line += '\n';
  if (path_.empty())
    write_out(line);
  else
    text_ += line;
}

void AnswersFile::add(std::int64_t row, const std::vector<std::string>& keys, const Answer& answer) {
  const auto width = static_cast<std::size_t>(spec_.outputs());
  if (kind_ != ".csv") {
    for (std::size_t i = 0; i < width; ++i) values_.push_back(answer.empty() ? missing_value : answer[i]);
    rows_.push_back(static_cast<std::int32_t>(row));
    return;
  }
  std::vector<std::string> fields = keys;
  if (spec_.classifies()) fields.push_back(answer.empty() ? "" : spec_.likeliest(answer));
  for (std::size_t i = 0; i < width; ++i) fields.push_back(answer.empty() ? "" : fmt::format("{}", answer[i]));
  write_row(fields);
}

void AnswersFile::close() {
  if (path_.empty()) {
    flush_out();
    return;
  }
  const auto width = spec_.outputs(), n = std::ssize(rows_);
  if (kind_ == ".csv") return write_atomically(path_, text_);
  if (kind_ == ".npy") return write_atomically(path_, npy(values_, static_cast<std::size_t>(width)));
  save_safetensors(path_, {.tensors = {{"y", Tensor::from<double>(values_, {n, width})},
                                       {"row", Tensor::from<std::int32_t>(rows_, {n})}},
                           .metadata = {}});
}

}  // namespace reel
