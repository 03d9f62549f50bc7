// Where a result comes from: the version and commit of the programs, the processor, the time and the command.
#pragma once
#include <string>
#include <vector>

namespace reel {

/// "0.1"
std::string version();
/// The commit of the source, 40 digits, as git knew it when the build was configured; empty if it did not.
std::string commit();
/// The text of --version: "copying (Reel) 0.1, commit 1990ece61b2a".
std::string version_text(const std::string& program);

/// The processor of this machine, with family and model, which say its generation: "AMD EPYC (family 25, model 17)";
/// the name of its architecture where Linux gives no name.
std::string processor();
/// The processor as the text of /proc/cpuinfo has it; empty if there is no name.
std::string processor_in(const std::string& cpuinfo);
/// The time now in UTC: "2026-02-28T09:15:00Z".
std::string utc_now();
/// Words of a command line as a shell would read them.
std::string shell_words(const std::vector<std::string>& words);
/// A command line as a shell would read it, with the program's name without its folder.
std::string command_line(int argc, const char* const* argv);

}  // namespace reel
