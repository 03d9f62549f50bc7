#include "tasks/app/run.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "backends/cpu/threads/denormals.h"
#include "engine/core/parse.h"
#include "tasks/app/agreement.h"
#include "tasks/app/explain_program.h"
#include "tasks/app/interrupt.h"
#include "tasks/app/kernel_trace.h"
#include "tasks/app/last_words.h"
#include "tasks/app/launch.h"
#include "tasks/app/layers.h"
#include "tasks/app/no_effect.h"
#include "tasks/app/observers.h"
#include "tasks/app/option.h"
#include "tasks/app/plugins.h"
#include "tasks/app/preset.h"
#include "tasks/app/provenance.h"
#include "tasks/app/rank_devices.h"
#include "tasks/app/run_digest.h"
#include "tasks/app/shared_options.h"
#include "tasks/app/train.h"
#include "tasks/data/data_error.h"
#include "tasks/training/checkpoint.h"
#include "tasks/training/model_file.h"
#include "tasks/training/trained_model.h"
#include "tasks/training/training_step.h"

namespace reel {

namespace {

/// The name of the device for the backends.
std::string device_name(const Shared& s) {
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

void print_reported(const std::string& name, const std::string& task) {
  const auto [table, p] = find_preset(name, task);
  const Measure& m = p.main();
  const std::string unit = m.unit.empty() || m.reported.empty() ? "" : " " + m.unit;
  print_out("reported: {} {}{} ({}, {})\n", m.metric, m.reported.empty() ? "without a number" : m.reported, unit,
            table.paper, table.where);
  for (const auto* notes : {&table.notes, &p.notes})
    for (const std::string& note : *notes) print_out("note: {}\n", note);
}

/// Takes the parameters that --init-from names; a damaged file is no fault of the option.
void start_from(const std::string& from, const Model& model) try {
  take_parameters(from, model);
} catch (const OtherModel& e) {
  throw SettingError("init-from", fmt::format("{}. Hint: --cell, --hidden and the like must be as in that run, whose "
                                              "config.toml has them",
                                              e.what()));
} catch (const OutOfMemory&) {
  throw;
} catch (const Error& e) {
  if (std::error_code error; !std::filesystem::exists(from, error)) throw SettingError("init-from", e.what());
  throw FileError(fmt::format("--init-from: {}", e.what()));
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

/// Behind all that can fail, as an error is one line.
void tell_notes(const TaskProgram& program, const Options& options, const Shared& s, const Task& task) {
  for (const std::string& note : without_effect(options, s, task.shape(), program)) print_err("note: {}\n", note);
  if (!program.notes) return;
  for (const std::string& note : program.notes(task)) print_err("note: {}\n", one_line(note));
}

/// What the folder says of the run: its options, and what its model is made of.
void describe(const TaskProgram& program, const Options& options, const Shared& s, const Task& task, DType dtype,
              RunFolder& folder) {
  folder.write_config(options.toml(), options.resume().empty() ? options.preset() : folder.preset());
  if (!program.model)
    save_model_config(folder.file("model.json"), {program.name, task.shape(), with_all_settings(s.model), dtype});
}

/// Makes the run folder, or opens that of the run to resume, which says what it said before until all is checked.
RunFolder begin(const TaskProgram& program, const Options& options, const Shared& s, const Task& task,
                const Model& model, DType dtype) {
  try {
    require_accuracy(task, model, s.train);
  } catch (const SettingError& e) {
    throw Usage(option_text(e));
  }
  RunFolder folder = options.resume().empty() ? RunFolder::create(s.out, program.name, s.cell)
                                              : RunFolder::open(options.resume(), s.train.steps);
  for (const std::string& note : folder.notes()) print_err("{}: {}\n", program.name, one_line(note));
  if (options.resume().empty()) describe(program, options, s, task, dtype, folder);
  if (program.source == Source::files && !program.begun_checks_data)
    keep_data_sums(task, s.train.seed, folder, !options.resume().empty());
  const std::string note = program.begun ? program.begun(task, folder, !options.resume().empty()) : "";
  if (!s.train.quiet && !note.empty()) print_err("{}\n", one_line(note));
  if (!s.train.quiet)
    print_err("{} with {}: {} parameters, baseline {:.4g}, run folder {}\n", program.name, s.cell, model.count(),
              task.baseline(), one_line(folder.path()));
  if (!s.train.quiet) tell_notes(program, options, s, task);
  return folder;
}

int run(int argc, const char* const* argv, const TaskProgram& program, Ranks& ranks) {
  Shared s;
  s.train.examples.batch = program.batch;
  s.train.steps = program.steps;
  if (program.source != Source::fresh) s.train.examples.valid_size = 0;
  if (program.data.empty()) s.data = default_data();
  Options options(program.name, program.description);
  if (!program.data.empty()) options.add("data", s.data, program.data, "Task");
  program.options(options);
  add_shared(options, s, program);
  std::vector<Picture> pictures = program.pictures;
  if (!program.model)
    for (const Picture& p : pictures_of_cells()) pictures.push_back(p);
  if (!pictures.empty()) add_pictures(options, s.pictures, pictures);
  options.cells();
  options.presets(program.name);
  std::vector<std::string> with_resume{"steps",        "quiet",         "threads",   "rank-patience", "no-graph",
                                       "print-passes", "trace-kernels", "no-report", "tensorboard"};
  with_resume.insert(with_resume.end(), {"patience", "stop-below"});  // a run that they have ended may go on
  if (program.source != Source::fresh) with_resume.emplace_back("epochs");
  if (program.source == Source::files) with_resume.emplace_back("data");  // they may lie elsewhere now
  if (!pictures.empty()) with_resume.insert(with_resume.end(), {"picture", "picture-size", "picture-font"});
  with_resume.insert(with_resume.end(), program.with_resume.begin(), program.with_resume.end());
  options.allow_with_resume(with_resume);
  const Neighbours machine = neighbours(ranks);
  const int cores = threads_of_rank(machine);
  DType dtype = DType::f32;
  Backend* device = nullptr;  // of the model
  PictureStyle style;
  std::unique_ptr<KernelTrace> trace;
  std::unique_ptr<Task> task;
  std::unique_ptr<Model> model;
  std::optional<Optimizer> optimizer;
  const auto untrained = [&] {
    const Init init(s.train.seed, dtype, *device);
    return program.model ? program.model(*task, s.model, init) : std::make_unique<Model>(task->shape(), s.model, init);
  };
  together(ranks, [&] {
    try {
      options.parse(argc, argv);
    } catch (const Error&) {
      if (!options.resume().empty()) require_task(options.resume(), program.name);
      throw;
    }

    if (s.list_cells) {
      std::string list;
      for (const CellType& type : cell_registry())
        list += fmt::format("{:<14} {} ({})\n", type.name, type.help, type.source);
      throw Exit{0, list};
    }
    if (s.print_passes) setenv("REEL_PRINT_PASSES", "1", 1);
    pictures = chosen_pictures(s.pictures.names, pictures);
    style = s.train.picture = s.pictures.style();
    settle(s, options);
    s.train.device = device_name(s);
    if (ranks.size() > 1) s.train.device = device_of_rank(s.train.device, static_cast<int>(machine.place));
    settle_parts(s, options, ranks.size());
    s.train.command = command_line(argc, argv);
    set_layers(s.model, s.cell, s.hidden, options);
    s.train.threads = s.threads > 0 ? static_cast<int>(s.threads) : cores;
    s.train.cores = cores;
    s.train.shards = static_cast<int>(s.shards);

    flush_denormals(s.denormals == "flush");
    dtype = s.dtype == "f64" ? DType::f64 : DType::f32;
    Backend& real = find_device(s.train.device);
    if (s.trace_kernels) trace = std::make_unique<KernelTrace>(real);
    device = !s.explain.empty() ? &device_to_explain(s.explain, real) : trace ? trace.get() : &real;
    device->set_threads(s.train.threads);
    device->set_shards(s.train.shards);
    try {
      task = program.task({s.data, s.train.seed, s.train.examples, options.resume().empty() ? s.init_from : ""});
      if (!task) throw Error(program.name, "TaskProgram::task returned no task");
      const Examples examples(s.train.examples, s.train.seed, task->parts());
      if (s.model.bidirectional && task->parts().ordered)
        throw SettingError("bidirectional", "the states of this task carry over from batch to batch, forward only");
      if (s.epochs > 0 && examples.steps_per_epoch() == 0)
        throw SettingError("epochs", "fresh examples have no end; give --steps");
      if (s.epochs > 0)
        s.train.steps =
            std::llround(std::clamp(s.epochs * static_cast<double>(examples.steps_per_epoch()), 1.0, most::updates));
      if (s.train.schedule.warmup > s.train.steps)
        throw SettingError("warmup",
                           fmt::format("the run has {} updates, got {}", s.train.steps, s.train.schedule.warmup));
      model = untrained();
      if (!s.init_from.empty() && options.resume().empty()) start_from(s.init_from, *model);
      optimizer.emplace(model->trained(), s.optimizer);
    } catch (const FileError&) {
      throw;
    } catch (const OutOfMemory&) {
      throw;
    } catch (const Error& e) {
      throw Usage(option_text(e));
    }
    return ranks.size() > 1 ? digest_of(program.name, options.toml(), *task, s, *model) : Digest{};
  });
  if ((!s.explain.empty() || s.dry_run) && !ranks.first()) return 0;
  Examples examples(s.train.examples, s.train.seed, task->parts());
  const std::int64_t parts = s.train.examples.parts;
  const auto one_step = [&] {
    Tensors carry;
    const Drawn first = draw(*task, s.train.seed, examples.train(0), parts);
    TrainingStep(*task, *model, *optimizer, false)(first.batch, {}, carry, 1, first.parts);
  };
  if (!s.explain.empty())
    return explain_training_step(s.explain, task->title() + " with " + s.cell, *model, *device, one_step);
  if (s.dry_run) {
    print_out("{}updates {}, batch {}{}, validation every {}, baseline {:.6g}\n", model->table(), s.train.steps,
              s.train.examples.batch, parts > 1 ? fmt::format(" in {} parts", parts) : "",
              validation_interval(s.train, *task, examples), task->baseline());
    if (const ScheduleOptions& rate = s.train.schedule; rate.kind != "constant" || rate.warmup > 0)
      print_out("schedule {}, warm-up {}\n", rate.kind, rate.warmup);
    flush_out();
    tell_notes(program, options, s, *task);
    if (s.print_passes || trace) one_step();
    if (trace) print_out("{}", trace->table());
    return 0;
  }

  std::optional<RunFolder> opened;
  together(ranks, [&] {
    if (ranks.first()) opened = begin(program, options, s, *task, *model, dtype);
    return Digest{};
  });
  const std::string path = ranks.gather(opened ? opened->path() : "").front();
  if (!opened) opened = RunFolder::of_rank_0(path);
  RunFolder& folder = *opened;
  std::vector<std::string> notes;
  if (ranks.size() > 1) notes.push_back(too_many_threads(machine, s.train.threads));
  if (ranks.size() > 1 && !trace) notes.push_back(link_devices(ranks, *device));
  for (const std::string& note : notes)
    if (!note.empty() && ranks.first()) print_err("{}: {}\n", program.name, one_line(note));
  s.train.quiet = s.train.quiet || !ranks.first();
  if (ranks.first() && !options.resume().empty())
    s.train.accepted = [&] { describe(program, options, s, *task, dtype, folder); };
  std::vector<std::unique_ptr<Observer>> observers;
  if (ranks.first()) {
    s.train.preset = folder.preset();
    observers = observers_of(s, folder, task->title(), program.name);
    for (const auto& observer : observers) s.train.observers.push_back(observer.get());
  }
  const Outcome outcome = train(*task, *model, *optimizer, folder, s.train, ranks);
  if (!ranks.first()) return 0;
  const RunRecord& r = outcome.record;
  int code = 0;
  const auto failed = [&](const std::string& what) {
    print_err("{}: {}\n", program.name, one_line(what));
    code = 1;
  };
  if (!outcome.unsaved.empty()) failed(outcome.unsaved);
  for (const std::string& problem : outcome.problems) failed(problem);
  if (trace) print_out("{}", trace->table());
  if (outcome.interrupted) {
    print_err("interrupted at step {}; to go on: {} --resume {}\n", r.steps, program.name, shell_path(folder.path()));
    return Interrupt::exit_code;
  }
  const std::string accuracy = std::isnan(r.accuracy) ? "" : fmt::format(" accuracy {:.4g},", r.accuracy);
  const std::string ratio = r.baseline > 0
                                ? fmt::format("({:.3g} of the baseline {:.4g})", r.valid_loss / r.baseline, r.baseline)
                                : "(the baseline is 0)";
  print_out("valid_loss {:.6g} {},{} {} steps in {:.1f} s ({:.1f} a second)\n", r.valid_loss, ratio, accuracy, r.steps,
            r.seconds, r.steps_per_second);
  if (!r.test.empty()) {
    std::string text;
    for (const auto& [name, value] : r.test)
      text += fmt::format("{} {} {}", text.empty() ? "" : ",", name,
                          std::isnan(value) ? "none" : fmt::format("{:.6g}", value));
    print_out("test, with the {}, of step {}:{}\n",
              s.train.best_by_accuracy ? "highest validation accuracy" : "lowest validation loss", r.best_step,
              one_line(text));
  }
  if (!s.train.preset.empty()) {
    try {
      print_reported(s.train.preset, program.name);
    } catch (const Error& e) {  // a run that is resumed may outlive its preset
      print_err("{}: {}\n", program.name,
                one_line(fmt::format("what was reported for {} is not known: {}", s.train.preset, e.what())));
    }
  }
  // a failure from here on leaves the other results intact
  const auto attempt = [&](const auto& work) {
    try {
      work();
    } catch (const std::exception& e) {
      failed(e.what());
    }
  };
  if (program.done) attempt([&] { program.done(*task, *model, folder); });
  if (!pictures.empty()) {
    const Examples examples(s.train.examples, s.train.seed, task->parts());
    const auto start = [&] {
      auto made = untrained();
      if (!s.init_from.empty()) take_parameters(s.init_from, *made);
      return made;
    };
    const Ended ended{*task, *model, folder, s.train.seed, examples.valid().front(), s.train.quiet, style, start};
    for (const Picture& p : pictures) attempt([&] { p.draw(ended); });
  }
  for (const auto& observer : observers) attempt([&] { observer->drawn(folder); });
  if (outcome.unsaved.empty() && std::filesystem::exists(folder.file("curve.svg")))
    print_out("picture: {}\n", one_line(folder.file("curve.svg")));
  return code;
}

}  // namespace

Failure failure_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Usage& e) {
    return {2, e.what()};
  } catch (const SettingError& e) {
    return {1, option_text(e)};
  } catch (const std::bad_alloc&) {
    return {1, out_of_memory_text};
  } catch (const std::length_error&) {  // a std::vector too large to address
    return {1, out_of_memory_text};
  } catch (const std::exception& e) {
    return {1, e.what()};
  }
}

namespace {
/// What main() does around its work, or around that of several ranks.
int guarded(const std::string& name, const std::function<int()>& body) {
  open_standard_streams();
  end_with_owner();
  int code = 1;
  bool told = false;  // a help text or a list, of which a reader may want the first lines only
  try {
    require_stack();
    load_plugins();
    code = body();
  } catch (const Exit& e) {
    write_out(e.text);
    code = e.code;
    told = true;
  } catch (const std::bad_alloc&) {
    say_out_of_memory(name.c_str());
  } catch (const std::length_error&) {
    say_out_of_memory(name.c_str());
  } catch (const std::exception&) {
    const Failure failure = failure_of(std::current_exception());
    print_err("{}: {}\n", name, one_line(failure.line));
    code = failure.code;
  }
  const auto problem = deliver_out();
  if (problem && !(told && out_reader_gone())) print_err("{}: {}\n", name, *problem);
  return code == 0 && problem ? 1 : code;
}
}  // namespace

int run_program(const std::string& name, const std::function<int()>& body) {
  return guarded(name, [&] {
    require_one_process();
    return body();
  });
}

int run_task(int argc, const char* const* argv, const TaskProgram& program) {
  return guarded(program.name, [&] {
    const std::unique_ptr<Ranks> ranks = join_ranks();
    const auto body = [&] { return run(argc, argv, program, *ranks); };
    return ranks->size() > 1 ? run_ranks(program.name, *ranks, body) : body();
  });
}

}  // namespace reel
