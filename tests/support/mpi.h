// Programs of build/bin as ranks of Open MPI, which are told apart from their surroundings by nothing but their
// options.
#pragma once
#include <doctest/doctest.h>
#include <fmt/core.h>

#include <cstdlib>

#include "tests/support/child.h"

namespace reel::test {

/// False, with a note, where Reel was built without MPI or mpirun is not Open MPI's.
inline bool have_mpi() {
  static const bool there = [] {
    const bool yes = access(REEL_BIN_DIR "/../lib/reel_mpi.so", R_OK) == 0 &&
                     std::system("mpirun --version 2>/dev/null | grep -q 'Open MPI'") == 0;
    if (!yes) fmt::print("skipped: no MPI. Hint: Debian packages openmpi-bin and libopenmpi-dev.\n");
    return yes;
  }();
  return there;
}

/// What Open MPI wants of a machine with few cores, and of root.
inline std::vector<std::string> mpi_environment() {
  return {"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "OMPI_MCA_rmaps_base_oversubscribe=1",
          "OMPI_MCA_hwloc_base_binding_policy=none"};
}

/// The command line of mpirun for a program of build/bin.
inline std::vector<std::string> mpi_words(int ranks, const std::string& program,
                                          const std::vector<std::string>& arguments) {
  std::vector<std::string> all{"mpirun", "-n", std::to_string(ranks), REEL_BIN_DIR "/" + program};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return all;
}

inline Result mpi_run(int ranks, const std::string& program, const std::vector<std::string>& arguments,
                      const std::string& folder) {
  return run("/usr/bin/env", mpi_words(ranks, program, arguments), folder, mpi_environment());
}

}  // namespace reel::test
