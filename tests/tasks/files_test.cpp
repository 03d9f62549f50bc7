// Files that are replaced atomically, and what a killed process leaves of them.
#include "tasks/io/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "tasks/io/lock.h"
#include "tests/support/check.h"
#include "tests/support/stderr_of.h"
#include "tests/support/temp_dir.h"

namespace fs = std::filesystem;
using namespace reel;
using test::contains;
using test::error_of;
using test::files_in;
using test::stderr_of;
using test::TempDir;

TEST_CASE("files: replaced at once, errors with path and reason") {
  const TempDir dir;
  const std::string path = dir / "a.bin", bytes("x\0y\n\xff", 5);
  write_atomically(path, "a longer text that is there before");
  write_atomically(path, bytes);
  CHECK(read_file(path) == bytes);
  fs::create_directory(dir / "folder");
  CHECK(contains(error_of([&] { write_atomically(dir / "folder", "x"); }), "cannot be written: Is a directory"));
  CHECK(contains(error_of([] { write_atomically("/dev/null/x", "x"); }), "cannot be written: Not a directory"));
  CHECK(
      contains(error_of([&] { write_atomically(dir / "no/x", "x"); }), "cannot be written: No such file or directory"));
  CHECK(error_of([&] { read_file(dir / "no"); }) == "[" + dir / "no" + "] cannot be read: No such file or directory");
  CHECK(contains(error_of([&] { read_file(dir.path); }), "cannot be read: Is a directory"));
  CHECK(files_in(dir.path) == 2);  // nothing temporary stays
}

TEST_CASE(
    "files: links are followed, permissions kept, devices and pipes written to, and who writes waits for its turn") {
  const TempDir dir;
  write_atomically(dir / "real", "old");
  fs::permissions(dir / "real", fs::perms(0640));
  fs::create_symlink("real", dir / "link");
  fs::create_symlink(dir / "link", dir / "far");
  write_atomically(dir / "far", "new");
  CHECK(read_file(dir / "real") == "new");
  CHECK(fs::is_symlink(dir / "link"));
  CHECK(fs::is_symlink(dir / "far"));
  CHECK(fs::status(dir / "real").permissions() == fs::perms(0640));
  fs::create_symlink("to come", dir / "ahead");
  write_atomically(dir / "ahead", "x");
  CHECK(read_file(dir / "to come") == "x");
  fs::create_symlink("loop", dir / "loop");
  CHECK(contains(error_of([&] { write_atomically(dir / "loop", "x"); }), "Too many levels of symbolic links"));
  CHECK(contains(error_of([&] { write_atomically(dir / "none/", "x"); }), "Is a directory"));
  CHECK(
      contains(error_of([&] { write_atomically("/dev/full", "x"); }), "[/dev/full] cannot be written: No space left"));
  write_atomically("/dev/null", "x");
  CHECK(fs::is_character_file("/dev/null"));
  write_atomically(dir / std::string(255, 'n'), "x");  // the longest name that there is
  CHECK(error_of([&] { write_atomically(dir / std::string(256, 'n'), "x"); }) != "");

  REQUIRE(mkfifo((dir / "pipe").c_str(), 0600) == 0);
  const int reader = open((dir / "pipe").c_str(), O_RDONLY | O_NONBLOCK);
  write_atomically(dir / "pipe", "through");
  char bytes[16] = {};
  CHECK(read(reader, bytes, sizeof bytes) == 7);
  close(reader);
  CHECK(fs::is_fifo(dir / "pipe"));
  CHECK(contains(stderr_of([] { write_atomically("/dev/stderr", "said"); }), "said"));

  write_atomically(dir / ".left.tmp", "what a kill -9 left, longer than what comes");
  write_atomically(dir / "left", "x");
  CHECK(read_file(dir / "left") == "x");
  CHECK_FALSE(fs::exists(dir / ".left.tmp"));
  const auto write_many = [&](char c) {
    return [&dir, c] {
      for (int i = 0; i < 100; ++i) write_atomically(dir / "both", std::string(100000, c));
    };
  };
  std::thread a(write_many('a')), b(write_many('b'));
  for (int i = 0; i < 100; ++i) {
    if (!fs::exists(dir / "both")) continue;
    const std::string text = read_file(dir / "both");
    CHECK(text == std::string(100000, text[0]));
  }
  a.join();
  b.join();
  CHECK_FALSE(fs::exists(dir / ".both.tmp"));
}

TEST_CASE("read_end: the last bytes of a file, or all of it") {
  const TempDir dir;
  write_atomically(dir / "a", "123456");
  CHECK(read_end(dir / "a", 2) == "56");
  CHECK(read_end(dir / "a", 6) == "123456");
  CHECK(read_end(dir / "a", 100) == "123456");
  CHECK(read_end(dir / "a", 0).empty());
  write_atomically(dir / "empty", "");
  CHECK(read_end(dir / "empty", 4).empty());
  CHECK(error_of([&] { read_end(dir / "none", 4); }) == "[" + dir / "none] cannot be read: No such file or directory");
  CHECK(error_of([&] { read_end(dir.path, 4); }) == "[" + dir.path + "] cannot be read: Is a directory");
}

TEST_CASE("remove_unfinished: what a killed process left goes; what a running one writes stays, and all else") {
  const TempDir dir;
  for (const char* name : {".dead.tmp", ".alive.tmp", ".hidden", "seen.tmp", ".mine.tmp", "..tmp", ".tmp"})
    write_atomically(dir / name, "x");
  fs::create_directory(dir / ".folder.tmp");
  fs::create_symlink("seen.tmp", dir / ".link.tmp");
  const LockedFile alive(dir / ".alive.tmp", "alive", {});
  const auto ours = [](std::string_view name) { return name != "mine"; };
  remove_unfinished(dir.path, ours);
  CHECK_FALSE(fs::exists(dir / ".dead.tmp"));
  for (const char* name :
       {".alive.tmp", ".hidden", "seen.tmp", ".folder.tmp", ".link.tmp", ".mine.tmp", "..tmp", ".tmp"})
    CHECK(fs::exists(dir / name));
  remove_unfinished(dir / "none", ours);
}
