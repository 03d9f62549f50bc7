// Piano rolls in MATLAB files: our check first, then matio with what it lets through.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "tasks/data/mat_check.h"
#include "tasks/data/piano_roll.h"
#include "tests/fuzz/fuzz.h"

using namespace reel;
using namespace reel::fuzz;

REEL_FUZZ(bytes) {
  if (!mat_damage(bytes).empty()) return;
  static const int file = memfd_create("x.mat", 0);
  static const std::string path = fmt::format("/proc/self/fd/{}", file);
  check(ftruncate(file, 0) == 0 && pwrite(file, bytes.data(), bytes.size(), 0) == std::ssize(bytes),
        "memory for a file");
  takes([&] {
    const Tunes tunes = read_piano_rolls("music", path);
    for (const std::vector<Tune>* part : {&tunes.train, &tunes.valid, &tunes.test})
      for (const Tune& tune : *part)
        check(tune.size() % piano_keys == 0 && *std::max_element(tune.begin(), tune.end()) <= 1, "a tune");
  });
}
