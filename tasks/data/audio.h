// Reads speech from WAV and NIST SPHERE files through libsndfile, at one sample rate.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace reel {

/// Reads a mono file as samples in [-1, 1) (16 bit: divided by 32768) at `rate` samples a second; resamples a file with
/// a higher rate. Throws DataError naming the data set and the file if it is no such sound file, has no samples, has
/// more than one channel, has a sample that is NaN or beyond +-2^31, or has a rate that is below `rate` or not in a
/// ratio of integers up to 1000 to it.
std::vector<double> read_audio(const std::string& set, const std::string& path, std::int64_t rate);

/// The same from the bytes of a file; set and path are used in errors only.
std::vector<double> parse_audio(const std::string& set, const std::string& path, std::string_view bytes,
                                std::int64_t rate);

/// Resamples x by up / down like SciPy's resample_poly, with a Kaiser-windowed (beta 5) low-pass of 20 max(up, down) +
/// 1 taps. Returns ceil(n up / down) samples. up and down must have no common factor.
std::vector<double> resample(const std::vector<double>& x, std::int64_t up, std::int64_t down);

/// The paths of all .wav and .sph files below a folder, sorted; the case of the extension does not matter.
std::vector<std::string> audio_files(const std::string& folder);

/// The paths of the utterances in each part.
struct SpeechFiles {
  std::vector<std::string> train, valid, test;
};

/// The folders train, valid and test below `folder`. If none of the three exists, splits all files below it at random:
/// a tenth to validate on, a tenth for the test. Throws DataError if a part is empty.
SpeechFiles speech_in_folder(const std::string& folder);

/// TIMIT below `folder`, which has train and test: all sentences except the two that every speaker reads (sa1, sa2).
/// From the test folder, the 50 speakers of the usual development set are validated on, and the 24 of the core set are
/// the test. `path_filter` drops every file with "sa" anywhere in its path, as published code does, which loses seven
/// training speakers. Throws DataError if a part is empty.
SpeechFiles timit(const std::string& folder, bool path_filter);

/// The same sentences, drawn at random: `train` and `valid` of them from the folder train, `test` from the folder test.
/// The draw depends on the files alone. Throws DataError if a folder has fewer.
SpeechFiles timit_drawn(const std::string& folder, bool path_filter, std::size_t train, std::size_t valid,
                        std::size_t test);

}  // namespace reel
