// The text of a line of source, for those who have the files.
#pragma once
#include <map>
#include <string>
#include <vector>

namespace reel::explain {

/// Finds lines such as "cells/lstm.cpp:65" below the working folder, the folders above the running program, and those
/// that are given. Empty: there is no such file or line.
class SourceLines {
 public:
  explicit SourceLines(std::vector<std::string> folders = {});
  std::string operator()(const std::string& where);

 private:
  const std::vector<std::string>& lines_of(const std::string& file);
  std::vector<std::string> folders_;
  std::map<std::string, std::vector<std::string>> files_;
};

}  // namespace reel::explain
