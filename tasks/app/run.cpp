#include "tasks/app/run.h"

#include <fmt/ranges.h>

#include <cmath>
#include <filesystem>

#include "tasks/app/agreement.h"
#include "tasks/app/explain_program.h"
#include "tasks/app/init_from.h"
#include "tasks/app/interrupt.h"
#include "tasks/app/last_words.h"
#include "tasks/app/no_effect.h"
#include "tasks/app/observers.h"
#include "tasks/app/plugins.h"
#include "tasks/app/preset.h"
#include "tasks/app/rank_devices.h"
#include "tasks/app/run_digest.h"
#include "tasks/app/session.h"
#include "tasks/app/train.h"
#include "tasks/data/data_error.h"
#include "tasks/training/model_file.h"
#include "tasks/training/trained_model.h"
#include "tasks/training/training_step.h"

namespace reel {

namespace {

void print_reported(const std::string& name, const std::string& task) {
  const auto [table, p] = find_preset(name, task);
  const Measure& m = p.main();
  const std::string unit = m.unit.empty() || m.reported.empty() ? "" : " " + m.unit;
  print_out("reported: {} {}{} ({}, {})\n", m.metric, m.reported.empty() ? "without a number" : m.reported, unit,
            table.paper, table.where);
  for (const auto* notes : {&table.notes, &p.notes})
    for (const std::string& note : *notes) print_out("note: {}\n", note);
}

/// What is not as it was where the parameters of --init-from are from.
std::string changes_of_start(const Session& session) {
  if (session.program.model || !session.starts_from_other()) return "";
  const std::string& from = session.shared.init_from;
  const std::vector<std::string> changes = changed_options(from, session.config());
  if (changes.empty()) return "";
  return fmt::format("--init-from {}: {}; the parameters were trained with the model as it was", from,
                     fmt::join(changes, ", "));
}

/// Behind all that can fail, as an error is one line. Also when quiet, of --init-from: the start is not what it seems.
void tell_notes(const Session& session, bool quiet) {
  const TaskProgram& program = session.program;
  std::vector<std::string> notes;
  if (!quiet) notes = without_effect(session.options, session.shared, *session.task, program, *session.model);
  if (const std::string note = changes_of_start(session); !note.empty()) notes.push_back(note);
  for (const std::string& note : notes) print_err("note: {}\n", one_line(note));
  if (!program.notes || (quiet && !session.starts_from_other())) return;
  for (const std::string& note : program.notes(*session.task)) print_err("note: {}\n", one_line(note));
}

/// What the folder says of the run: its options, and what its model is made of.
void describe(const Session& session, RunFolder& folder) {
  folder.write_config(session.options.toml(), session.resumed() ? folder.preset() : session.options.preset());
  if (!session.program.model) save_model_config(folder.file("model.json"), session.config());
}

/// Makes the run folder, or opens that of the run to resume, which says what it said before until all is checked.
RunFolder begin(const Session& session) {
  const TaskProgram& program = session.program;
  const Shared& s = session.shared;
  const Task& task = *session.task;
  try {
    require_accuracy(task, *session.model, s.train);
  } catch (const SettingError& e) {
    throw Usage(option_text(e));
  }
  RunFolder folder = session.resumed() ? RunFolder::open(session.options.resume(), s.train.steps)
                                       : RunFolder::create(s.out, program.name, s.cell);
  for (const std::string& note : folder.notes()) print_err("{}: {}\n", program.name, one_line(note));
  if (!session.resumed()) describe(session, folder);
  if (program.source == Source::files && !program.begun_checks_data)
    keep_data_sums(task, s.train.seed, folder, session.resumed());
  const std::string note = program.begun ? program.begun(task, folder, session.resumed()) : "";
  if (!s.train.quiet) {
    if (!note.empty()) print_err("{}\n", one_line(note));
    print_err("{} with {}: {} parameters, baseline {:.4g}, run folder {}\n", program.name, s.cell,
              session.model->count(), task.baseline(), one_line(folder.path()));
  }
  tell_notes(session, s.train.quiet);
  return folder;
}

/// One training step of its own, to look at; with a trace behind another one, which plans and allocates.
void one_step(Session& session, Examples& examples, KernelTrace* trace = nullptr) {
  const std::int64_t parts = session.shared.train.examples.parts;
  const Drawn first = draw(*session.task, session.shared.train.seed, examples.train(0), parts);
  TrainingStep step(*session.task, *session.model, *session.optimizer, false);
  Tensors carry;
  step(first.batch, {}, carry, 1, first.parts);
  if (!trace) return;
  trace->reset();
  carry.clear();
  step(first.batch, {}, carry, 1, first.parts);
}

void dry_run(Session& session, Examples& examples) {
  const TrainOptions& t = session.shared.train;
  print_out("{}updates {}, batch {}{}, validation every {}, baseline {:.6g}\n", session.model->table(), t.steps,
            t.examples.batch, t.examples.parts > 1 ? fmt::format(" in {} parts", t.examples.parts) : "",
            validation_interval(t, *session.task, examples), session.task->baseline());
  if (t.schedule.kind != "constant" || t.schedule.warmup > 0)
    print_out("schedule {}, warm-up {}\n", t.schedule.kind, t.schedule.warmup);
  flush_out();
  tell_notes(session, false);
  if (session.shared.print_passes || session.trace) one_step(session, examples, session.trace.get());
  if (session.trace) print_out("{}", session.trace->table());
}

/// The folder of the run on all ranks: the first makes or opens it.
RunFolder begin_together(Session& session) {
  std::optional<RunFolder> opened;
  together(session.ranks, [&] {
    if (session.ranks.first()) opened = begin(session);
    return Digest{};
  });
  const std::string path = session.ranks.gather(opened ? opened->path() : "").front();
  return opened ? std::move(*opened) : RunFolder::of_rank_0(path);
}

/// Several ranks: how their devices send to each other.
void link_ranks(Session& session) {
  if (session.ranks.size() == 1) return;
  std::vector<std::string> notes{too_many_threads(session.machine, session.shared.train.threads)};
  if (!session.trace) notes.push_back(link_devices(session.ranks, *session.device));
  for (const std::string& note : notes)
    if (!note.empty() && session.ranks.first()) print_err("{}: {}\n", session.program.name, one_line(note));
}

/// Trains; where memory is too small for a step, the user learns what takes less.
Outcome train_session(Session& session, RunFolder& folder) try {
  return train(*session.task, *session.model, *session.optimizer, folder, session.shared.train, session.ranks);
} catch (const OutOfMemory& e) {
  if (e.rule.find("Hint: ") != std::string::npos) throw;
  throw OutOfMemory("memory",
                    fmt::format("{}. Hint: a smaller --batch; --accumulate N, which cuts it into parts{}", e.rule,
                                session.shared.model.checkpoint_every > 0
                                    ? ""
                                    : "; or --checkpoint-every N, which keeps only every N-th state"));
}

void print_results(const Session& session, const RunRecord& r) {
  const std::string accuracy = std::isnan(r.accuracy) ? "" : fmt::format(" accuracy {:.4g},", r.accuracy);
  const std::string ratio = r.baseline > 0
                                ? fmt::format("({:.3g} of the baseline {:.4g})", r.valid_loss / r.baseline, r.baseline)
                                : fmt::format("(the baseline is {:.4g})", r.baseline);
  print_out("valid_loss {:.6g} {},{} {} step{} in {:.1f} s ({:.1f} a second)\n", r.valid_loss, ratio, accuracy, r.steps,
            r.steps == 1 ? "" : "s", r.seconds, r.steps_per_second);
  if (!r.test.empty()) {
    std::string text;
    for (const auto& [name, value] : r.test)
      text += fmt::format("{} {} {}", text.empty() ? "" : ",", name,
                          std::isnan(value) ? "none" : fmt::format("{:.6g}", value));
    print_out("test, with the {}, of step {}:{}\n",
              session.shared.train.best_by_accuracy ? "highest validation accuracy" : "lowest validation loss",
              r.best_step, one_line(text));
  }
  if (session.shared.train.preset.empty()) return;
  try {
    print_reported(session.shared.train.preset, session.program.name);
  } catch (const Error& e) {  // a run that is resumed may outlive its preset
    print_err(
        "{}: {}\n", session.program.name,
        one_line(fmt::format("what was reported for {} is not known: {}", session.shared.train.preset, e.what())));
  }
}

void draw_pictures(const Session& session, const Examples& examples, const RunFolder& folder,
                   const std::function<void(std::function<void()>)>& attempt) {
  if (session.pictures.empty()) return;
  const auto start = [&] {
    auto made = session.untrained();
    const std::string& from = session.shared.init_from;
    try {
      if (!from.empty()) take_parameters(from, *made);
    } catch (const OutOfMemory&) {
      throw;
    } catch (const Error& e) {  // a run outlives the one that it started from
      throw FileError(fmt::format("--init-from {}, whose values are the state before training: {}", from, e.what()));
    }
    return made;
  };
  const Ended ended{*session.task,
                    *session.model,
                    folder,
                    session.shared.train.seed,
                    examples.valid().front(),
                    session.shared.train.quiet,
                    session.style,
                    start};
  for (const Picture& p : session.pictures) attempt([&] { p.draw(ended); });
}

int run(int argc, const char* const* argv, const TaskProgram& program, Ranks& ranks) {
  Session session(program, ranks);
  session.prepare(argc, argv);
  Shared& s = session.shared;
  if ((!s.explain.empty() || s.dry_run) && !ranks.first()) return 0;
  Examples examples(s.train.examples, s.train.seed, session.task->parts());
  if (!s.explain.empty())
    return explain_training_step(s.explain, session.task->title() + " with " + s.cell, *session.model, *session.device,
                                 [&] { one_step(session, examples); });
  if (s.dry_run) {
    dry_run(session, examples);
    return 0;
  }

  RunFolder folder = begin_together(session);
  link_ranks(session);
  s.train.quiet = s.train.quiet || !ranks.first();
  if (ranks.first() && session.resumed()) s.train.accepted = [&] { describe(session, folder); };
  std::vector<std::unique_ptr<Observer>> observers;
  if (ranks.first()) {
    s.train.preset = folder.preset();
    observers = observers_of(s, folder, session.task->title(), program.name);
    for (const auto& observer : observers) s.train.observers.push_back(observer.get());
  }
  const Outcome outcome = train_session(session, folder);
  if (!ranks.first()) return 0;

  int code = 0;
  const auto failed = [&](const std::string& what) {
    print_err("{}: {}\n", program.name, one_line(what));
    code = 1;
  };
  if (!outcome.unsaved.empty()) failed(outcome.unsaved);
  for (const std::string& problem : outcome.problems) failed(problem);
  if (session.trace) print_out("{}", session.trace->table());
  if (outcome.interrupted) {
    print_err("interrupted at step {}; to go on: {} --resume {}\n", outcome.record.steps, program.name,
              shell_path(folder.path()));
    return Interrupt::exit_code;
  }
  print_results(session, outcome.record);
  // A failure from here on leaves the other results intact.
  const auto attempt = [&](const std::function<void()>& work) {
    try {
      folder.require_held();
      work();
    } catch (const std::exception& e) {
      failed(e.what());
    } catch (...) {
      failed(failure_of(std::current_exception()).line);
    }
  };
  if (program.done) attempt([&] { program.done(*session.task, *session.model, folder); });
  draw_pictures(session, examples, folder, attempt);
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
  } catch (...) {
    return {1, "unknown exception: what was thrown is no std::exception"};
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
  } catch (...) {
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

int run_program_of_ranks(const std::string& name, const std::function<int()>& body) { return guarded(name, body); }

int run_task(int argc, const char* const* argv, const TaskProgram& program) {
  return guarded(program.name, [&] {
    const std::unique_ptr<Ranks> ranks = join_ranks();
    const auto body = [&] { return run(argc, argv, program, *ranks); };
    return ranks->size() > 1 ? run_ranks(program.name, *ranks, body) : body();
  });
}

}  // namespace reel
