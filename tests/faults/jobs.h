// What the campaigns run: every program, on a little of everything.
#pragma once
#include <string>
#include <vector>

#include "tests/faults/workplace.h"

namespace reel::faults {

struct Job {
  std::string name;
  std::vector<std::string> command;      // the program and its options
  std::vector<std::string> with_resume;  // options to repeat with --resume
  std::string begun;                     // folder that the run starts from; empty: from nothing
};

/// Names of all jobs.
std::vector<std::string> job_names();

/// Prepares a job: writes the data that it reads.
Job make_job(const std::string& name, Workplace& place);

/// Makes the run's folder what it is before the job.
void prepare(const Job& job, const Workplace& place);

/// The command that goes on after `job` has ended early: with --resume where there is a checkpoint.
std::vector<std::string> again(const Job& job, const Workplace& place);

}  // namespace reel::faults
