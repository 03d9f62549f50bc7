// How good a waveform is beside the one that it should be.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace reel {

/// Segmental signal-to-noise ratio in dB: the mean over pieces of 10 ms of 10 log10(sum r^2 / sum (r - x)^2), each kept
/// within -10 and 35; pieces in which the reference is silent do not count. NaN when there are none. Both have one
/// length.
double segmental_snr(const std::vector<double>& reference, const std::vector<double>& x, double rate);

/// Short-time objective intelligibility (Taal et al. 2011), about 0 to 1; the signals are resampled to 10 kHz. NaN when
/// less than 30 frames (0.4 s) of the reference are no silence. Both have one length.
double stoi(const std::vector<double>& reference, const std::vector<double>& x, std::int64_t rate);

/// What an external program for PESQ (ITU-T P.862, which is not free) says, called as `PROGRAM +RATE reference.wav
/// x.wav` as the ITU's own: the first number behind the last "=" of its output. Throws Error when it cannot be run or
/// says none.
double pesq(const std::string& program, const std::vector<double>& reference, const std::vector<double>& x,
            std::int64_t rate);

}  // namespace reel
