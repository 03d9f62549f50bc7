#include <algorithm>
#include <filesystem>
#include <set>

#include "ops/functors/philox.h"
#include "tasks/data/audio.h"
#include "tasks/data/data_error.h"
#include "tasks/io/folder.h"
#include "tasks/io/lower.h"

namespace reel {

namespace fs = std::filesystem;

namespace {

const std::set<std::string> development{
    "faks0", "fdac1", "fjem0", "mgwt0", "mjar0", "mmdb1", "mmdm2", "mpdf0", "fcmh0", "fkms0", "mbdg0", "mbwm0", "mcsh0",
    "fadg0", "fdms0", "fedw0", "mgjf0", "mglb0", "mrtk0", "mtaa0", "mtdt0", "mthc0", "mwjg0", "fnmr0", "frew0", "fsem0",
    "mbns0", "mmjr0", "mdls0", "mdlf0", "mdvc0", "mers0", "fmah0", "fdrw0", "mrcs0", "mrjm4", "fcal1", "mmwh0", "fjsj0",
    "majc0", "mjsw0", "mreb0", "fgjd0", "fjmg0", "mroa0", "mteb0", "mjfc0", "mrjr0", "fmml0", "mrws1"};
const std::set<std::string> core{"mdab0", "mwbt0", "felc0", "mtas1", "mwew0", "fpas0", "mjmp0", "mlnt0",
                                 "fpkt0", "mlll0", "mtls0", "fjlm0", "mbpm0", "mklt0", "fnlp0", "mcmj0",
                                 "mjdh0", "fmgd0", "mgrt0", "mnjm0", "fdhc0", "mjln0", "mpam0", "fmld0"};

void check_parts(const std::string& set, const std::string& folder, const SpeechFiles& files) {
  for (const auto& [name, part] :
       {std::pair{"train on", &files.train}, {"validate on", &files.valid}, {"test", &files.test}})
    if (part->empty()) throw DataError(set, folder, fmt::format("holds no .wav or .sph file to {}", name));
}

void refuse_file(const std::string& set, const std::string& folder) {
  std::error_code none;
  if (fs::exists(folder, none) && !fs::is_directory(folder, none)) throw DataError(set, folder, "is no folder");
}

/// The subfolder of this name, ignoring case; empty if there is none.
std::string child(const std::string& folder, const std::string& name) {
  for (const fs::path& entry : entries_of(folder))
    if (std::error_code none; fs::is_directory(entry, none) && lower(entry.filename()) == name) return entry;
  return {};
}

/// In an order that depends on the files, not on a run's seed.
std::vector<std::string> shuffled(std::vector<std::string> files) {
  Stream random(0, 0);
  for (std::size_t k = files.size(); k > 1; --k)
    std::swap(files[k - 1], files[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(k)))]);
  return files;
}

/// The sentences of TIMIT in its folder train or test, without those that everyone reads.
std::vector<std::string> sentences(const std::string& folder, const std::string& part, bool path_filter) {
  refuse_file("timit", folder);
  const std::string below = child(folder, part);
  if (below.empty()) throw DataError("timit", part, "not found in " + folder);
  std::vector<std::string> files = audio_files(below);
  std::erase_if(files, [&](const std::string& file) {
    const std::string inside = lower(fs::path(file).lexically_relative(folder));
    return path_filter ? inside.find("sa") != std::string::npos : lower(fs::path(file).filename()).starts_with("sa");
  });
  return files;
}

}  // namespace

std::vector<std::string> audio_files(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, fs::directory_options::skip_permission_denied, error), end;
       !error && at != end; at.increment(error)) {
    const std::string kind = lower(at->path().extension());
    std::error_code none;
    if ((kind == ".wav" || kind == ".sph") && at->is_regular_file(none)) files.push_back(at->path());
  }
  if (error && error != std::errc::no_such_file_or_directory)
    throw DataError("speech", folder, "cannot be read: " + error.message());
  std::sort(files.begin(), files.end());
  return files;
}

SpeechFiles speech_in_folder(const std::string& folder) {
  if (std::error_code none; !fs::exists(folder, none)) throw DataError("speech", folder, "does not exist");
  refuse_file("speech", folder);
  SpeechFiles files;
  const std::string train = child(folder, "train"), valid = child(folder, "valid"), test = child(folder, "test");
  if (!train.empty() || !valid.empty() || !test.empty()) {
    if (!train.empty()) files.train = audio_files(train);
    if (!valid.empty()) files.valid = audio_files(valid);
    if (!test.empty()) files.test = audio_files(test);
  } else {
    const std::vector<std::string> all = shuffled(audio_files(folder));
    if (!all.empty() && all.size() < 3)
      throw DataError(
          "speech", folder,
          fmt::format("holds {} recording{}, .wav or .sph, and 3 or more are needed: to train on, to validate "
                      "on and to test",
                      all.size(), all.size() == 1 ? "" : "s"));
    const std::size_t tenth = (all.size() + 9) / 10;
    for (std::size_t i = 0; i < all.size(); ++i)
      (i < tenth ? files.test : i < 2 * tenth ? files.valid : files.train).push_back(all[i]);
  }
  check_parts("speech", folder, files);
  return files;
}

SpeechFiles timit(const std::string& folder, bool path_filter) {
  SpeechFiles files{sentences(folder, "train", path_filter), {}, {}};
  for (const std::string& file : sentences(folder, "test", path_filter)) {
    const std::string speaker = lower(fs::path(file).parent_path().filename());
    if (development.contains(speaker)) files.valid.push_back(file);
    if (core.contains(speaker)) files.test.push_back(file);
  }
  check_parts("timit", folder, files);
  return files;
}

SpeechFiles timit_drawn(const std::string& folder, bool path_filter, std::size_t train, std::size_t valid,
                        std::size_t test) {
  const auto draw = [&](const char* part, std::size_t count) {
    std::vector<std::string> files = shuffled(sentences(folder, part, path_filter));
    if (files.size() < count)
      throw DataError("timit", (fs::path(folder) / part).string(),
                      fmt::format("holds {} of the {} sentences that are drawn from it", files.size(), count));
    files.resize(count);
    return files;
  };
  SpeechFiles files{draw("train", train + valid), {}, draw("test", test)};
  files.valid.assign(files.train.begin() + static_cast<std::ptrdiff_t>(train), files.train.end());
  files.train.resize(train);
  return files;
}

}  // namespace reel
