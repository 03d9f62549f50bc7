#include "tasks/harness/run.h"

#include <fmt/ranges.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "engine/parse.h"
#include "tasks/harness/interrupt.h"
#include "tasks/harness/train.h"

namespace reel {

namespace {

/// All options that tasks share.
struct Shared {
  TrainOptions train;
  OptimizerOptions optimizer;
  ModelOptions model;
  std::string device = "cpu", dtype = "f32", out, epsilon_place = "outside", group_lr, shuffle = "on";
  std::int64_t threads = 0;
  bool dry_run = false, list_cells = false;
};

void add_shared(Options& o, Shared& s) {
  const Bounds positive{.low = 1}, not_negative{.low = 0};
  std::vector<std::string> cells;
  for (const CellType& type : cell_registry()) cells.push_back(type.name);

  o.choice("cell", s.model.cell, cells, "recurrent cell", "Model");
  o.add("hidden", s.model.hidden, "units of the state", "Model", positive);
  o.add("layers", s.model.layers, "cells on top of each other", "Model", positive);
  o.add("dropout", s.model.dropout, "of what goes from a layer to the next, in training", "Model",
        Bounds{.low = 0, .high = 0.999});
  o.choice("input", s.model.input, {"embedding", "one-hot"}, "how symbols are fed", "Model");
  o.add("embedding", s.model.embedding, "width of the embedding; 0: what the cell's paper has", "Model", not_negative);

  o.add("batch", s.train.examples.batch, "sequences an update", "Training", positive);
  o.add("steps", s.train.steps, "updates", "Training", positive);
  o.add("examples", s.train.examples.examples, "size of a fixed training set; 0: fresh sequences for each update",
        "Training", not_negative);
  o.choice("shuffle", s.shuffle, {"on", "off"}, "new order of the fixed set each time through", "Training");
  o.add("valid-every", s.train.valid_every, "updates between validations; 0: a twentieth of the run", "Training",
        not_negative);
  o.add("valid-size", s.train.examples.valid_size, "sequences to validate on", "Training", positive);
  o.add("seed", s.train.seed, "of all random numbers", "Training");

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
  o.choice("schedule", s.train.schedule.kind, {"constant", "step", "plateau"}, "learning rate over the run",
           "Optimiser");
  o.add("lr-every", s.train.schedule.every, "step: updates between changes of the rate", "Optimiser", positive);
  o.add("lr-factor", s.train.schedule.factor, "step, plateau: what the rate is multiplied by", "Optimiser", share);
  o.add("lr-patience", s.train.schedule.patience, "plateau: validations without a better loss", "Optimiser", positive);

  o.add("out", s.out, "run folder; empty: runs/TASK-CELL-DATE", "Run");
  add_device(o, s.device);
  o.choice("dtype", s.dtype, {"f32", "f64"}, "of parameters and states", "Run");
  o.add("checkpoint-every", s.model.checkpoint_every,
        "keep states every so many time steps only and compute those between again: less memory for long sequences; "
        "0: keep all",
        "Run", not_negative);
  o.add("threads", s.threads, "of the CPU; 0: one for each core", "Run", Bounds{.low = 0, .high = 1024});
  o.flag("quiet", s.train.quiet, "no progress", "Run");
  o.flag("dry-run", s.dry_run, "print the model and stop", "Run");
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

int run(int argc, const char* const* argv, const TaskProgram& program) {
  Shared s;
  s.train.examples.batch = program.batch;
  s.train.steps = program.steps;
  Options options(program.name, program.description);
  program.options(options);
  add_shared(options, s);
  options.cells();
  options.parse(argc, argv);

  if (s.list_cells) {
    for (const CellType& type : cell_registry()) fmt::print("{:<14} {} ({})\n", type.name, type.help, type.source);
    return 0;
  }
  s.optimizer.epsilon_inside = s.epsilon_place == "inside";
  s.optimizer.group_lr = parse_rates(s.group_lr);
  s.train.examples.shuffle = s.shuffle == "on";
  s.train.cell = s.model.cell;
  s.train.device = s.device;
  s.model.settings = options.settings(s.model.cell);
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  s.train.threads = s.threads > 0 ? static_cast<int>(s.threads) : static_cast<int>(cores);

  std::unique_ptr<Task> task;
  std::unique_ptr<Model> model;
  std::optional<Optimizer> optimizer;
  Backend& device = use_device(s.device);
  device.set_threads(s.train.threads);
  try {
    task = program.task();
    model = std::make_unique<Model>(task->shape(), s.model,
                                    Init(s.train.seed, s.dtype == "f64" ? DType::f64 : DType::f32, device));
    optimizer.emplace(model->trained(), s.optimizer);
  } catch (const Error& e) {
    throw Usage(e.what());
  }
  if (s.dry_run) {
    fmt::print("{}", model->table());
    return 0;
  }

  RunFolder folder = options.resume().empty() ? RunFolder::create(s.out, program.name, s.model.cell)
                                              : RunFolder::open(options.resume());
  folder.write_config(options.toml());
  if (!s.train.quiet)
    fmt::print(stderr, "{} with {}: {} parameters, baseline {:.4g}, run folder {}\n", program.name, s.model.cell,
               model->count(), task->baseline(), folder.path());
  const Outcome outcome = train(*task, *model, *optimizer, folder, s.train);
  const RunRecord& r = outcome.record;
  if (outcome.interrupted) {
    fmt::print(stderr, "interrupted at step {}; to go on: {} --resume {}\n", r.steps, program.name, folder.path());
    return Interrupt::exit_code;
  }
  fmt::print(
      "valid_loss {:.6g} ({:.3g} of the baseline {:.4g}), accuracy {:.4g}, {} steps in {:.1f} s ({:.1f} a second)\n",
      r.valid_loss, r.valid_loss / r.baseline, r.baseline, r.accuracy, r.steps, r.seconds, r.steps_per_second);
  if (std::filesystem::exists(folder.file("curve.svg"))) fmt::print("picture: {}\n", folder.file("curve.svg"));
  return 0;
}

}  // namespace

int run_program(const std::string& name, const std::function<int()>& body) {
  try {
    return body();
  } catch (const Exit& e) {
    fmt::print("{}", e.text);
    return e.code;
  } catch (const Usage& e) {
    fmt::print(stderr, "{}: {}\n", name, e.what());
    return 2;
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}: {}\n", name, e.what());
    return 1;
  }
}

void add_device(Options& options, std::string& variable) {
  options.add("device", variable, fmt::format("where to compute: {}", fmt::join(backend_names(), ", ")), "Run");
}

Backend& use_device(const std::string& name) {
  try {
    return set_default_backend(name.empty() ? "cpu" : name);
  } catch (const Error& e) {
    throw Usage(fmt::format("--device {}: {}", name, e.what()));
  }
}

int run_task(int argc, const char* const* argv, const TaskProgram& program) {
  return run_program(program.name, [&] { return run(argc, argv, program); });
}

}  // namespace reel
