#include "tasks/runner/program.h"

#include <fmt/core.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>

#include "engine/core/parse.h"
#include "tasks/app/options.h"
#include "tasks/io/files.h"
#include "tasks/io/spawn.h"

namespace reel {

namespace fs = std::filesystem;

std::string program_of(const std::string& task) {
  std::error_code error;
  return (fs::read_symlink("/proc/self/exe", error).parent_path() / task).string();
}

bool is_program(const std::string& task) {
  std::error_code error;
  const std::string path = program_of(task);
  return !task.empty() && task.find('/') == std::string::npos && fs::is_regular_file(path, error) &&
         access(path.c_str(), X_OK) == 0;
}

bool has_epochs(const std::string& task) {
  return run_child({program_of(task), "--help"}).out.find("--epochs ") != std::string::npos;
}

std::string text_if_there(const std::string& path) {
  std::error_code error;
  const bool there = fs::exists(path, error);
  if (error) throw Error(path, "cannot be looked up: " + error.message());
  return there ? read_file(path) : "";
}

std::string last_line(const std::string& text) {
  std::istringstream in(text);
  std::string line, last;
  while (std::getline(in, line))
    if (!line.empty()) last = line;
  return last;
}

std::int64_t number_behind(const std::string& text, const std::string& word) {
  const std::size_t at = text.rfind(word);
  if (at == std::string::npos) return 0;
  const std::size_t first = at + word.size();
  return parse<std::int64_t>(std::string_view(text).substr(first, text.find_first_not_of("0123456789", first) - first))
      .value_or(0);
}

std::string mark_of(const std::vector<std::string>& words) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const std::string& word : words)
    for (const char c : word + '\n') hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return fmt::format("{:08x}", static_cast<std::uint32_t>(hash ^ hash >> 32));
}

std::string dry_run(const std::string& task, const std::vector<std::string>& options, const std::function<bool()>& stop,
                    std::vector<std::string>* notes) {
  std::vector<std::string> arguments{program_of(task)};
  arguments.insert(arguments.end(), options.begin(), options.end());
  arguments.emplace_back("--dry-run");
  const Spawned look = run_child(arguments, "", stop);
  if (look.code == could_not_start) throw Error(arguments[0], "is not there or could not be started");
  if (look.code == 0) {
    std::istringstream lines(notes ? look.err : "");
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with("note: ")) notes->push_back(line);
    return look.out;
  }
  const std::string complaint = last_line(look.err);
  const std::string text = complaint.empty() ? fmt::format("{} ended with code {}", task, look.code) : complaint;
  if (look.code == 2) throw Usage(text);
  throw Error(text);
}

}  // namespace reel
