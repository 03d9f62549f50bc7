// Measures how close a waveform is to its reference.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace reel {

/// Segmental signal-to-noise ratio in dB: the mean over segments of 10 ms of 10 log10(sum r^2 / sum (r - x)^2), each
/// clamped to -10..35. Segments in which the reference is silent do not count; NaN if there are no others. Both signals
/// have the same length.
double segmental_snr(const std::vector<double>& reference, const std::vector<double>& x, double rate);

/// Short-time objective intelligibility (Taal et al. 2011), about 0 to 1; the signals are resampled to 10 kHz. NaN if
/// fewer than 30 frames (0.4 s) of the reference are not silent. Both signals have the same length.
double stoi(const std::vector<double>& reference, const std::vector<double>& x, std::int64_t rate);

/// The score from an external PESQ program (ITU-T P.862, which is not free), called like the ITU's own as `PROGRAM
/// +RATE reference.wav x.wav`: the first number after the last "=" of its output. Throws Error if it cannot be run or
/// prints no number.
double pesq(const std::string& program, const std::vector<double>& reference, const std::vector<double>& x,
            std::int64_t rate);

}  // namespace reel
