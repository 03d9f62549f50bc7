// The task programs, which lie beside the running one, and what they say about a run before it starts.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace reel {

/// The path of the program of a task.
std::string program_of(const std::string& task);
/// True if there is such a program.
bool is_program(const std::string& task);

/// True if the task has --epochs, beside which it refuses --steps.
bool has_epochs(const std::string& task);

/// The text of a file; empty if it does not exist.
std::string text_if_there(const std::string& path);
/// The last line of a text that is not empty.
std::string last_line(const std::string& text);
/// The integer after `word` in a text; 0 if there is none.
std::int64_t number_behind(const std::string& text, const std::string& word);
/// A short hash of a list of words (FNV-1a), eight digits.
std::string mark_of(const std::vector<std::string>& words);

/// What a program prints with --dry-run. Throws Usage with the program's words if it refuses the options, Error if it
/// fails otherwise. While it runs, `stop` is called, and returns true to end it. `notes` gets what it says of options
/// without effect.
std::string dry_run(const std::string& task, const std::vector<std::string>& options, const std::function<bool()>& stop,
                    std::vector<std::string>* notes = nullptr);

}  // namespace reel
