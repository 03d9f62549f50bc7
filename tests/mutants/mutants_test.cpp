// The lists of scripts/mutants: each mutant changes one place of a file, and names tests that there are.
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "tests/support/check.h"

using namespace reel;
using namespace reel::test;

namespace fs = std::filesystem;

namespace {

const fs::path root = REEL_SOURCE_DIR;

std::string text_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::string> split_at(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
  return parts;
}

std::size_t places(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

/// The names of all test programs.
std::set<std::string> programs() {
  std::set<std::string> names;
  for (const auto& file : fs::recursive_directory_iterator(root / "tests")) {
    const std::string name = file.path().stem().string();
    if (file.path().extension() == ".cpp" && (name.ends_with("_test") || name.starts_with("test_"))) names.insert(name);
  }
  return names;
}

}  // namespace

TEST_CASE("every mutant is found at exactly one place, has a name of its own and tests that should see it") {
  if (!fs::exists(root / "tests/mutants")) return;  // on a machine that has the programs alone
  const std::set<std::string> all = programs();
  std::set<std::string> ids;
  std::map<std::string, std::string> files;
  for (const auto& list : fs::directory_iterator(root / "tests/mutants")) {
    if (list.path().extension() != ".tsv") continue;
    for (const std::string& line : split_at(text_of(list.path()), '\n')) {
      CAPTURE(line);
      if (line.starts_with('#')) continue;
      const auto fields = split_at(line, '\t');
      REQUIRE(
          (fields.size() == 5 || fields.size() == 6));  // id, file, old text, new text, tests, why it changes nothing
      CHECK(ids.insert(fields[0]).second);
      if (!files.contains(fields[1])) files[fields[1]] = text_of(root / fields[1]);
      CHECK(places(files[fields[1]], fields[2]) == 1);
      CHECK(fields[2] != fields[3]);
      const auto tests = split_at(fields[4], ',');
      CHECK_FALSE(tests.empty());
      for (const std::string& test : tests) {  // on the CUDA emulator if it starts with emulated_
        CHECK_MESSAGE(all.contains(test.starts_with("emulated_") ? test.substr(9) : test), test);
      }
    }
  }
  CHECK(ids.size() >= 300);
}
