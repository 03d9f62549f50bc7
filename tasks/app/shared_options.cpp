#include "tasks/app/shared_options.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "cells/registry.h"
#include "engine/core/parse.h"
#include "tasks/app/option.h"

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

}  // namespace

std::string default_data() {
  const char* const given = std::getenv("REEL_DATA");
  return given && *given ? given : "data";
}

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
  o.add("embedding", s.model.embedding, "width of the embedding; 0: as in the cell's paper", "Model",
        Bounds{.low = 0, .high = most::units});

  o.add("batch", s.train.examples.batch, "sequences an update", "Training", Bounds{.low = 1, .high = most::batch});
  o.add("accumulate", s.train.examples.parts,
        "cut each batch into N parts and add their gradients: the same update in less memory", "Training",
        Bounds{.low = 1, .high = most::batch});
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
  o.choice("best", s.best, {"loss", "accuracy"},
           "the best validation, whose parameters are kept and tested: of the lowest loss, or the highest accuracy",
           "Training");
  o.add("patience", s.train.patience, "stop after N validations without a better one; 0: never", "Training",
        updates_or_none);
  o.add("stop-below", s.train.stop_below, "stop when the validation loss is below this; 0: never", "Training",
        Bounds{.low = 0});
  o.add("solved-below", s.train.solved_share,
        "run.json says when the validation loss was first below this share of the baseline; 0: never", "Training",
        Bounds{.low = 0, .high = 1});
  o.add("seed", s.train.seed, "random seed", "Training");
  o.add("init-from", s.init_from,
        "start from the parameters of a run (its best ones) or a safetensors file, with a fresh optimiser", "Training");

  OptimizerOptions& opt = s.optimizer;
  const Bounds rate{.low = 0}, share{.low = 0, .high = 1}, below_1{.low = 0, .high = 0.999999};  // no mean has 1
  o.choice("optimizer", opt.kind, OptimizerOptions::kinds(), "update rule", "Optimiser");
  o.add("lr", opt.lr, "learning rate", "Optimiser", rate);
  o.add("group-lr", s.group_lr, "rates of parameter groups, as head=1e-4,cell=1e-3", "Optimiser");
  o.add("momentum", opt.momentum, "sgd", "Optimiser", share);
  o.add("decay", opt.decay, "rmsprop: of the running mean of squares", "Optimiser", below_1);
  o.add("rms-start", opt.rms_start, "rmsprop: first value of that mean: 0 as PyTorch, 1 as TensorFlow 1", "Optimiser",
        rate);
  o.add("epsilon", opt.epsilon, "keeps the division safe", "Optimiser", rate);
  o.choice("epsilon-place", s.epsilon_place, {"outside", "inside"},
           "rmsprop: beside the root, or under it as TensorFlow 1", "Optimiser");
  o.add("beta1", opt.beta1, "adam, adamw, amsgrad", "Optimiser", below_1);
  o.add("beta2", opt.beta2, "adam, adamw, amsgrad", "Optimiser", below_1);
  o.add("weight-decay", opt.weight_decay,
        "pulls all parameters to 0: adamw by this times the rate, 0.01 unless given; others by a term of the gradient",
        "Optimiser", rate);
  o.add("clip-norm", opt.clip_norm, "scale all gradients down to this norm; 0: not", "Optimiser", rate);
  o.add("clip-value", opt.clip_value, "keep each gradient within +-this; 0: not", "Optimiser", rate);
  o.choice("schedule", s.train.schedule.kind, ScheduleOptions::kinds(),
           "learning rate over the run: falls at steps, all the way to the end, or as validations say", "Optimiser");
  o.add("warmup", s.train.schedule.warmup, "updates over which the rate rises linearly to --lr, with any schedule",
        "Optimiser", updates_or_none);
  o.add("lr-floor", s.train.schedule.floor, "cosine, linear: what the rate falls to at the end, as a share of --lr",
        "Optimiser", share);
  o.add("lr-every", s.train.schedule.every, "step: updates between changes of the rate", "Optimiser", updates);
  o.add("lr-factor", s.train.schedule.factor, "what the rate is multiplied by when it falls", "Optimiser", share);
  o.add("lr-patience", s.train.schedule.patience,
        "plateau: falls after N validations without a better loss; window: after one that is worse than each of the N "
        "before",
        "Optimiser", updates);
  o.add("lr-after", s.train.schedule.after, "window: but not in the first N validations", "Optimiser", updates_or_none);

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
           "numbers below 1e-38 (f64: 1e-308) on the CPU: flushed to 0, or kept, which is slow when gradients vanish",
           "Run");
  o.add("checkpoint-every", s.model.checkpoint_every,
        "store only every N-th state and recompute the others: less memory for long sequences; 0: store all", "Run",
        Bounds{.low = 0, .high = most::time});
  o.add("threads", s.threads, "of the CPU; 0: one for each core", "Run", Bounds{.low = 0, .high = most::threads});
  o.add("shards", s.shards,
        "shards of a batch, each run through time by one thread; results depend on it in their last digits; 0: by the "
        "size of the batch (2 from 10 rows, 4 from 80, 8 from 320)",
        "Run", Bounds{.low = 0, .high = most::threads});
  o.add("rank-patience", s.train.rank_patience,
        "of several ranks (mpirun, srun): seconds after which one that does not answer counts as hung; 0: never", "Run",
        Bounds{.low = 0, .high = 1e9});
  o.flag("no-graph", s.no_graph, "on a GPU: run each step kernel by kernel, not as one CUDA graph", "Run");
  o.flag("no-report", s.no_report, "write no report.html, the page that shows the run in a browser", "Run");
  o.add("tensorboard", s.tensorboard,
        "folder for TensorBoard; the run's events go to DIR/NAME, as its own folder is called", "Run");
  o.flag("quiet", s.train.quiet, "no progress", "Run");
  o.flag("dry-run", s.dry_run, "print the model and stop", "Run");
  o.flag("print-passes", s.print_passes,
         "print every loop before and after each pass over it; with --dry-run those of one training step", "Run");
  o.flag("trace-kernels", s.trace_kernels,
         "print how often each kernel ran and how long; with --dry-run in one training step", "Run");
  o.add("explain", s.explain, "how a step's loops run: text, FILE.html, FILE.dot, measure, commas between", "Run");
  o.flag("list-cells", s.list_cells, "print all cells with a line each and stop", "Run");
  add_hints(o, program);
}

void settle(Shared& s, const Options& options) {
  s.optimizer.epsilon_inside = s.epsilon_place == "inside";
  s.train.best_by_accuracy = s.best == "accuracy";
  s.optimizer.group_lr = parse_rates(s.group_lr);
  if (!options.given("weight-decay")) s.optimizer.weight_decay = OptimizerOptions::usual_weight_decay(s.optimizer.kind);
  s.train.examples.shuffle = s.shuffle == "on";
  s.train.test = !s.no_test;
  s.train.graphs = !s.no_graph && !s.trace_kernels;
  s.train.cell = s.cell;
}

}  // namespace reel
