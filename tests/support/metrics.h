// What tests read of a run's metrics.csv.
#pragma once
#include <sstream>
#include <string>
#include <vector>

#include "tasks/io/files.h"
#include "tests/support/check.h"

namespace reel::test {

/// The column train_loss of a run's metrics.csv: of each row the mean over its steps, as it is in the file.
inline std::vector<std::string> train_losses(const std::string& run) {
  std::istringstream in(read_file(run + "/metrics.csv"));
  std::vector<std::string> out;
  std::string line, field;
  std::getline(in, line);
  REQUIRE(line.starts_with("step,examples,seconds,train_loss,"));
  while (std::getline(in, line)) {
    std::istringstream fields(line);
    for (int column = 0; column < 4; ++column) std::getline(fields, field, ',');
    out.push_back(field);
  }
  return out;
}

}  // namespace reel::test
