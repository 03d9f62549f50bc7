#include "tasks/data/audio.h"

#include <sndfile.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <numeric>

#include "tasks/harness/data_error.h"

namespace reel {

namespace {

/// True when there is less sound than the header says; libsndfile takes what there is, and only its log tells.
bool cut_off(SNDFILE* file) {
  std::string log(1 << 14, '\0');
  const int n = sf_command(file, SFC_GET_LOG_INFO, log.data(), static_cast<int>(log.size()));
  log.resize(static_cast<std::size_t>(std::max(n, 0)));
  const std::size_t data = log.find("data : ");
  return data != std::string::npos &&
         log.substr(data, log.find('\n', data) - data).find("should be") != std::string::npos;
}

}  // namespace

std::vector<double> read_audio(const std::string& set, const std::string& path, std::int64_t rate) {
  SF_INFO info{};
  const std::unique_ptr<SNDFILE, int (*)(SNDFILE*)> file(sf_open(path.c_str(), SFM_READ, &info), sf_close);
  if (!file) throw DataError(set, path, fmt::format("is no sound file ({})", sf_strerror(nullptr)));
  if (info.channels != 1) throw DataError(set, path, fmt::format("has {} channels, 1 is wanted", info.channels));
  if (info.frames < 1 || info.frames > sf_count_t{1} << 28)
    throw DataError(set, path, fmt::format("has {} samples", info.frames));
  if (cut_off(file.get())) throw DataError(set, path, "is cut off: it has less sound than its header says");
  const std::int64_t common = std::gcd(rate, std::max<std::int64_t>(info.samplerate, 1));
  const std::int64_t up = rate / common, down = info.samplerate / common;
  if (info.samplerate < rate || up > 1000 || down > 1000)
    throw DataError(set, path,
                    fmt::format("has {} samples a second: {} are wanted, or more in a ratio of small numbers to that",
                                info.samplerate, rate));
  std::vector<double> x(static_cast<std::size_t>(info.frames));
  const sf_count_t read = sf_read_double(file.get(), x.data(), info.frames);
  if (read != info.frames) throw DataError(set, path, fmt::format("ends after {} of {} samples", read, info.frames));
  return up == down ? x : resample(x, up, down);
}

std::vector<double> resample(const std::vector<double>& x, std::int64_t up, std::int64_t down) {
  const std::int64_t rate = std::max(up, down), half = 10 * rate;
  constexpr double beta = 5;
  std::vector<double> h(static_cast<std::size_t>(2 * half + 1));
  for (std::int64_t k = -half; k <= half; ++k) {
    const double t = std::numbers::pi * static_cast<double>(k) / static_cast<double>(rate);
    const double place = static_cast<double>(k) / static_cast<double>(half);
    h[static_cast<std::size_t>(k + half)] =
        (k == 0 ? 1 : std::sin(t) / t) * std::cyl_bessel_i(0, beta * std::sqrt(1 - place * place));
  }
  const double scale = static_cast<double>(up) / std::accumulate(h.begin(), h.end(), 0.0);
  const auto n = static_cast<std::int64_t>(x.size());
  std::vector<double> y;
  for (std::int64_t k = 0; k < (n * up + down - 1) / down; ++k) {
    // samples i of x with tap k down + half - i up within the filter
    const std::int64_t middle = k * down;
    const std::int64_t first = std::max<std::int64_t>(0, (middle - half + up - 1) / up);
    const std::int64_t last = std::min(n - 1, (middle + half) / up);
    double sum = 0;
    for (std::int64_t i = first; i <= last; ++i)
      sum += x[static_cast<std::size_t>(i)] * h[static_cast<std::size_t>(middle + half - i * up)];
    y.push_back(scale * sum);
  }
  return y;
}

}  // namespace reel
