// Files from strangers: what unpacks to too much, says that it is larger than it is, never ends, or is no number.
#include <sys/stat.h>

#include <fstream>
#include <thread>

#include "tasks/app/options_file.h"
#include "tasks/app/preset.h"
#include "tasks/app/toml_file.h"
#include "tasks/data/audio.h"
#include "tasks/data/babi.h"
#include "tasks/data/idx.h"
#include "tasks/data/mat_check.h"
#include "tasks/data/piano_roll.h"
#include "tasks/data/unpack.h"
#include "tests/support/check.h"
#include "tests/support/child.h"
#include "tests/support/little_data.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

namespace {

/// `size` zeros as zlib packs them, behind the bytes `first`.
std::string packed_zeros(const std::string& first, std::size_t size) {
  z_stream stream{};
  REQUIRE(deflateInit(&stream, 1) == Z_OK);
  std::string out;
  std::vector<unsigned char> block(1 << 20), zeros(1 << 20);
  const auto put = [&](const unsigned char* bytes, std::size_t n, int flush) {
    stream.next_in = const_cast<unsigned char*>(bytes);
    stream.avail_in = static_cast<unsigned>(n);
    do {
      stream.next_out = block.data();
      stream.avail_out = static_cast<unsigned>(block.size());
      deflate(&stream, flush);
      out.append(reinterpret_cast<const char*>(block.data()), block.size() - stream.avail_out);
    } while (stream.avail_out == 0);
  };
  put(reinterpret_cast<const unsigned char*>(first.data()), first.size(), Z_NO_FLUSH);
  for (std::size_t done = 0; done < size; done += zeros.size()) put(zeros.data(), zeros.size(), Z_NO_FLUSH);
  put(nullptr, 0, Z_FINISH);
  deflateEnd(&stream);
  return out;
}

std::string word(std::uint32_t value) { return {reinterpret_cast<const char*>(&value), 4}; }

/// The head of a MATLAB file.
std::string mat_head() {
  std::string head = "MATLAB 5.0 MAT-file";
  head.resize(124, ' ');
  return head + std::string("\x00\x01IM", 4);
}

/// A matrix of doubles that says it has this many of them, without them.
std::string matrix_of(std::uint32_t numbers) {
  const std::string inside = word(6) + word(8) + word(6) + word(0) + word(5) + word(8) + word(numbers) + word(1) +
                             word(1) + word(1) + std::string("x\0\0\0\0\0\0\0", 8) + word(9) + word(numbers * 8);
  return word(14) + word(static_cast<std::uint32_t>(inside.size()) + numbers * 8) + inside;
}

std::string sound_of(const TempDir& dir, const std::vector<double>& x) {
  const std::string path = dir / "x.wav";
  SF_INFO info{};
  info.samplerate = 8000, info.channels = 1, info.format = SF_FORMAT_WAV | SF_FORMAT_DOUBLE;
  SNDFILE* file = sf_open(path.c_str(), SFM_WRITE, &info);
  REQUIRE(file);
  sf_write_double(file, x.data(), std::ssize(x));
  sf_close(file);
  return path;
}

}  // namespace

TEST_CASE("unpack: members in a row, no byte more than the limit, and all that can be wrong") {
  const std::string zeros = packed_zeros("abc", 1 << 20);
  std::string out;
  CHECK(unpack(zeros, 3 + (1 << 20), out) == Unpacked::whole);
  CHECK(out.size() == 3 + (1 << 20));
  CHECK(unpack(zeros, 2 + (1 << 20), out) == Unpacked::too_long);
  CHECK(out.size() == 2 + (1 << 20));
  CHECK(unpack(zeros, 0, out) == Unpacked::too_long);
  CHECK(out.empty());
  CHECK(unpack("", 9, out) == Unpacked::cut_off);
  for (std::size_t cut = 0; cut < zeros.size(); cut += 1 + cut / 4)
    CHECK(unpack(zeros.substr(0, cut), 2 << 20, out) == Unpacked::cut_off);
  CHECK(unpack("abcdefgh", 9, out) == Unpacked::damaged);
  std::string wrong = zeros;
  wrong.back() = static_cast<char>(wrong.back() ^ 1);
  CHECK(unpack(wrong, 2 << 20, out) == Unpacked::damaged);
  const TempDir dir;
  for (const char* mode : {"wb", "ab"}) {
    gzFile file = gzopen((dir / "two.gz").c_str(), mode);
    gzwrite(file, "abc", 3);
    gzclose(file);
  }
  CHECK(unpack(read_file(dir / "two.gz"), 9, out) == Unpacked::whole);
  CHECK(out == "abcabc");
  CHECK(unpack(read_file(dir / "two.gz") + "rest", 9, out) == Unpacked::whole);
}

TEST_CASE("bombs: IDX and MATLAB files that unpack to more than they say, or than can be read") {
  const TempDir dir;
  gzFile file = gzopen((dir / "x.gz").c_str(), "wb");
  const std::string head("\0\0\10\1\0\0\0\5", 8), zeros(1 << 20, '\0');
  gzwrite(file, head.data(), 8);
  for (int i = 0; i < 64; ++i) gzwrite(file, zeros.data(), 1 << 20);
  gzclose(file);
  CHECK(contains(error_of([&] { read_idx("mnist", dir / "x.gz", 1); }), "x.gz: holds more than 5 elements"));

  // 6 MB that were 6.7 GB: here as much as shows that reading ends at the limit
  const std::string inside =
      packed_zeros(matrix_of((std::uint32_t{1} << 25) + 1024), (std::size_t{1} << 28) + (1 << 20));
  write_atomically(dir / "x.mat", mat_head() + word(15) + word(static_cast<std::uint32_t>(inside.size())) + inside);
  CHECK(contains(error_of([&] { read_piano_rolls("music", dir / "x.mat"); }),
                 "[music] x.mat: unpacks to more than 268435456 bytes"));
  CHECK(contains(mat_damage(mat_head() + matrix_of(1 << 20)), "is cut off"));
  CHECK(mat_damage(mat_head() + matrix_of(2) + std::string(16, '\0')) == "");
  CHECK(contains(mat_damage(mat_head() + word(14) + word(8) + word(6) + word(0)), "the matrix at byte 128"));
  CHECK(contains(mat_damage("MATLAB 7.3 MAT-file" + std::string(200, ' ')), "save it with -v7"));
}

TEST_CASE("bombs: questions that each have a long story of their own") {
  std::string text = "1 ";
  for (int i = 0; i < 20000; ++i) text += "a ";
  for (int i = 2; i < 4000; ++i) text += fmt::format("\n{} B?\tc\t1", i);
  std::vector<std::string> words, answers;
  WordNumbers word(words), answer(answers);
  CHECK(contains(error_of([&] { parse_babi("qa.txt", text, true, word, answer); }),
                 "line 3357: the stories so far have more than 67108864 words"));
}

TEST_CASE("sound: samples that are none are named, not the learning rate") {
  const TempDir dir;
  const auto why = [&](double bad) {
    std::vector<double> x(100, 0.5);
    x[17] = bad;
    return error_of([&] { read_audio("speech", sound_of(dir, x), 8000); });
  };
  CHECK(contains(why(NAN), "x.wav: sample 17 is NaN"));
  CHECK(contains(why(-INFINITY), "x.wav: sample 17 is -inf"));
  CHECK(contains(why(1e300), "x.wav: sample 17 is 1e+300"));
  CHECK(why(-1.5).empty());
  std::string lost = read_file(sound_of(dir, {0.5}));  // libsndfile looked for its end for minutes
  lost.insert(36, std::string("LIST\x10\xff\xff\xff", 8) + std::string(30, '\xff'));
  CHECK(contains(error_of([&] { parse_audio("speech", "x.wav", lost, 8000); }), "says that it has 4294967056 bytes"));
  // a fuzzer's: libsndfile reads the second format for ever
  const std::string endless(
      "RIFFx\0\0\0WAVE"
      "fmt \x10\0\0\0\1\0\1\0\x40\xe0\0\0\x40\x1f\0\0\1\0\x8\0"
      "fmt \x10\0\0\0INFOPEAK\0abc\xf8\xff\xff\xff",
      60);
  CHECK(contains(error_of([&] { parse_audio("speech", "x.wav", endless, 8000); }), "there is no \"data\" in it"));
  std::string odd = read_file(sound_of(dir, {0.5, 0.25}));  // a "fmt " of 17 bytes, and the one that makes it even
  REQUIRE(odd.substr(12, 5) == "fmt \x10");
  odd[16] = 17;
  odd.insert(36, 2, '\0');
  CHECK(parse_audio("speech", "x.wav", odd, 8000) == std::vector<double>{0.5, 0.25});
  write_atomically(dir / "x.wav", "fLaC" + std::string(100, '\0'));
  CHECK(contains(error_of([&] { read_audio("speech", dir / "x.wav", 8000); }), "is no sound file, WAV or NIST SPHERE"));
}

TEST_CASE("options and presets: keys of any length, files of any size, grids of any size") {
  const TempDir dir;
  std::string deep = "a";
  for (int i = 0; i < 400000; ++i) deep += ".a";
  CHECK(contains(error_of([&] { check_toml("x", deep.substr(0, 100001) + " = 1"); }), "has more than 10000 dots"));
  CHECK(parse_options("x", deep.substr(0, 20001) + " = 1").size() == 2);  // as deep as it may be
  write_atomically(dir / "deep.toml", deep + " = 1\n");
  CHECK(contains(error_of([&] { read_options_file(dir / "deep.toml"); }), "it has more than 262144 bytes"));

  std::string grid = "paper = \"P\"\n[t]\ntitle = \"T\"\nwhere = \"W\"\ntask = \"copying\"\nmetric = \"valid_loss\"\n";
  for (int i = 0; i < 40; ++i) grid += fmt::format("cases.c{} = \"\"\nmodels.m{} = \"\"\n", i, i);
  CHECK(contains(error_of([&] { parse_presets("x.toml", grid); }), "40 cases of 40 models are more than 1000 presets"));
  for (const char* count : {"1e30", "-1", "nan", "inf"})
    CHECK(contains(error_of([&] {
                     parse_presets(
                         "x.toml",
                         fmt::format("paper = \"P\"\n[t]\ntitle = \"T\"\nwhere = \"W\"\ntask = \"c\"\nmetric = "
                                     "\"v\"\nmodels.a = \"\"\nparameters.a = {}\n",
                                     count));
                   }),
                   "is no count"));
}

TEST_CASE("a device as a file of options ends at a limit; a pipe is read to its end") {
  const TempDir dir;
  const Result zero = run("copying", {"--config", "/dev/zero", "--dry-run"}, dir.path);
  CHECK(zero.code == 2);
  CHECK(zero.err == "copying: [/dev/zero] cannot be read: it has more than 262144 bytes\n");
  CHECK(run("copying", {"--config", "/dev/null", "--dry-run"}, dir.path).code == 0);
  CHECK(contains(error_of([] { read_file("/dev/zero", 1000); }), "it has more than 1000 bytes"));
  REQUIRE(mkfifo((dir / "pipe").c_str(), 0600) == 0);
  std::thread writer([&] { std::ofstream(dir / "pipe") << "hidden = 77\n"; });
  const Result pipe = run("copying", {"--config", dir / "pipe", "--dry-run"}, dir.path);
  writer.join();
  CHECK(pipe.code == 0);
  CHECK(contains(pipe.out, "77"));
  for (const auto& [size, good] : {std::pair{10, true}, {11, false}}) {
    write_atomically(dir / "f", std::string(static_cast<std::size_t>(size), 'x'));
    CHECK(error_of([&] { read_file(dir / "f", 10); }).empty() == good);
  }
}

TEST_CASE("text that toml++ 3.3 has no answer for is an error of the file") {
  const auto why = [](const std::string& text) {
    return error_of([&] {
      check_toml("x", text);
      parse_options("x", text);
    });
  };
  for (const char* text : {"[%", "[   %t]", "a = [1,  }"}) {  // found by the fuzzers: assertions of its parser
    CHECK(contains(why(text), "x"));
    CHECK(contains(error_of([&] { parse_presets("x.toml", text); }), "x.toml"));
  }
  // likewise: it asks whether these characters are white space, and its code for that is undefined
  for (const char* text :
       {"\na = \u0320[1]", "\na = -3\"\u0460\"", "\na= [0[\"2\u00e9\"", "\na = \"\"\"b \\\u00e9\"\"\""})
    CHECK(contains(why(text), "x:2: "));
  CHECK(why("\xef\xbb\xbf# \u0320\na = \"\u0320\"\n'\u0320' = '''\u0320'''\nb = \"\"\"\\\n x \u00e9 \"\"\"\"\"\n")
            .empty());
}
