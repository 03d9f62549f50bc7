#include "tasks/app/run.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "backends/cpu/threads/cores.h"
#include "cells/registry.h"
#include "engine/core/parse.h"
#include "tasks/app/denormals.h"
#include "tasks/app/interrupt.h"
#include "tasks/app/kernel_trace.h"
#include "tasks/app/last_words.h"
#include "tasks/app/layers.h"
#include "tasks/app/option.h"
#include "tasks/app/preset.h"
#include "tasks/app/provenance.h"
#include "tasks/app/train.h"
#include "tasks/data/data_error.h"
#include "tasks/training/checkpoint.h"
#include "tasks/training/model_file.h"
#include "tasks/training/threads.h"
#include "tasks/training/training_step.h"

namespace reel {

namespace {

/// The options that all tasks share.
struct Shared {
  TrainOptions train;
  OptimizerOptions optimizer;
  ModelOptions model;
  std::string cell = "srnn", hidden = "128";  // or several, as layers from bottom to top
  std::string device = "cpu", precision = "f32", dtype = "f32", denormals = "flush", out, epsilon_place = "outside",
              group_lr, shuffle = "on";
  std::string data, pictures;
  double epochs = 0;
  std::int64_t threads = 0;
  bool dry_run = false, print_passes = false, trace_kernels = false, list_cells = false, no_test = false,
       no_graph = false;
};

void add_shared(Options& o, Shared& s, const TaskProgram& program) {
  const Source source = program.source;
  const Bounds updates{.low = 1, .high = most::updates}, updates_or_none{.low = 0, .high = most::updates};
  std::vector<std::string> cells;
  for (const CellType& type : cell_registry()) cells.push_back(type.name);

  o.list("cell", s.cell, cells, "recurrent cell; gru,srnn: a layer of each, from bottom to top", "Model");
  o.list("hidden", s.hidden, Bounds{.low = 1, .high = most::units}, "units of the state; 64,128: of each layer",
         "Model");
  o.add("layers", s.model.layers, "stacked layers", "Model", Bounds{.low = 1, .high = most::layers});
  o.flag("bidirectional", s.model.bidirectional, "each layer also reads the sequence from its end", "Model");
  o.flag("layer-norm", s.model.layer_norm, "normalise the input of each layer above the first", "Model");
  o.flag("residual", s.model.residual, "each layer above the first adds its input to its output", "Model");
  o.add("zoneout", s.model.zoneout, "share of a state that keeps its value at a time step, in training", "Model",
        Bounds{.low = 0, .high = 0.999});
  o.add("dropout", s.model.dropout, "share of values that is dropped between layers, in training", "Model",
        Bounds{.low = 0, .high = 0.999});
  o.flag("variational-dropout", s.model.variational, "drop the same values at all time steps of a sequence", "Model");
  o.choice("input", s.model.input, {"embedding", "one-hot"}, "how symbols are fed", "Model");
  o.add("embedding", s.model.embedding, "width of the embedding; 0: what the cell's paper has", "Model",
        Bounds{.low = 0, .high = most::units});

  o.add("batch", s.train.examples.batch, "sequences an update", "Training", Bounds{.low = 1, .high = most::batch});
  o.add("steps", s.train.steps, "updates", "Training", updates);
  if (source == Source::fresh) {
    o.add("examples", s.train.examples.examples, "size of a fixed training set; 0: fresh sequences for each update",
          "Training", Bounds{.low = 0, .high = most::examples});
  } else {
    o.add("epochs", s.epochs, "times through the training set; above 0 it goes over --steps", "Training",
          Bounds{.low = 0, .high = 1e6});
    o.add("examples", s.train.examples.examples, "train on the first so many of the training set only; 0: on all",
          "Training", Bounds{.low = 0, .high = most::examples});
  }
  if (source != Source::fresh) o.flag("no-test", s.no_test, "leave out the test at the end", "Training");
  o.choice("shuffle", s.shuffle, {"on", "off"}, "new order of the fixed set each time through", "Training");
  o.add("valid-every", s.train.valid_every,
        source == Source::fresh ? "updates between validations; 0: a twentieth of the run"
                                : "updates between validations; 0: once through the training set",
        "Training", updates_or_none);
  o.add("valid-size", s.train.examples.valid_size,
        source == Source::fresh ? "sequences to validate on" : "how many of the validation set to use; 0: all",
        "Training", Bounds{.low = source == Source::fresh ? 1.0 : 0.0, .high = most::valid});
  o.add("patience", s.train.patience, "stop after so many validations without a lower loss; 0: never", "Training",
        updates_or_none);
  o.add("seed", s.train.seed, "random seed", "Training");

  OptimizerOptions& opt = s.optimizer;
  const Bounds rate{.low = 0}, share{.low = 0, .high = 1};
  o.choice("optimizer", opt.kind, OptimizerOptions::kinds(), "update rule", "Optimiser");
  o.add("lr", opt.lr, "learning rate", "Optimiser", rate);
  o.add("group-lr", s.group_lr, "rates of parameter groups, as head=1e-4,cell=1e-3", "Optimiser");
  o.add("momentum", opt.momentum, "sgd", "Optimiser", share);
  o.add("decay", opt.decay, "rmsprop: of the running mean of squares", "Optimiser", share);
  o.add("rms-start", opt.rms_start, "rmsprop: first value of that mean: 0 as PyTorch, 1 as TensorFlow 1", "Optimiser",
        rate);
  o.add("epsilon", opt.epsilon, "keeps the division safe", "Optimiser", rate);
  o.choice("epsilon-place", s.epsilon_place, {"outside", "inside"},
           "rmsprop: beside the root, or under it as TensorFlow 1", "Optimiser");
  o.add("beta1", opt.beta1, "adam, amsgrad", "Optimiser", share);
  o.add("beta2", opt.beta2, "adam, amsgrad", "Optimiser", share);
  o.add("clip-norm", opt.clip_norm, "scale all gradients down to this norm; 0: not", "Optimiser", rate);
  o.add("clip-value", opt.clip_value, "keep each gradient within +-this; 0: not", "Optimiser", rate);
  o.choice("schedule", s.train.schedule.kind, {"constant", "step", "plateau", "window"},
           "learning rate over the run: falls at steps, or as validations say", "Optimiser");
  o.add("lr-every", s.train.schedule.every, "step: updates between changes of the rate", "Optimiser", updates);
  o.add("lr-factor", s.train.schedule.factor, "what the rate is multiplied by when it falls", "Optimiser", share);
  o.add(
      "lr-patience", s.train.schedule.patience,
      "plateau: falls after so many validations without a better loss; window: after one that is worse than each of so "
      "many before",
      "Optimiser", updates);
  o.add("lr-after", s.train.schedule.after, "window: but not in the first so many validations", "Optimiser",
        updates_or_none);

  if (source == Source::files && program.data.empty())
    o.add("data", s.data,
          "folder of the data sets, as docs/data.md describes it; REEL_DATA in the environment sets "
          "another default",
          "Run");
  o.add("out", s.out, "run folder; empty: runs/TASK-CELL-DATE", "Run");
  add_device(o, s.device);
  o.choice("precision", s.precision, {"f32", "tf32", "bf16"},
           "of the products of f32 (tf32 on a GPU only); weights, sums and results are f32 in any case", "Run");
  o.choice("dtype", s.dtype, {"f32", "f64"}, "of parameters and states", "Run");
  o.choice("denormals", s.denormals, {"flush", "keep"},
           "numbers below 1e-38 (f64: 1e-308) on the CPU: taken for 0, or kept, which is slow when gradients vanish",
           "Run");
  o.add("checkpoint-every", s.model.checkpoint_every,
        "keep states every so many time steps only and compute those between again: less memory for long sequences; "
        "0: keep all",
        "Run", Bounds{.low = 0, .high = most::time});
  o.add("threads", s.threads, "of the CPU; 0: one for each core", "Run", Bounds{.low = 0, .high = most_threads});
  o.flag("no-graph", s.no_graph, "on a GPU: run each step kernel by kernel, not as one CUDA graph", "Run");
  o.flag("quiet", s.train.quiet, "no progress", "Run");
  o.flag("dry-run", s.dry_run, "print the model and stop", "Run");
  o.flag("print-passes", s.print_passes,
         "print every loop before and after each pass over it; with --dry-run those of one training step", "Run");
  o.flag("trace-kernels", s.trace_kernels,
         "print how often each kernel ran and how long; with --dry-run in one training step", "Run");
  o.flag("list-cells", s.list_cells, "print all cells with a line each and stop", "Run");
}

std::map<std::string, double> parse_rates(const std::string& text) {
  std::map<std::string, double> rates;
  for (std::size_t first = 0; first < text.size();) {
    const std::size_t end = std::min(text.find(',', first), text.size()), equals = text.find('=', first);
    const std::optional<double> rate =
        equals < end ? parse<double>(std::string_view(text).substr(equals + 1, end - equals - 1)) : std::nullopt;
    if (!rate || !std::isfinite(*rate) || *rate < 0)
      throw Usage("--group-lr: \"" + text.substr(first, end - first) + "\" is not of the form group=rate");
    rates[text.substr(first, equals - first)] = *rate;
    first = end + 1;
  }
  return rates;
}

/// The name of the device for the backends.
std::string device_name(const Shared& s) {
  if (s.precision == "f32") return s.device;
  if (s.precision == "tf32" && s.device.starts_with("cpu"))
    throw Usage("--precision tf32: on cpu products of f32 are f32 or bf16. Hint: --precision bf16, or --device cuda");
  return s.device + "," + s.precision;
}

void print_reported(const std::string& name, const std::string& task) {
  const auto [table, p] = find_preset(name, task);
  const std::string unit = p.unit.empty() || p.reported.empty() ? "" : " " + p.unit;
  print_out("reported: {} {}{} ({}, {})\n", p.metric, p.reported.empty() ? "without a number" : p.reported, unit,
            table.paper, table.where);
  for (const auto* notes : {&table.notes, &p.notes})
    for (const std::string& note : *notes) print_out("note: {}\n", note);
}

int run(int argc, const char* const* argv, const TaskProgram& program) {
  Shared s;
  s.train.examples.batch = program.batch;
  s.train.steps = program.steps;
  if (program.source != Source::fresh) s.train.examples.valid_size = 0;
  const char* data = std::getenv("REEL_DATA");
  if (program.data.empty()) s.data = data && *data ? data : "data";
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
  std::vector<std::string> with_resume{"steps", "quiet", "threads", "no-graph", "print-passes", "trace-kernels"};
  if (program.source != Source::fresh) with_resume.emplace_back("epochs");
  if (!pictures.empty()) with_resume.emplace_back("picture");
  with_resume.insert(with_resume.end(), program.with_resume.begin(), program.with_resume.end());
  options.allow_with_resume(with_resume);
  if (program.source == Source::fresh) options.hint("epochs", "this task makes fresh examples without end; --steps");
  options.hint("lr-decay", "--schedule step, with --lr-every and --lr-factor");
  options.parse(argc, argv);

  if (s.list_cells) {
    for (const CellType& type : cell_registry()) print_out("{:<14} {} ({})\n", type.name, type.help, type.source);
    return 0;
  }
  if (s.print_passes) setenv("REEL_PRINT_PASSES", "1", 1);
  pictures = chosen_pictures(s.pictures, pictures);
  s.optimizer.epsilon_inside = s.epsilon_place == "inside";
  s.optimizer.group_lr = parse_rates(s.group_lr);
  s.train.examples.shuffle = s.shuffle == "on";
  s.train.test = !s.no_test;
  s.train.graphs = !s.no_graph && !s.trace_kernels;
  s.train.cell = s.cell;
  s.train.device = device_name(s);
  s.train.command = command_line(argc, argv);
  set_layers(s.model, s.cell, s.hidden, options);
  std::optional<int> threads_so_far;  // results on a GPU do not depend on it
  if (!options.resume().empty() && s.device.starts_with("cpu"))
    threads_so_far = threads_of(options.resume() + "/checkpoint.safetensors");
  const Threads threads = choose_threads({s.threads, options.typed("threads"), threads_so_far, available_cores()});
  s.train.threads = threads.count;

  flush_denormals(s.denormals == "flush");  // before threads are started: they inherit it
  const DType dtype = s.dtype == "f64" ? DType::f64 : DType::f32;
  std::unique_ptr<KernelTrace> trace;
  std::unique_ptr<Task> task;
  std::unique_ptr<Model> model;
  std::optional<Optimizer> optimizer;
  Backend& real = find_device(s.train.device);
  if (s.trace_kernels) trace = std::make_unique<KernelTrace>(real);
  Backend& device = trace ? *trace : real;  // of the model only; the CPU makes the batches
  device.set_threads(s.train.threads);
  try {
    task = program.task({s.data, s.train.seed, s.train.examples});
    const Examples examples(s.train.examples, s.train.seed, task->parts());
    if (s.model.bidirectional && task->parts().ordered)
      throw SettingError("bidirectional", "the states of this task carry over from batch to batch, forward only");
    if (s.epochs > 0 && examples.steps_per_epoch() == 0)
      throw SettingError("epochs", "fresh examples have no end; give --steps");
    if (s.epochs > 0)
      s.train.steps =
          std::llround(std::clamp(s.epochs * static_cast<double>(examples.steps_per_epoch()), 1.0, most::updates));
    const Init init(s.train.seed, dtype, device);
    model = program.model ? program.model(*task, s.model, init) : std::make_unique<Model>(task->shape(), s.model, init);
    optimizer.emplace(model->trained(), s.optimizer);
  } catch (const FileError&) {
    throw;
  } catch (const OutOfMemory&) {
    throw;
  } catch (const Error& e) {
    throw Usage(option_text(e));
  }
  if (s.dry_run) {
    print_out("{}updates {}, batch {}, baseline {:.6g}\n", model->table(), s.train.steps, s.train.examples.batch,
              task->baseline());
    if (s.print_passes || trace) {
      Tensors carry;
      const auto streams = Examples(s.train.examples, s.train.seed, task->parts()).train(0);
      flush_out();
      TrainingStep(*task, *model, *optimizer, false)(task->batch(s.train.seed, streams), {}, carry);
    }
    if (trace) print_out("{}", trace->table());
    return 0;
  }

  RunFolder folder =
      options.resume().empty() ? RunFolder::create(s.out, program.name, s.cell) : RunFolder::open(options.resume());
  for (const std::string& note : folder.notes()) print_err("{}: {}\n", program.name, one_line(note));
  folder.write_config(options.toml());
  if (!program.model)
    save_model_config(folder.file("model.json"), {program.name, task->shape(), with_all_settings(s.model), dtype});
  if (!threads.note.empty()) print_err("{}\n", threads.note);
  const std::string note = program.begun ? program.begun(*task, folder, !options.resume().empty()) : "";
  if (!s.train.quiet && !note.empty()) print_err("{}\n", one_line(note));
  if (!s.train.quiet)
    print_err("{} with {}: {} parameters, baseline {:.4g}, run folder {}\n", program.name, s.cell, model->count(),
              task->baseline(), one_line(folder.path()));
  const Outcome outcome = train(*task, *model, *optimizer, folder, s.train);
  const RunRecord& r = outcome.record;
  int code = 0;
  const auto failed = [&](const std::string& what) {
    print_err("{}: {}\n", program.name, one_line(what));
    code = 1;
  };
  if (!outcome.unsaved.empty()) failed(outcome.unsaved);
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
    for (const auto& [name, value] : r.test) text += fmt::format("{} {} {:.6g}", text.empty() ? "" : ",", name, value);
    print_out("test, with the lowest validation loss, of step {}:{}\n", r.best_step, one_line(text));
  }
  if (!options.preset().empty()) print_reported(options.preset(), program.name);
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
    const Ended ended{*task, *model, folder, s.train.seed, examples.valid().front(), s.train.quiet};
    for (const Picture& p : pictures) attempt([&] { p.draw(ended); });
  }
  if (outcome.unsaved.empty() && std::filesystem::exists(folder.file("curve.svg")))
    print_out("picture: {}\n", one_line(folder.file("curve.svg")));
  return code;
}

}  // namespace

int run_program(const std::string& name, const std::function<int()>& body) {
  open_standard_streams();
  int code = 1;
  try {
    check_registries();
    code = body();
  } catch (const Exit& e) {
    write_out(e.text);
    code = e.code;
  } catch (const Usage& e) {
    print_err("{}: {}\n", name, one_line(e.what()));
    code = 2;
  } catch (const SettingError& e) {
    print_err("{}: {}\n", name, one_line(option_text(e)));
  } catch (const std::bad_alloc&) {
    say_out_of_memory(name.c_str());
  } catch (const std::length_error&) {  // a std::vector too large to address
    say_out_of_memory(name.c_str());
  } catch (const std::exception& e) {
    print_err("{}: {}\n", name, one_line(e.what()));
  }
  const auto problem = deliver_out();
  if (problem) print_err("{}: {}\n", name, *problem);
  return code == 0 && problem ? 1 : code;
}

void add_device(Options& options, std::string& variable) {
  options.add("device", variable, fmt::format("where to compute: {}", fmt::join(backend_names(), ", ")), "Run");
}

namespace {
/// ". Hint: ..." for a device of another name than those of this build.
std::string device_hint(std::string name) {
  name.resize(std::min(name.find(','), name.size()));  // --precision has added to it
  const std::vector<std::string> kinds = backend_names();
  const auto has = [&](const std::string& kind) { return std::find(kinds.begin(), kinds.end(), kind) != kinds.end(); };
  const std::string kind = name.substr(0, name.find(':'));
  if (has(kind)) return "";  // the device is known, but cannot be had
  std::string letters, number;
  for (const char c : kind)
    if (std::isalpha(static_cast<unsigned char>(c)))
      letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else if (std::isdigit(static_cast<unsigned char>(c)))
      number += c;
  if (letters != "gpu" && letters != "cuda" && letters != "nvidia") return nearest_hint(letters, kinds, "--device ");
  if (!has("cuda")) return ". Hint: build with -DREEL_CUDA=ON, then --device cuda.";
  return fmt::format(". Hint: --device cuda{}.", number.empty() ? name.substr(kind.size()) : ":" + number);
}
}  // namespace

Backend& find_device(const std::string& name) {
  try {
    return backend(name.empty() ? "cpu" : name);
  } catch (const OutOfMemory&) {
    throw;
  } catch (const Error& e) {
    throw Usage(fmt::format("--device {}: {}{}", name, e.what(), device_hint(name)));
  }
}

Backend& use_device(const std::string& name) { return set_default_backend(find_device(name).name()); }

int run_task(int argc, const char* const* argv, const TaskProgram& program) {
  return run_program(program.name, [&] { return run(argc, argv, program); });
}

}  // namespace reel
