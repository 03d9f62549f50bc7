// scripts/prepare-data: what is damaged stays out, what is missing is told; nothing half done is left. scripts/unpack:
// nothing is put beside the folder.
#include <array>
#include <cstdio>
#include <cstdlib>

#include "tasks/io/output.h"
#include "tests/support/check.h"
#include "tests/support/child.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

namespace {

/// Exit code of a command of the shell, and all that it says.
Result shell(const std::string& command) {
  FILE* pipe = popen(("bash -c " + shell_path(command + " 2>&1")).c_str(), "r");
  REQUIRE(pipe);
  Result r;
  std::array<char, 4096> block;
  for (std::size_t n = 0; (n = fread(block.data(), 1, block.size(), pipe)) > 0;) r.out.append(block.data(), n);
  const int status = pclose(pipe);
  r.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return r;
}

Result prepare(const std::string& arguments) { return shell(REEL_SOURCE_DIR "/scripts/prepare-data " + arguments); }

/// What scripts/unpack says of an archive that these commands make, in a folder of its own.
Result unpack(const TempDir& dir, const std::string& commands, const std::string& environment = "") {
  const std::string make = "cd " + dir.path + " && rm -rf in out x.tar* && mkdir in && cd in && " + commands;
  REQUIRE(std::system(make.c_str()) == 0);
  return shell(environment + " " REEL_SOURCE_DIR "/scripts/unpack " + (dir / "x.tar.gz") + " " + (dir / "out"));
}

}  // namespace

TEST_CASE("prepare-data: usage, an empty source, a file with another sum, a set that is there") {
  const TempDir dir;
  std::filesystem::create_directories(dir / "from/deep");
  const std::string from_to = dir / "from" + " " + (dir / "to");
  CHECK(prepare("").code == 2);
  CHECK(prepare(dir / "nowhere " + (dir / "to")).code == 2);
  Result r = prepare(from_to);
  CHECK(r.code == 1);
  CHECK(contains(r.out, "music: no Nottingham.mat below " + dir.path));
  CHECK(contains(r.out, "none of the data sets is below"));

  write_atomically(dir / "from/deep/Nottingham.mat", "not what it was");
  r = prepare(from_to);
  CHECK(r.code == 1);
  CHECK(contains(r.out, "from/deep/Nottingham.mat: its sha256 is not d154f7ca"));
  CHECK(std::filesystem::is_empty(dir / "to"));

  std::filesystem::create_directory(dir / "to/music");
  std::filesystem::remove(dir / "from/deep/Nottingham.mat");
  r = prepare(from_to);
  CHECK(r.code == 0);
  CHECK(contains(r.out, "music: is there already"));
}

TEST_CASE("prepare-data: names of folders are names, whatever a shell or find makes of such") {
  const TempDir dir;
  const std::string from = dir / "a b\n*[x] $(touch PWNED)`touch PWNED`", to = from + "/-x";
  std::filesystem::create_directories(from + "/deep");
  write_atomically(from + "/deep/Nottingham.mat", "not what it was");
  std::filesystem::create_directories(to);
  write_atomically(to + "/Nottingham.mat", "no source");
  const Result r = prepare(shell_path(from) + " " + shell_path(to));
  CHECK(r.code == 1);
  CHECK(contains(r.out, "deep/Nottingham.mat: its sha256 is not"));
  CHECK_FALSE(contains(r.out, "-x/Nottingham.mat"));
  CHECK_FALSE(contains(r.out, "No such file"));
  CHECK_FALSE(std::filesystem::exists("PWNED"));
}

TEST_CASE("unpack: an archive puts nothing but files and folders below its folder, once each, and not too many") {
  const TempDir dir;
  Result r = unpack(dir, "mkdir -p a/b && echo 1 > a/b/c && echo 2 > 'd e' && tar -czf ../x.tar.gz a 'd e'");
  CHECK_MESSAGE(r.code == 0, r.out);
  CHECK(read_file(dir / "out/a/b/c") == "1\n");
  CHECK(read_file(dir / "out/d e") == "2\n");
  const auto refused = [&](const std::string& commands, const std::string& part, const std::string& environment = "") {
    const Result result = unpack(dir, commands, environment);
    CHECK(result.code == 1);
    CHECK_MESSAGE(contains(result.out, part), result.out);
    CHECK(std::filesystem::is_empty(dir / "out"));
    CHECK_FALSE(std::filesystem::exists(dir / "evil"));
  };
  refused("echo x > f && tar -czPf ../x.tar.gz --transform 's,f,../evil,' f", "../evil: leads out of the folder");
  refused("echo x > f && tar -czPf ../x.tar.gz --transform 's,f,a/../../evil,' f", "leads out of the folder");
  refused("echo x > f && tar -czPf ../x.tar.gz --transform 's,f," + (dir / "evil") + ",' f", "is an absolute path");
  refused("ln -s .. l && tar -czf ../x.tar.gz l", "is neither a file nor a folder");
  refused("echo x > f && ln f g && tar -czf ../x.tar.gz f g", "is neither a file nor a folder");
  refused("mkfifo p && tar -czf ../x.tar.gz p", "is neither a file nor a folder");
  refused("echo x > f && tar -czf ../x.tar.gz f ./f --hard-dereference", "f: is there twice");
  for (const std::string other : {"a//f", "a/./f", ".//a/././f", "a/f/"})  // one place, as a file or a folder
    refused(
        "mkdir a && echo x > a/f && tar -czf ../x.tar.gz a/f && mkdir g && gunzip ../x.tar.gz && tar -rPf ../x.tar " +
            std::string(other.ends_with('/') ? "--transform 's,^g,a/f,' g"
                                             : "--transform 's,^a/f," + other + ",' a/f") +
            " && gzip ../x.tar",
        "a/f: is there twice");
  refused("head -c 3000000 /dev/zero > f && tar -czf ../x.tar.gz f", "unpacks to more than 2000000 bytes",
          "UNPACK_BYTES=2000000");
  refused("truncate -s 1T f && tar -czSf ../x.tar.gz f", "there are more than 2147483648 bytes");
  refused("head -c 30000 /dev/urandom > f && tar -czf ../y f && head -c 9000 ../y > ../x.tar.gz", "is damaged");
  refused("echo this is no archive > ../x.tar.gz", "is damaged: gzip: ");     // in its second line
  REQUIRE(unpack(dir, "mkdir a && tar -czf ../x.tar.gz a a ./a").code == 0);  // a folder may be there twice
  r = shell("cd " + dir.path + " && " REEL_SOURCE_DIR "/scripts/unpack x.tar.gz -x");
  CHECK_MESSAGE(r.code == 0, r.out);
  CHECK(std::filesystem::exists(dir / "-x/a"));
}

TEST_CASE("scripts find their folder where a CDPATH makes cd print names") {
  const Result r = shell("cd " REEL_SOURCE_DIR " && CDPATH=.:/ scripts/run nope");
  CHECK(r.code == 2);
  CHECK_MESSAGE(contains(r.out, "there is no task \"nope\""), r.out);
  CHECK(shell("cd " REEL_SOURCE_DIR " && grep -rE '(^|\\()cd [^/]*dirname' scripts tests/scripts").out.empty());
}
