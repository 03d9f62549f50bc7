// Reading the tables of tests/support/golden.
#pragma once
#include <doctest/doctest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace reel::test {

using Row = std::map<std::string, std::string>;

/// The rows of a table with tabs, by the names in its first line.
inline std::vector<Row> table(const std::string& name) {
  std::ifstream in(std::string(REEL_SOURCE_DIR "/tests/golden/") + name);
  const auto fields = [](const std::string& line) {
    std::istringstream all(line);
    std::vector<std::string> out;
    for (std::string field; std::getline(all, field, '\t');) out.push_back(field);
    return out;
  };
  std::string line;
  std::getline(in, line);
  const auto header = fields(line);
  std::vector<Row> rows;
  while (std::getline(in, line)) {
    const auto values = fields(line);
    Row row;
    for (std::size_t i = 0; i < header.size(); ++i) row[header[i]] = values.at(i);
    rows.push_back(row);
  }
  REQUIRE(!rows.empty());
  return rows;
}

}  // namespace reel::test
