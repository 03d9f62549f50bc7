#include <sndfile.h>

#include <filesystem>
#include <memory>

#include "backends/shared/temporary_folder.h"
#include "engine/core/error.h"
#include "tasks/data/speech_metrics.h"
#include "tasks/io/spawn.h"

namespace reel {

namespace fs = std::filesystem;

namespace {

void write_wav(const std::string& path, const std::vector<double>& x, std::int64_t rate) {
  SF_INFO info{};
  info.samplerate = static_cast<int>(rate);
  info.channels = 1;
  info.format = SF_FORMAT_WAV | SF_FORMAT_PCM_16;
  std::unique_ptr<SNDFILE, int (*)(SNDFILE*)> file(sf_open(path.c_str(), SFM_WRITE, &info), sf_close);
  const auto n = static_cast<sf_count_t>(x.size());
  if (!file || sf_write_double(file.get(), x.data(), n) != n || sf_close(file.release()) != 0)
    throw Error("pesq", path + ": cannot be written");
}

}  // namespace

double pesq(const std::string& program, const std::vector<double>& reference, const std::vector<double>& x,
            std::int64_t rate) {
  // The program may also write files of its own where it runs.
  const TemporaryFolder folder((fs::temp_directory_path() / "reel").string());
  if (!folder) throw Error("pesq", folder.path() + ": this folder cannot be made");
  write_wav(folder.file("reference.wav"), reference, rate);
  write_wav(folder.file("heard.wav"), x, rate);
  const Spawned said =
      run_child({program, fmt::format("+{}", rate), folder.file("reference.wav"), folder.file("heard.wav")});
  if (!said.problem.empty()) throw Error("pesq", fmt::format("{} {}", program, said.problem));
  const std::size_t equals = said.out.rfind('=');
  if (equals != std::string::npos) {
    const std::string rest = said.out.substr(equals + 1);
    char* end = nullptr;
    const double score = std::strtod(rest.c_str(), &end);
    if (end != rest.c_str()) return score;
  }
  throw Error("pesq", fmt::format("{} says no number behind a \"=\": {}", program, said.out.substr(0, 200)));
}

}  // namespace reel
