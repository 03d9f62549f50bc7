// How a program was started: alone, or by mpirun or srun as one of several ranks.
#pragma once
#include <memory>
#include <string>

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

/// The name of this machine.
std::string machine_name();
/// How many ranks of a lower number are on this machine. Called by all ranks.
int place_on_machine(Ranks& ranks);
/// How many threads this rank takes where the user does not say: as many as its share of the cores that mpirun has
/// bound it to, if other ranks of this machine are bound to the same. Called by all ranks.
int threads_of_rank(Ranks& ranks);
/// A line for the user if the ranks of this machine have more threads than it has cores; each rank says how many it
/// has.
std::string too_many_threads(Ranks& ranks, int threads);

}  // namespace reel
