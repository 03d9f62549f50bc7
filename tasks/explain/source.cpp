#include "tasks/explain/source.h"

#include <filesystem>
#include <sstream>

#include "engine/core/error.h"
#include "engine/core/parse.h"
#include "tasks/io/files.h"

namespace reel::explain {

namespace fs = std::filesystem;

SourceLines::SourceLines(std::vector<std::string> folders) : folders_(std::move(folders)) {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const fs::path& folder : {fs::path(), program.parent_path().parent_path(), program.parent_path()})
    folders_.push_back(folder.string());
}

std::string SourceLines::operator()(const std::string& where) {
  const std::size_t colon = where.rfind(':');
  if (colon == std::string::npos) return "";
  const auto number = parse<std::size_t>(std::string_view(where).substr(colon + 1));
  const std::vector<std::string>& lines = lines_of(where.substr(0, colon));
  if (!number || *number == 0 || *number > lines.size()) return "";
  const std::string& line = lines[*number - 1];
  const std::size_t first = line.find_first_not_of(" \t");
  return first == std::string::npos ? "" : line.substr(first);
}

const std::vector<std::string>& SourceLines::lines_of(const std::string& file) {
  const auto [known, fresh] = files_.try_emplace(file);
  if (!fresh) return known->second;
  for (const std::string& folder : folders_) {
    const fs::path path = fs::path(folder) / file;
    std::error_code error;
    if (!fs::is_regular_file(path, error)) continue;
    try {
      std::istringstream text(read_file(path.string(), 1 << 24));
      for (std::string line; std::getline(text, line);) known->second.push_back(line);
      break;
    } catch (const Error&) {  // then there is no text to show
    }
  }
  return known->second;
}

}  // namespace reel::explain
