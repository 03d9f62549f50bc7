// Recordings, WAV and NIST SPHERE.
#include <algorithm>
#include <cmath>

#include "tasks/data/audio.h"
#include "tests/fuzz/fuzz.h"

using namespace reel;
using namespace reel::fuzz;

REEL_FUZZ(bytes) {
  takes([&] {
    const std::vector<double> x = parse_audio("speech", "x.wav", bytes, 8000);
    check(!x.empty() && std::all_of(x.begin(), x.end(), [](double v) { return std::isfinite(v); }), "sound");
  });
}
