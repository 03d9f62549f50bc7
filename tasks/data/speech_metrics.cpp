#include "tasks/data/speech_metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "ops/ops.h"
#include "tasks/data/audio.h"

namespace reel {

namespace {

constexpr std::int64_t stoi_rate = 10000, size = 256, hop = 128, fft_size = 512, bands = 15, segment = 30;
constexpr double lowest = 150, dynamic_range = 40, lower_bound = -15;

using Signal = std::vector<double>;

/// Frames of the signal times MATLAB's hanning(256), which has no zeros at its ends. Like the published code, it drops
/// a frame that ends exactly where the signal ends.
std::vector<Signal> windowed(const Signal& x) {
  std::vector<Signal> frames;
  for (std::size_t first = 0; first + size < x.size(); first += hop) {
    Signal& frame = frames.emplace_back(size);
    for (std::size_t j = 0; j < size; ++j)
      frame[j] = x[first + j] * (0.5 - 0.5 * std::cos(2 * std::numbers::pi * static_cast<double>(j + 1) / (size + 1)));
  }
  return frames;
}

/// Overlap-adds the frames that are kept, one hop apart.
Signal joined(const std::vector<Signal>& frames, const std::vector<bool>& kept) {
  Signal out;
  std::size_t at = 0;
  for (std::size_t f = 0; f < frames.size(); ++f) {
    if (!kept[f]) continue;
    out.resize(at + size, 0);
    for (std::size_t j = 0; j < size; ++j) out[at + j] += frames[f][j];
    at += hop;
  }
  return out;
}

/// Marks the frames less than 40 dB below the loudest frame of the reference.
std::vector<bool> audible(const std::vector<Signal>& frames) {
  Signal energy;
  for (const Signal& f : frames) energy.push_back(std::inner_product(f.begin(), f.end(), f.begin(), 0.0));
  const double loudest = energy.empty() ? 0 : *std::max_element(energy.begin(), energy.end());
  std::vector<bool> out;
  for (const double e : energy) out.push_back(e > 0 && 10 * std::log10(e / loudest) + dynamic_range > 0);
  return out;
}

/// The root of the energy in 15 third-octave bands from 150 Hz up: [frames][band].
std::vector<Signal> envelopes(const Signal& x) {
  const std::vector<Signal> frames = windowed(x);
  if (frames.empty()) return {};
  Signal all;
  for (const Signal& f : frames) all.insert(all.end(), f.begin(), f.end());
  const Tensor spectrum =
      rfft(Tensor::from<double>(all, {static_cast<std::int64_t>(frames.size()), size}), {.n = fft_size});
  const Signal power = square(abs(spectrum)).values<double>();
  const auto bin = [](double frequency) {  // the nearest bin; the lower one of two
    const double place = frequency * fft_size / stoi_rate;
    return static_cast<std::size_t>(std::ceil(place - 0.5));
  };
  constexpr std::size_t bins = fft_size / 2 + 1;
  std::vector<Signal> out(frames.size(), Signal(bands));
  for (std::size_t band = 0; band < bands; ++band) {
    const double middle = lowest * std::exp2(static_cast<double>(band) / 3);
    const std::size_t first = bin(middle * std::exp2(-1.0 / 6)), end = bin(middle * std::exp2(1.0 / 6));
    for (std::size_t f = 0; f < frames.size(); ++f) {
      const auto row = power.begin() + static_cast<std::ptrdiff_t>(f * bins);
      out[f][band] = std::sqrt(
          std::accumulate(row + static_cast<std::ptrdiff_t>(first), row + static_cast<std::ptrdiff_t>(end), 0.0));
    }
  }
  return out;
}

/// The correlation of two signals; 0 if one of them is constant.
double correlation(Signal a, Signal b) {
  for (Signal* v : {&a, &b}) {
    const double mean = std::accumulate(v->begin(), v->end(), 0.0) / static_cast<double>(v->size());
    for (double& e : *v) e -= mean;
  }
  const auto dot = [](const Signal& u, const Signal& v) {
    return std::inner_product(u.begin(), u.end(), v.begin(), 0.0);
  };
  const double scale = std::sqrt(dot(a, a) * dot(b, b));
  return scale > 0 ? dot(a, b) / scale : 0;
}

}  // namespace

double segmental_snr(const Signal& reference, const Signal& x, double rate) {
  REEL_ASSERT(reference.size() == x.size());
  const auto piece = static_cast<std::size_t>(std::lround(rate / 100));
  double total = 0, count = 0;
  for (std::size_t first = 0; first + piece <= x.size(); first += piece) {
    double signal = 0, noise = 0;
    for (std::size_t i = first; i < first + piece; ++i) {
      signal += reference[i] * reference[i];
      noise += (reference[i] - x[i]) * (reference[i] - x[i]);
    }
    if (signal == 0) continue;
    total += noise == 0 ? 35 : std::clamp(10 * std::log10(signal / noise), -10.0, 35.0);
    ++count;
  }
  return total / count;
}

double stoi(const Signal& reference, const Signal& x, std::int64_t rate) {
  REEL_ASSERT(reference.size() == x.size());
  const std::int64_t common = std::gcd(rate, stoi_rate), up = stoi_rate / common, down = rate / common;
  const auto at_rate = [&](const Signal& v) { return up == down ? v : resample(v, up, down); };
  const auto frames = windowed(at_rate(reference));
  const std::vector<bool> kept = audible(frames);
  const auto r = envelopes(joined(frames, kept)), y = envelopes(joined(windowed(at_rate(x)), kept));
  if (r.size() < segment) return std::numeric_limits<double>::quiet_NaN();
  const double most = 1 + std::pow(10, -lower_bound / 20);
  double total = 0;
  for (std::size_t end = segment; end <= r.size(); ++end) {
    for (std::size_t band = 0; band < bands; ++band) {
      Signal a, b;
      for (std::size_t f = end - segment; f < end; ++f) {
        a.push_back(r[f][band]);
        b.push_back(y[f][band]);
      }
      const double energy = std::inner_product(b.begin(), b.end(), b.begin(), 0.0);
      const double wanted = std::inner_product(a.begin(), a.end(), a.begin(), 0.0);
      const double scale = energy > 0 ? std::sqrt(wanted / energy) : 0;
      for (std::size_t f = 0; f < segment; ++f) b[f] = std::min(b[f] * scale, a[f] * most);
      total += correlation(a, b);
    }
  }
  return total / static_cast<double>((r.size() - segment + 1) * bands);
}

}  // namespace reel
