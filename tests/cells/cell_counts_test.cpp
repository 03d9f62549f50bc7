// The formulas of CellType::count against the parameters of cells that are made.
#include <filesystem>
#include <set>

#include "cells/formula.h"
#include "tasks/io/files.h"
#include "tests/support/cells.h"
#include "tests/support/check.h"

using namespace reel;
using namespace reel::test;

namespace {

using Given = std::map<std::string, std::string>;

/// All settings that the formula names, in all combinations (integers: the default, 4 and 16), and each value of
/// the others alone, which must change nothing.
std::vector<Given> variants(const CellType& type) {
  std::vector<Given> all{{}};
  for (const Setting& s : type.settings) {
    std::vector<std::string> values = s.choices;
    if (s.kind == Setting::Kind::integer) values = {s.fallback, "4", "16"};
    const bool counts = contains(type.count, s.name);
    std::vector<Given> more;
    for (const Given& g : all) {
      more.push_back(g);
      if (!counts && !g.empty()) continue;
      for (const std::string& v : values) {
        if (v == s.fallback) continue;
        more.push_back(g);
        more.back()[s.name] = v;
      }
    }
    all = more;
  }
  return all;
}

}  // namespace

TEST_CASE("every cell's formula counts its parameters, with every setting") {
  int compared = 0;
  for (const CellType& type : cell_registry()) {
    if (type.count.empty() && !needs_row(type, "a count of parameters")) continue;
    int made = 0;
    for (const Given& given : variants(type)) {
      for (const auto& [n, i] : {std::pair<std::int64_t, std::int64_t>{32, 5}, {64, 64}}) {
        std::string text = fmt::format("{} n={} i={}", type.name, n, i);
        for (const auto& [k, v] : given) text += fmt::format(" {}={}", k, v);
        CAPTURE(text);
        Init init(1);
        std::unique_ptr<Cell> cell;
        if (!error_of([&] { cell = type.make(i, n, Settings(type.name, type.settings, given), init); }).empty())
          continue;  // settings that exclude each other
        std::int64_t count = 0;
        for (const Parameter& p : cell->parameters()) count += p.count();
        CHECK(trained_numbers(type, i, n, given) == static_cast<double>(count));
        ++made;
      }
    }
    CHECK_MESSAGE(made > 0, type.name);
    compared += made;
  }
  fmt::print("{} cells counted\n", compared);
}

TEST_CASE("every cell says where it comes from") {
  for (const CellType& type : cell_registry())
    CHECK_MESSAGE((!type.source.empty() || !needs_row(type, "a source")), type.name);
}

TEST_CASE("cells that come with Reel are known as such, and no others") {
  std::map<std::string, int> registered;
  std::set<std::string> others;
  for (const CellType& type : cell_registry())
    if (type.built_in())
      ++registered[type.file];
    else
      others.insert(type.file);
  CHECK(others.contains("tests/support/own_cell.cpp"));  // there may be more, in cells/own/
  for (const char* file : {"cells/own/lem.cpp", "/home/me/cells/lem.cpp", "src/lem.cpp", "cells", ""}) {
    CellType type;
    type.file = file;
    CHECK_FALSE_MESSAGE(type.built_in(), file);
  }
  const std::filesystem::path folder = REEL_SOURCE_DIR "/cells";
  if (!std::filesystem::exists(folder)) {
    MESSAGE("the source of the cells is not here");
    return;
  }
  std::map<std::string, int> written;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().extension() != ".cpp") continue;
    const std::string text = read_file(file.path());
    for (std::size_t at = 0; (at = text.find("\nREEL_CELL(", at)) != std::string::npos; ++at)
      ++written["cells/" + file.path().filename().string()];
  }
  CHECK(written == registered);
}

TEST_CASE("formulas") {
  const Names names{{"n", "10"}, {"i", "3"}, {"m", "0"}, {"field", "complex"}};
  CHECK(Formula::value("2 n i + n^2/4 - 1", names) == 84);
  CHECK(Formula::value("n (n - 1)/2 [field=complex] + [field!=complex]", names) == 45);
  CHECK(Formula::value("(m or min(16, n)) + a b, a = floor(n/4), b = a + max(i, 1)", names) == 20);
  CHECK(contains(error_of([&] { Formula::value("n) + 1", names); }), "[formula] cannot read )"));
  CHECK(contains(error_of([&] { Formula::value("n +", names); }), "[formula] a name is missing"));
}

TEST_CASE("a count that is not understood: an error that names the cell and its file") {
  register_cell({"own", "", "", "", {{"m", Setting::Kind::choice, "a", "", {"a", "b"}}}, {}}, "mine/own.cpp");
  const std::string deep(200, '(');
  for (const auto& [count, why] : std::vector<std::pair<std::string, std::string>>{
           {"n k + n i", "k is neither n, i, a setting, a definition nor a cell"},
           {"4n + n i", "4n is neither n, i, a setting, a definition nor a cell. Hint: a product has a space between "},
           {"about n^2", "about is neither n, i, a setting, a definition nor a cell"},
           {"n*n + n", "cannot read *n + n. Hint: a product has a space between its factors: n i"},
           {"n (n + 1", "\")\" is missing at 8 of n (n + 1"},
           {"n [m=a", "\"]\" is missing at 6 of n [m=a"},
           {"n [norm=a]", "[norm...] compares n, i or a setting, and norm is none of them"},
           {"n m", "m is \"a\", which is no number"},
           {"n i, k 2", "\"=\" is missing at 7 of n i, k 2"},
           {"k n, k = k + 1", "a definition needs itself"},
           {"own + n", "a definition needs itself"},
           {deep + "n" + std::string(200, ')'),
            "a definition needs itself, or more than 100 parentheses are nested"}}) {
    CellType& own = cell_registry().back();
    own.count = count;
    const std::string said = error_of([&] { trained_numbers(own, 3, 4, {}); });
    CHECK_MESSAGE(said.starts_with("[cell] \"own\" (mine/own.cpp): its count \"" + count + "\": [formula] " + why),
                  said);
  }
  cell_registry().pop_back();
}

TEST_CASE("a setting that no cell accepts is still a number: the cell says what is wrong with it") {
  for (const char* width : {"-1", "-inf", "nan"})
    CHECK(error_of([&] { trained_numbers(cell_type("srnn"), 2, 4, {{"width", width}}); }).empty());
}
