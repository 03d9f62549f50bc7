// Which runs a folder holds: itself or those below it, also behind symbolic links.
#include <filesystem>

#include "tasks/io/files.h"
#include "tasks/page/compare.h"
#include "tasks/page/run_data.h"
#include "tests/support/check.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::page;
using namespace reel::test;

namespace {

std::string names(const std::vector<ComparedRun>& runs) {
  std::string out;
  for (const ComparedRun& run : runs) out += run.name + " ";
  return out;
}

}  // namespace

TEST_CASE("runs below a folder") {
  const TempDir dir;
  for (const char* run : {"all/a", "all/b/c", "all/b/c/within", "other"}) {
    std::filesystem::create_directories(dir / run);
    std::filesystem::create_directories(dir / "all/d");
    write_atomically(dir / run + "/config.toml", "");
  }
  std::filesystem::create_directory_symlink(dir / "all", dir / "all/loop");
  write_atomically(dir / "all/d/run.json", "{}");  // has lost its config.toml, which read_run tells
  CHECK(names(runs_below(dir / "all")) == "a b/c d ");
  CHECK_MESSAGE(contains(error_of([&] { read_run(dir / "all/d"); }), "config.toml"), "d");
  CHECK(names(runs_below(dir / "all/b/c/")) == "c ");
  CHECK(runs_below(dir / "nowhere").empty());
  write_atomically(dir / "all/a/model.json", R"({"task": "adding"})");  // it has begun, and has no run.json yet
  CHECK(read_run(dir / "all/a").record == nlohmann::ordered_json{{"task", "adding"}});
  write_atomically(dir / "file", "");
  CHECK(contains(error_of([&] { runs_below(dir / "file"); }), "file] cannot be read: Not a directory"));
}

TEST_CASE("runs behind symbolic links, each once, without going round or up") {
  const TempDir dir;
  for (const char* run : {"all/a", "all/b/c", "other"}) {
    std::filesystem::create_directories(dir / run);
    write_atomically(dir / run + "/config.toml", "");
  }
  std::filesystem::create_directories(dir / "links/within");
  for (const auto& [to, link] :
       std::initializer_list<std::pair<const char*, const char*>>{{"all/b", "links/within/b"},
                                                                  {"other", "links/z"},
                                                                  {"other", "links/y"},
                                                                  {"all/a", "links/a"},
                                                                  {"all", "links/b"},
                                                                  {"links", "links/within/loop"},
                                                                  {"links", "all/back"},
                                                                  {"nowhere", "links/nowhere"},
                                                                  {".", "links/up"}})
    std::filesystem::create_directory_symlink(dir / to, dir / link);
  CHECK(names(runs_below(dir / "links")) == "a b/b/c y ");
  CHECK(names(runs_below(dir / "links/a")) == "a ");
  CHECK(names(runs_below(dir / "links/within/b")) == "c ");
}
