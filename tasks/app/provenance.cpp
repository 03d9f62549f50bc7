#include "tasks/app/provenance.h"

#include <fmt/chrono.h>
#include <sys/utsname.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "reel/version.h"
#include "tasks/io/output.h"

namespace reel {

std::string version() { return REEL_VERSION; }

std::string commit() { return REEL_COMMIT; }

std::string version_text(const std::string& program) {
  const std::string known = commit().empty() ? "" : ", commit " + commit().substr(0, 12);
  return fmt::format("{} (Reel) {}{}\n", program, version(), known);
}

std::string processor_in(const std::string& cpuinfo) {
  std::istringstream in(cpuinfo);
  std::string name, family, model;
  for (std::string line; std::getline(in, line) && !line.empty();) {  // a blank line ends the first core
    const std::size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    const std::string key = line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1), value = line.substr(colon + 2);
    if (key == "model name") name = value;
    if (key == "cpu family") family = value;
    if (key == "model") model = value;
  }
  return name.empty() || family.empty() || model.empty() ? name
                                                         : fmt::format("{} (family {}, model {})", name, family, model);
}

std::string processor() {
  std::ifstream info("/proc/cpuinfo");
  const std::string name = processor_in({std::istreambuf_iterator<char>(info), {}});
  utsname names{};
  return name.empty() && uname(&names) == 0 ? names.machine : name;
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", utc);
}

std::string shell_words(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + shell_word(word);
  return line;
}

std::string command_line(int argc, const char* const* argv) {
  std::vector<std::string> words(argv, argv + argc);
  if (argc > 0) words[0] = std::filesystem::path(words[0]).filename();
  return shell_words(words);
}

}  // namespace reel
