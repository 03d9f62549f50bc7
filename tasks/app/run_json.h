// run.json: what a run leaves in it, and the numbers that presets and sweeps ask of it.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "tasks/app/preset.h"
#include "tasks/app/run_folder.h"

namespace reel {

/// What write_run_json() writes of a run.
nlohmann::ordered_json run_json(const RunRecord& record);

/// Takes from the run.json of an earlier session what this one has not measured. True if that file stays as it is: it
/// describes the finished run, and this session has `trained` nothing. Then the record has its command and times, too.
bool complete(RunRecord& record, const nlohmann::ordered_json& earlier, bool trained);

/// Sets where the validation loss was below the share of the baseline for the first time; a resumed run has the rows of
/// its first part, too.
void find_solved(RunRecord& record, const std::vector<RunFolder::Row>& rows);

/// A number of run.json by its name: "valid_loss", or with a dot one of an object, "best.valid_loss". NaN if there is
/// none; those of "solved_at" are infinite if the run did not get there.
double metric_in(const nlohmann::ordered_json& run, const std::string& metric);

/// A string of run.json; empty if there is none of that name.
std::string text_in(const nlohmann::ordered_json& run, const std::string& name);

/// A measure of a preset's run, in the measure's unit; NaN if run.json does not have it.
double measured_in(const nlohmann::ordered_json& run, const Measure& measure, double epoch_updates);

/// A number of the measure's metric as run.json has it, in the measure's unit.
double in_unit(const Measure& measure, double value);

}  // namespace reel
