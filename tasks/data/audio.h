// Speech from files: WAV and NIST SPHERE through libsndfile, at one rate.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace reel {

/// A file with one channel as numbers in [-1, 1) (16 bit: over 32768) at `rate` samples a second; a faster one is
/// resampled. Throws DataError, which names the data set and the file, when it is no such sound, has no samples, more
/// than one channel, one that is NaN or beyond +-2^31, or a rate that is below `rate` or not in a ratio of numbers up
/// to 1000 to it.
std::vector<double> read_audio(const std::string& set, const std::string& path, std::int64_t rate);

/// The same from the bytes of a file; set and path are for errors only.
std::vector<double> parse_audio(const std::string& set, const std::string& path, std::string_view bytes,
                                std::int64_t rate);

/// x at up / down times its rate: a Kaiser-windowed (beta 5) low-pass of 20 max(up, down) + 1 taps between, as SciPy's
/// resample_poly; ceil(n up / down) samples. up and down have no common factor.
std::vector<double> resample(const std::vector<double>& x, std::int64_t up, std::int64_t down);

/// Paths of all .wav and .sph files (in capitals or not) below a folder, in the order of their names.
std::vector<std::string> audio_files(const std::string& folder);

/// Utterances by their part.
struct SpeechFiles {
  std::vector<std::string> train, valid, test;
};

/// The folders train, valid and test below `folder`; when it has none of the three, all files below it, a tenth drawn
/// at random to validate on and a tenth for the test. Throws DataError when a part is empty.
SpeechFiles speech_in_folder(const std::string& folder);

/// TIMIT below `folder`, which has train and test: all sentences but the two that everyone reads (sa1, sa2); of the
/// test those of the 50 speakers of the usual development set are validated on and those of the 24 of the core set are
/// the test. `path_filter` leaves out every file with "sa" anywhere in its path, as published code does, which loses
/// seven speakers to train on. Throws DataError when a part is empty.
SpeechFiles timit(const std::string& folder, bool path_filter);

}  // namespace reel
