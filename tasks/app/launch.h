// How a program was started: alone, or by mpirun or srun as one of several ranks.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "tasks/training/ranks.h"

namespace reel {

/// What mpirun (Open MPI, MPICH) or srun says in the environment of a program that it starts.
struct Launch {
  int ranks = 1, rank = 0;
};
/// How this program was started.
Launch launch();

/// The ranks of this run, by MPI if there are several; then only rank 0 has its stdout. Throws Usage if reel_mpi.so is
/// not there or does not fit.
std::unique_ptr<Ranks> join_ranks();

/// Throws Usage if this is one of several ranks: such a program runs once.
void require_one_process();

/// Throws Error if the limit of the stack is too low for the libraries that make kernels: libxsmm has 110 KiB at once.
void require_stack();

/// The name of this machine.
std::string machine_name();

/// The ranks on this rank's machine.
struct Neighbours {
  std::size_t place = 0;           // of this rank among them, in the order of their numbers
  std::vector<std::string> cores;  // of each, this one included: a '1' for each core that it may use
};
/// Asks all ranks where they are. Called by all ranks.
Neighbours neighbours(Ranks& ranks);
/// How many threads this rank takes where the user does not say: as many as its share of the cores that mpirun has
/// bound it to, if other ranks of this machine are bound to the same.
int threads_of_rank(const Neighbours& all);
/// A line for the user if the ranks of this machine, with so many threads each, have more of them than it has cores.
std::string too_many_threads(const Neighbours& all, int threads);

}  // namespace reel
