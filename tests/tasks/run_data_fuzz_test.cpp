// Damaged data files: thousands of mutants of good ones, cut off, with bytes changed, taken out or put in. A reader
// takes one or throws an error that names the file; it never crashes, which the build with sanitizers looks at closely.
#include <algorithm>
#include <fstream>
#include <functional>

#include "ops/functors/philox.h"
#include "tasks/data/audio.h"
#include "tasks/data/babi.h"
#include "tasks/data/data_error.h"
#include "tasks/data/idx.h"
#include "tasks/data/piano_roll.h"
#include "tasks/data/text.h"
#include "tasks/training/safetensors.h"
#include "tests/support/check.h"
#include "tests/support/little_data.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

namespace {

/// Mutant `number` of the bytes.
std::string mutant(std::string bytes, std::uint64_t number) {
  Stream random(11, number);
  const auto place = [&] {
    return static_cast<std::size_t>(random.below(std::max<std::int64_t>(1, std::ssize(bytes))));
  };
  // the first bytes say what all others mean: half of the changes are there
  const auto spot = [&] { return random.below(2) == 0 ? place() : place() % std::min<std::size_t>(bytes.size(), 256); };
  const auto changes = 1 + random.below(4);
  for (std::int64_t i = 0; i < changes && !bytes.empty(); ++i) {
    switch (random.below(6)) {
      case 0:
        bytes.resize(place());
        break;
      case 1:
        bytes.erase(spot(), static_cast<std::size_t>(1 + random.below(40)));
        break;
      case 2:
        bytes.insert(spot(), static_cast<std::size_t>(1 + random.below(40)), static_cast<char>(random.below(256)));
        break;
      case 3:
        bytes[spot()] = static_cast<char>(random.below(2) == 0 ? 0 : 255);
        break;
      default:
        bytes[spot()] = static_cast<char>(random.below(256));
    }
  }
  return bytes;
}

/// Without waiting for the disk, as thousands of files would.
void put(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

struct Tally {
  int taken = 0, refused = 0;
};

/// Reads `count` mutants of a good file in its place.
Tally fuzz(const std::string& path, int count, const std::function<void()>& read) {
  read();  // the good one
  const std::string good = read_file(path), name = std::filesystem::path(path).filename();
  Tally tally;
  for (int number = 0; number < count; ++number) {
    CAPTURE(number);
    put(path, mutant(good, static_cast<std::uint64_t>(number)));
    try {
      read();
      ++tally.taken;
    } catch (const Error& e) {
      ++tally.refused;
      CHECK_MESSAGE(contains(e.what(), name), e.what());
      CHECK_MESSAGE(std::count(e.what(), e.what() + std::string(e.what()).size(), '\n') == 0, e.what());
    }
  }
  put(path, good);
  return tally;
}

}  // namespace

TEST_CASE("mutants of IDX files, packed and plain") {
  const TempDir dir;
  const std::string packed = dir / "images-idx3-ubyte.gz", plain = dir / "images-idx3-ubyte";
  write_idx(packed, {6, 28, 28});
  Idx good;
  CHECK(fuzz(packed, 1000, [&] { good = read_idx("mnist", packed, 3); }).refused > 750);
  std::string bytes{0, 0, 8, 3, 0, 0, 0, 6, 0, 0, 0, 28, 0, 0, 0, 28};
  bytes.append(6 * 28 * 28, '\7');
  write_atomically(plain, bytes);
  const Tally tally = fuzz(plain, 1000, [&] { read_idx("mnist", plain, 3); });
  CHECK(tally.refused > 400);
  CHECK(tally.taken > 25);  // another grey is no damage that shows
}

TEST_CASE("mutants of MATLAB files") {
  const TempDir dir;
  const std::string path = dir / "Nottingham.mat";
  write_tunes(path);
  CHECK(fuzz(path, 1000, [&] { read_piano_rolls("music", path); }).refused > 250);
}

TEST_CASE("mutants of recordings, WAV and SPHERE") {
  const TempDir dir;
  const std::string wav = dir / "si648.wav", sphere = dir / "si649.sph";
  write_sound(wav);
  CHECK(fuzz(wav, 1000, [&] { read_audio("speech", wav, 8000); }).refused > 50);
  std::string head =
      "NIST_1A\n   1024\nsample_count -i 400\nsample_n_bytes -i 2\nchannel_count -i 1\nsample_byte_format "
      "-s2 01\nsample_rate -i 16000\nsample_coding -s3 pcm\nend_head\n";
  head.resize(1024, ' ');
  for (int i = 0; i < 800; ++i) head += static_cast<char>(i * 37 % 251);
  write_atomically(sphere, head);
  CHECK(fuzz(sphere, 1000, [&] { read_audio("speech", sphere, 8000); }).refused > 50);
}

TEST_CASE("mutants of texts, stories and weights") {
  const TempDir dir;
  write_data(dir.path);
  const std::string text = dir / "ptb/ptb.valid.txt", story = dir / "babi/en-valid-10k/qa1_test.txt";
  CHECK(fuzz(text, 1000, [&] { read_ptb(dir.path, true); }).refused > 50);
  CHECK(fuzz(story, 1000, [&] { read_babi(dir.path, "en-valid-10k", 1, true); }).refused > 250);
  const std::string weights = dir / "weights.safetensors";
  save_safetensors(weights, {{{"W", random({3, 4}, 1)}, {"b", random({4}, 2)}}, {{"made", "by a test"}}});
  CHECK(fuzz(weights, 1000, [&] { load_safetensors(weights); }).refused > 400);
}
