#include "tasks/app/session.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "backends/cpu/threads/denormals.h"
#include "tasks/app/agreement.h"
#include "tasks/app/explain_program.h"
#include "tasks/app/init_from.h"
#include "tasks/app/layers.h"
#include "tasks/app/option.h"
#include "tasks/app/provenance.h"
#include "tasks/app/rank_devices.h"
#include "tasks/app/run_digest.h"
#include "tasks/app/run_folder.h"
#include "tasks/data/data_error.h"

namespace reel {

namespace {

/// The name of the device for the backends.
std::string device_name(const Shared& s, const Options& options) {
  for (const std::string precision : {"tf32", "bf16"}) {  // which the device's name may have
    if ((s.device + ",").find("," + precision + ",") == std::string::npos) continue;
    if (s.precision == precision || (s.precision == "f32" && !options.typed("precision"))) return s.device;
    throw Usage(fmt::format("--precision {}: --device {} is for products in {}. Hint: leave out one of them",
                            s.precision, s.device, precision));
  }
  if (s.precision == "f32") return s.device;
  if (s.precision == "tf32" && s.device.starts_with("cpu"))
    throw Usage("--precision tf32: on cpu products of f32 are f32 or bf16. Hint: --precision bf16, or --device cuda");
  const std::string name = s.device + "," + s.precision;
  if (name == "cpu,bf16") {
    try {
      backend(name);
    } catch (const OutOfMemory&) {
      throw;
    } catch (const Error& e) {  // its hint names the device "cpu"
      throw Usage(fmt::format("--precision bf16: {}, which is --precision f32", e.what()));
    }
  }
  return name;
}

/// True for data that are not where the file of a run says: they lie elsewhere now, or its path begins in another
/// folder.
bool data_moved(const std::string& data, const Options& options) {
  std::error_code error;
  return options.given("data") && !options.typed("data") && !data.empty() && !std::filesystem::exists(data, error);
}

/// True for an error whose text begins with a file of the data.
bool is_of_data(const std::string& text, const std::string& data) {
  const std::string file = text.substr(text.starts_with('[') ? 1 : 0);
  return file.starts_with(data) && file.find_first_of("/]:", data.size()) == data.size();
}

/// Throws unless the epochs of a run that goes on are more updates than it has done: if they were not typed, it is the
/// data that have become fewer.
void require_epochs_ahead(const Shared& s, const Options& options) {
  const std::int64_t done = RunFolder::view(options.resume()).updates_done().value_or(0);
  if (done <= s.train.steps) return;
  const std::string what = fmt::format("the run in {} has done {} updates, and {} epoch{} of these data are {}",
                                       options.resume(), done, s.epochs, s.epochs == 1 ? "" : "s", s.train.steps);
  if (options.typed("epochs")) throw SettingError("epochs", what + ". Hint: more epochs");
  throw FileError(what + ". Hint: --data PATH of the data that it began with");
}

/// How many parts a batch is cut into, so that each rank has one; also when a run is resumed on more ranks.
void settle_parts(Shared& s, const Options& options, int ranks) {
  std::int64_t& parts = s.train.examples.parts;
  if (ranks == 1) return;
  if (!options.given("accumulate")) parts = ranks;
  if (parts < ranks)
    throw Usage(fmt::format("--accumulate: {} ranks share out the parts of a batch, and there {} {}. Hint: {}", ranks,
                            parts == 1 ? "is" : "are", parts,
                            options.resume().empty()
                                ? fmt::format("--accumulate {}", ranks)
                                : fmt::format("a run keeps its parts; resume this one on {} rank{} or fewer", parts,
                                              parts == 1 ? "" : "s")));
}

/// What may be given with --resume.
std::vector<std::string> free_options(const TaskProgram& program, bool pictures) {
  std::vector<std::string> names{"steps",        "quiet",         "threads",   "rank-patience", "no-graph",
                                 "print-passes", "trace-kernels", "no-report", "tensorboard"};
  names.insert(names.end(), {"patience", "stop-below"});  // a run that they have ended may go on
  if (program.source != Source::fresh) names.emplace_back("epochs");
  if (program.source == Source::files) names.emplace_back("data");  // they may lie elsewhere now
  if (pictures) names.insert(names.end(), {"picture", "picture-size", "picture-font"});
  names.insert(names.end(), program.with_resume.begin(), program.with_resume.end());
  return names;
}

std::string list_of_cells() {
  std::string list;
  for (const CellType& type : cell_registry())
    list += fmt::format("{:<14} {} ({})\n", type.name, type.help, type.source);
  return list;
}

}  // namespace

Session::Session(const TaskProgram& p, Ranks& all)
    : program(p), ranks(all), machine(neighbours(all)), options(p.name, p.description), pictures(p.pictures) {
  shared.train.examples.batch = program.batch;
  shared.train.steps = program.steps;
  if (program.source != Source::fresh) shared.train.examples.valid_size = 0;
  if (program.data.empty())
    shared.data = default_data();
  else
    options.add("data", shared.data, program.data, "Task");
  if (program.options) program.options(options);
  add_shared(options, shared, program);
  if (!program.model)
    for (const Picture& picture : pictures_of_cells()) pictures.push_back(picture);
  if (!pictures.empty()) add_pictures(options, shared.pictures, pictures);
  options.cells();
  options.presets(program.name);
  options.allow_with_resume(free_options(program, !pictures.empty()));
}

std::unique_ptr<Model> Session::untrained() const {
  const Init init(shared.train.seed, dtype, *device);
  if (!program.model) return std::make_unique<Model>(task->shape(), shared.model, init);
  auto own = program.model(*task, shared.model, init);
  if (!own) throw Error(program.name, "TaskProgram::model returned no model");
  return own;
}

ModelConfig Session::config() const { return {program.name, task->shape(), with_all_settings(shared.model), dtype}; }

void Session::settle_train(int argc, const char* const* argv) {
  // over a file with a name, an empty one means none
  if (options.typed("init-from") && shared.init_from.empty() && options.before("init-from").empty())
    throw Usage("--init-from: the name of the run or file is empty");
  if (shared.print_passes) setenv("REEL_PRINT_PASSES", "1", 1);
  pictures = chosen_pictures(shared.pictures.names, pictures);
  style = shared.train.picture = shared.pictures.style();
  settle(shared, options);
  shared.train.device = device_name(shared, options);
  if (ranks.size() > 1) shared.train.device = device_of_rank(shared.train.device, static_cast<int>(machine.place));
  settle_parts(shared, options, ranks.size());
  shared.train.command = command_line(argc, argv);
  set_layers(shared.model, shared.cell, shared.hidden, options);
  shared.train.cores = threads_of_rank(machine);
  shared.train.threads = shared.threads > 0 ? static_cast<int>(shared.threads) : shared.train.cores;
  shared.train.shards = static_cast<int>(shared.shards);
}

void Session::open_device() {
  flush_denormals(shared.denormals == "flush");
  dtype = shared.dtype == "f64" ? DType::f64 : DType::f32;
  Backend& real = find_device(shared.train.device);
  if (shared.trace_kernels) trace = std::make_unique<KernelTrace>(real);
  device = !shared.explain.empty() ? &device_to_explain(shared.explain, real) : trace ? trace.get() : &real;
  device->set_threads(shared.train.threads);
  device->set_shards(shared.train.shards);
}

void Session::make_model() {
  check_name("TaskProgram::name", program.name);
  if (!program.task) throw Error(program.name, "TaskProgram::task is missing: the function that makes the task");
  try {
    task = program.task(
        {shared.data, shared.train.seed, shared.train.examples, starts_from_other() ? shared.init_from : ""});
  } catch (const DataError&) {  // has a hint
    throw;
  } catch (const FileError& e) {
    if (!data_moved(shared.data, options) || !is_of_data(e.what(), shared.data)) throw;
    throw FileError(std::string(e.what()) + ". Hint: --data PATH");
  }
  if (!task) throw Error(program.name, "TaskProgram::task returned no task");
  check_task(*task, program.model != nullptr);
  if (program.source != Source::fresh && task->parts().valid == 0 && shared.train.examples.valid_size == 0)
    throw Error(
        task->name(),
        "Task::parts leaves the number of validation examples to --valid-size, which is 0. Hint: --valid-size N");
  const Examples examples(shared.train.examples, shared.train.seed, task->parts());
  if (shared.model.bidirectional && task->parts().ordered)
    throw SettingError("bidirectional", "the states of this task carry over from batch to batch, forward only");
  if (shared.model.bidirectional && task->forecasts())
    throw SettingError("bidirectional",
                       "the answers of this task are later inputs, which the backward direction would read");
  if (shared.epochs > 0 && examples.steps_per_epoch() == 0)
    throw SettingError("epochs", "fresh examples have no end; give --steps");
  if (shared.epochs > 0)
    shared.train.steps =
        std::llround(std::clamp(shared.epochs * static_cast<double>(examples.steps_per_epoch()), 1.0, most::updates));
  if (shared.epochs > 0 && resumed()) require_epochs_ahead(shared, options);
  if (shared.train.schedule.warmup > shared.train.steps)
    throw SettingError("warmup",
                       fmt::format("the run has {} updates, got {}", shared.train.steps, shared.train.schedule.warmup));
  model = untrained();
  if (starts_from_other()) {
    const ModelConfig now = config();
    start_from(shared.init_from, *model, program.model ? nullptr : &now);
  }
  optimizer.emplace(model->trained(), shared.optimizer);
}

void Session::prepare(int argc, const char* const* argv) {
  together(ranks, [&] {
    try {
      options.parse(argc, argv);
    } catch (const Error&) {
      if (resumed()) require_task(options.resume(), program.name);
      throw;
    }
    if (shared.list_cells) throw Exit{0, list_of_cells()};
    settle_train(argc, argv);
    open_device();
    try {
      make_model();
    } catch (const FileError&) {
      throw;
    } catch (const OutOfMemory&) {
      throw;
    } catch (const Error& e) {
      throw Usage(option_text(e));
    }
    return ranks.size() > 1 ? digest_of(program.name, options.toml(), *task, shared, *model) : Digest{};
  });
}

}  // namespace reel
