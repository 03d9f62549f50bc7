#include "tasks/app/shared_options.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "cells/registry.h"
#include "engine/core/parse.h"
#include "tasks/app/option.h"
#include "tasks/app/options_file.h"

namespace reel {

namespace {

/// What other programs call our options.
void add_hints(Options& options, const TaskProgram& program) {
  if (program.source == Source::fresh) options.hint("epochs", "this task makes fresh examples without end; --steps");
  for (const auto& [habit, own] : std::initializer_list<std::pair<const char*, const char*>>{
           {"lr-decay", "--schedule step, with --lr-every and --lr-factor"},
           {"learning-rate", "--lr"},
           {"lr-schedule", "--schedule"},
           {"lr-scheduler", "--schedule"},
           {"scheduler", "--schedule"},
           {"lr-warmup", "--warmup, in updates"},
           {"warmup-steps", "--warmup, in updates"},
           {"warmup-epochs", "--warmup, in updates"},
           {"min-lr", "--lr-floor, a share of --lr"},
           {"lr-min", "--lr-floor, a share of --lr"},
           {"wd", "--weight-decay"},
           {"l2", "--weight-decay"},
           {"grad-accum", "--accumulate, which cuts --batch into parts"},
           {"gradient-accumulation-steps", "--accumulate, which cuts --batch into parts"},
           {"accumulate-grad-batches", "--accumulate, which cuts --batch into parts"}})
    options.hint(habit, own);
}

std::map<std::string, double> parse_rates(const std::string& text) {
  std::map<std::string, double> rates;
  for (std::size_t first = 0; first < text.size();) {
    const std::size_t end = std::min(text.find(',', first), text.size()), equals = text.find('=', first);
    const std::optional<double> rate =
        equals < end ? parse<double>(std::string_view(text).substr(equals + 1, end - equals - 1)) : std::nullopt;
    if (!rate || !std::isfinite(*rate) || *rate < 0)
      throw Usage("--group-lr: \"" + text.substr(first, end - first) + "\" is not of the form group=rate");
    if (const std::string group = text.substr(first, equals - first); !rates.emplace(group, *rate).second)
      throw Usage("--group-lr: one rate of each group is expected, got two of \"" + group + "\"");
    first = end + 1;
  }
  return rates;
}

/// True if nobody has chosen a weight decay. A run's config.toml always has one: if it is the usual one of the
/// optimiser there, it was hardly chosen, and does not count for another optimiser.
bool takes_usual_decay(const OptimizerOptions& o, const Options& options) {
  if (!options.given("weight-decay")) return true;
  return !options.config().empty() && options.typed("optimizer") && !options.typed("weight-decay") &&
         o.weight_decay == OptimizerOptions::usual_weight_decay(options.before("optimizer"));
}

/// The same folder from anywhere: a run may be resumed in another one. As it is if its name is no text for a file.
std::string from_anywhere(const std::string& folder) {
  std::error_code error;
  const std::string whole = std::filesystem::absolute(folder, error).lexically_normal();
  return error || !survives_toml(whole) ? folder : whole;
}

constexpr Bounds updates{.low = 1, .high = most::updates}, updates_or_none{.low = 0, .high = most::updates};

void add_model(Options& o, Shared& s) {
  o.list("cell", s.cell, cell_names(), "recurrent cell; gru,srnn: one layer of each, bottom to top", "Model");
  o.list("hidden", s.hidden, Bounds{.low = 1, .high = most::units}, "hidden size; 64,128: of each layer", "Model");
  o.add("layers", s.model.layers, "number of stacked layers", "Model", Bounds{.low = 1, .high = most::layers});
  o.flag("bidirectional", s.model.bidirectional, "each layer also reads the sequence backwards", "Model");
  o.flag("layer-norm", s.model.layer_norm, "layer normalisation of the input of each layer above the first", "Model");
  o.flag("residual", s.model.residual, "residual connections: each layer above the first adds its input to its output",
         "Model");
  o.add("zoneout", s.model.zoneout, "fraction of state units that keep their value at a time step during training",
        "Model", Bounds{.low = 0, .high = 0.999});
  o.add("dropout", s.model.dropout, "fraction of values dropped between layers during training", "Model",
        Bounds{.low = 0, .high = 0.999});
  o.flag("variational-dropout", s.model.variational, "use the same dropout mask at all time steps of a sequence",
         "Model");
  o.choice("input", s.model.input, {"embedding", "one-hot"}, "how symbols are encoded", "Model");
  o.add("embedding", s.model.embedding, "embedding size; 0: as in the cell's paper", "Model",
        Bounds{.low = 0, .high = most::units});
  o.choice("head-init", s.model.head_init, ModelOptions::head_inits(),
           "initialisation of the read-out: as PyTorch's Linear, Glorot with bias 0, or as EUNN's code (uniform, bias "
           "0.01)",
           "Model");
}

void add_training(Options& o, Shared& s, Source source) {
  o.add("batch", s.train.examples.batch, "sequences per update (batch size)", "Training",
        Bounds{.low = 1, .high = most::batch});
  o.add("accumulate", s.train.examples.parts,
        "gradient accumulation over N parts of each batch: the same update in less memory (with dropout or zoneout: "
        "other masks)",
        "Training", Bounds{.low = 1, .high = most::batch});
  o.add("steps", s.train.steps, "number of updates", "Training", updates);
  if (source == Source::fresh) {
    o.add("examples", s.train.examples.examples, "size of a fixed training set; 0: fresh sequences for every update",
          "Training", Bounds{.low = 0, .high = most::examples});
  } else {
    o.add("epochs", s.epochs,
          "in place of --steps; an epoch is examples / batch updates of full batches, rounded up; 0: --steps updates",
          "Training", Bounds{.low = 0, .high = 1e6});
    o.add("examples", s.train.examples.examples, "train on only the first N training examples; 0: all", "Training",
          Bounds{.low = 0, .high = most::examples});
  }
  if (source != Source::fresh) o.flag("no-test", s.no_test, "skip the test at the end", "Training");
  o.choice("shuffle", s.shuffle, {"on", "off"}, "reshuffle the fixed training set every epoch", "Training");
  o.add("valid-every", s.train.valid_every,
        source == Source::fresh ? "updates between validations; 0: a twentieth of the run"
                                : "updates between validations; 0: one epoch",
        "Training", updates_or_none);
  o.add("valid-size", s.train.examples.valid_size,
        source == Source::fresh ? "number of validation sequences" : "number of validation examples to use; 0: all",
        "Training", Bounds{.low = source == Source::fresh ? 1.0 : 0.0, .high = most::valid});
  o.choice("best", s.best, {"loss", "accuracy"},
           "criterion for the best parameters, which are kept and tested: lowest validation loss or highest accuracy",
           "Training");
  o.add("patience", s.train.patience, "early stopping: stop after N validations without improvement; 0: never",
        "Training", updates_or_none);
  o.add("stop-below", s.train.stop_below, "stop when the validation loss is below this; 0: never", "Training",
        Bounds{.low = 0});
  o.add("solved-below", s.train.solved_share,
        "run.json records when the validation loss first fell below this fraction of the baseline; 0: never",
        "Training", Bounds{.low = 0, .high = 1});
  o.add("seed", s.train.seed, "random seed", "Training");
  o.add("init-from", s.init_from,
        "initialise from the parameters of a run (its best ones) or a safetensors file, with a fresh optimiser",
        "Training");
}

void add_optimizer(Options& o, Shared& s) {
  OptimizerOptions& opt = s.optimizer;
  const Bounds rate{.low = 0}, share{.low = 0, .high = 1}, below_1{.low = 0, .high = 0.999999};  // no mean has 1
  o.choice("optimizer", opt.kind, OptimizerOptions::kinds(), "optimisation algorithm", "Optimiser");
  o.add("lr", opt.lr, "learning rate", "Optimiser", rate);
  o.add("group-lr", s.group_lr, "learning rates of parameter groups, e.g. head=1e-4,cell=1e-3", "Optimiser");
  o.add("momentum", opt.momentum, "sgd: momentum", "Optimiser", share);
  o.add("decay", opt.decay, "rmsprop: decay rate of the running mean of squared gradients", "Optimiser", below_1);
  o.add("rms-start", opt.rms_start, "rmsprop: initial value of that mean: 0 as in PyTorch, 1 as in TensorFlow 1",
        "Optimiser", rate);
  o.add("epsilon", opt.epsilon, "added to the denominator, against division by zero", "Optimiser", rate);
  o.choice("epsilon-place", s.epsilon_place, {"outside", "inside"},
           "rmsprop: add epsilon outside the square root, or inside it as in TensorFlow 1", "Optimiser");
  o.add("beta1", opt.beta1, "adam, adamw, amsgrad: decay rate of the first moment", "Optimiser", below_1);
  o.add("beta2", opt.beta2, "adam, adamw, amsgrad: decay rate of the second moment", "Optimiser", below_1);
  o.add("weight-decay", opt.weight_decay,
        "weight decay of all parameters; adamw: decoupled, times the learning rate, 0.01 unless given; others: L2 "
        "penalty in the gradient",
        "Optimiser", rate);
  o.add("clip-norm", opt.clip_norm, "clip the global gradient norm to this; 0: off", "Optimiser", rate);
  o.add("clip-value", opt.clip_value, "clip each gradient element to +-this; 0: off", "Optimiser", rate);
  o.choice("schedule", s.train.schedule.kind, ScheduleOptions::kinds(),
           "learning rate schedule; step: decays at intervals; cosine, linear: decay to the end; plateau, window: "
           "driven by the validation loss",
           "Optimiser");
  o.add("warmup", s.train.schedule.warmup, "updates of linear warmup to --lr, with any schedule", "Optimiser",
        updates_or_none);
  o.add("lr-floor", s.train.schedule.floor, "cosine, linear: final learning rate as a fraction of --lr", "Optimiser",
        share);
  o.add("lr-every", s.train.schedule.every, "step: updates between decays of the learning rate", "Optimiser", updates);
  o.add("lr-factor", s.train.schedule.factor,
        "step, plateau, window: factor that the learning rate is multiplied by at each decay", "Optimiser", share);
  o.add(
      "lr-patience", s.train.schedule.patience,
      "plateau: decay after N validations without a better loss; window: after one worse than each of the N before it",
      "Optimiser", updates);
  o.add("lr-after", s.train.schedule.after, "window: no decay in the first N validations", "Optimiser",
        updates_or_none);
}

void add_run(Options& o, Shared& s, const TaskProgram& program) {
  if (program.source == Source::files && program.data.empty())
    o.add("data", s.data,
          "folder of the data sets, see docs/data.md; the environment variable REEL_DATA sets another default", "Run");
  o.add("out", s.out, "run folder; empty: runs/TASK-CELL-DATE", "Run");
  add_device(o, s.device);
  o.choice("precision", s.precision, {"f32", "tf32", "bf16"},
           "precision of f32 matrix products (tf32 on a GPU only); weights, sums and results are always f32", "Run");
  o.choice("dtype", s.dtype, {"f32", "f64"}, "data type of parameters and states", "Run");
  o.choice("denormals", s.denormals, {"flush", "keep"},
           "denormal numbers on the CPU (below 1e-38; f64: 1e-308): flush to 0, or keep, which is slow when gradients "
           "vanish",
           "Run");
  o.add("checkpoint-every", s.model.checkpoint_every,
        "gradient checkpointing: store every N-th state, recompute the rest: less memory for long sequences; 0: store "
        "all",
        "Run", Bounds{.low = 0, .high = most::time});
  o.add("threads", s.threads, "CPU threads; 0: one per core", "Run", Bounds{.low = 0, .high = most::threads});
  o.add("shards", s.shards,
        "shards of a batch, each run through time by one thread; the last digits of results depend on it; 0: by batch "
        "size (2 from 10 rows, 4 from 80, 8 from 320)",
        "Run", Bounds{.low = 0, .high = most::threads});
  o.add("rank-patience", s.train.rank_patience,
        "with several ranks (mpirun, srun): seconds after which an unresponsive rank counts as hung; 0: never", "Run",
        Bounds{.low = 0, .high = 1e9});
  o.flag("no-graph", s.no_graph, "on a GPU: launch the kernels of each step one by one, not as one CUDA graph", "Run");
  o.flag("no-report", s.no_report, "do not write report.html, which shows the run in a browser", "Run");
  o.add("tensorboard", s.tensorboard,
        "TensorBoard log folder; events go to DIR/NAME, where NAME is that of the run folder", "Run");
  o.flag("quiet", s.train.quiet, "no progress output", "Run");
  o.flag("dry-run", s.dry_run, "print the model and exit", "Run");
  o.flag("print-passes", s.print_passes,
         "print every loop before and after each pass; with --dry-run those of one training step", "Run");
  o.flag("trace-kernels", s.trace_kernels,
         "print the call count and time of each kernel; with --dry-run for the second training step", "Run");
  o.add("explain", s.explain, "explain how a step's loops run: text, FILE.html, FILE.dot, measure; comma-separated",
        "Run");
  o.flag("list-cells", s.list_cells, "list all cells, one per line, and exit", "Run");
}

}  // namespace

std::string default_data() {
  const char* const given = std::getenv("REEL_DATA");
  return given && *given ? given : "data";
}

void add_shared(Options& o, Shared& s, const TaskProgram& program) {
  add_model(o, s);
  add_training(o, s, program.source);
  add_optimizer(o, s);
  add_run(o, s, program);
  add_hints(o, program);
}

void settle(Shared& s, const Options& options) {
  if (s.epochs > 0 && options.typed("steps") && options.typed("epochs"))
    throw Usage(
        fmt::format("--epochs {}: --steps {} is given, too; only one can say how long the run is. Hint: leave "
                    "one out",
                    s.epochs, s.train.steps));
  // A run's config.toml has both, and its epochs hold.
  if (s.epochs > 0 && options.later("steps", "epochs")) s.epochs = 0;
  s.optimizer.epsilon_inside = s.epsilon_place == "inside";
  s.train.best_by_accuracy = s.best == "accuracy";
  s.optimizer.group_lr = parse_rates(s.group_lr);
  if (takes_usual_decay(s.optimizer, options))
    s.optimizer.weight_decay = OptimizerOptions::usual_weight_decay(s.optimizer.kind);
  s.train.examples.shuffle = s.shuffle == "on";
  s.train.test = !s.no_test;
  s.train.graphs = !s.no_graph && !s.trace_kernels;
  s.train.cell = s.cell;
  if (!s.tensorboard.empty()) s.tensorboard = from_anywhere(s.tensorboard);
}

}  // namespace reel
