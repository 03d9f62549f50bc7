#include "tasks/app/no_effect.h"

#include <fmt/core.h>

#include <algorithm>

#include "cells/cell.h"

namespace reel {

namespace {

/// An option that may change nothing.
struct Condition {
  const char* option;
  bool set, works;  // set: to a value that does not mean "without"
  std::string why;  // it does not work
};
using Conditions = std::vector<Condition>;

Conditions of_model(const ModelOptions& model, const Task& task, const TaskProgram& program, const Model& made) {
  const bool carries = !model.bidirectional && std::any_of(made.cells().begin(), made.cells().end(),
                                                           [](const auto& cell) { return cell->recurrent(); });
  const bool own_model = program.model != nullptr;  // not a stack of cells
  const bool stack = own_model || layers_of(model).size() > 1, drops = own_model || model.dropout > 0;
  const bool symbols = task.shape().vocabulary > 0, embeds = model.input == "embedding";
  const std::string one = "it works between layers, and there is one. Hint: --layers 2",
                    numbers = "the inputs are numbers";
  return {
      {"layer-norm", model.layer_norm, stack, one},
      {"residual", model.residual, stack, one},
      {"dropout", model.dropout > 0, stack, one},
      {"variational-dropout", model.variational, stack && drops, stack ? "--dropout is 0" : one},
      {"input", !embeds, symbols, numbers},
      {"embedding", model.embedding > 0, symbols && embeds, symbols ? "--input is one-hot" : numbers},
      {"reset-every", true, carries,
       model.bidirectional ? "--bidirectional reads whole sequences, and no states carry over"
                           : fmt::format("--cell {} has no states that carry over", model.cell)},
  };
}

Conditions of_examples(const ExampleOptions& examples, const Parts& parts) {
  const bool fixed = examples.examples > 0 || parts.train > 0;
  return {{"shuffle", !examples.shuffle, fixed && !parts.ordered,
           fixed ? "examples continue each other and are never shuffled" : "the examples of each update are new ones"}};
}

Conditions of_optimizer(const OptimizerOptions& rule) {
  const OptimizerOptions usual;
  const std::string& kind = rule.kind;
  const bool sgd = kind == "sgd", rmsprop = kind == "rmsprop",
             adam = kind == "adam" || kind == "adamw" || kind == "amsgrad";
  const auto only = [&](const char* of) { return fmt::format("it is for {}, and --optimizer is {}", of, kind); };
  return {
      {"momentum", rule.momentum != usual.momentum, sgd, only("sgd")},
      {"decay", rule.decay != usual.decay, rmsprop, only("rmsprop")},
      {"rms-start", rule.rms_start != usual.rms_start, rmsprop, only("rmsprop")},
      {"epsilon-place", rule.epsilon_inside, rmsprop, only("rmsprop")},
      {"epsilon", rule.epsilon != usual.epsilon, !sgd, only("all others")},
      {"beta1", rule.beta1 != usual.beta1, adam, only("adam, adamw, amsgrad")},
      {"beta2", rule.beta2 != usual.beta2, adam, only("adam, adamw, amsgrad")},
  };
}

Conditions of_schedule(const ScheduleOptions& rate) {
  const ScheduleOptions usual;
  const std::string& kind = rate.kind;
  const bool step = kind == "step", plateau = kind == "plateau", window = kind == "window",
             to_end = kind == "cosine" || kind == "linear";
  const auto falls = [&](const char* of) { return fmt::format("it is for {}, and --schedule is {}", of, kind); };
  return {
      {"lr-floor", rate.floor != usual.floor, to_end, falls("cosine, linear")},
      {"lr-every", rate.every != usual.every, step, falls("step")},
      {"lr-factor", rate.factor != usual.factor, step || plateau || window, falls("step, plateau, window")},
      {"lr-patience", rate.patience != usual.patience, plateau || window, falls("plateau, window")},
      {"lr-after", rate.after != usual.after, window, falls("window")},
  };
}

}  // namespace

std::vector<std::string> without_effect(const Options& options, const Shared& shared, const Task& task,
                                        const TaskProgram& program, const Model& made) {
  std::vector<std::string> notes;
  const auto note = [&](const std::string& option, const std::string& why) {
    if (options.typed(option)) notes.push_back(fmt::format("--{} has no effect: {}", option, why));
  };
  for (const Conditions& all :
       {of_model(shared.model, task, program, made), of_examples(shared.train.examples, task.parts()),
        of_optimizer(shared.optimizer), of_schedule(shared.train.schedule)})
    for (const auto& [option, set, works, why] : all)
      if (set && !works) note(option, why);
  for (const CellType& type : cell_registry())
    for (const auto& [setting, why] : Settings(type.name, type.settings, options.settings(type.name)).without_effect())
      note(fmt::format("{}.{}", type.name, setting), fmt::format("--{}.{}", type.name, why));
  if (!program.idle) return notes;
  for (const auto& [option, idle, why] : program.idle())
    if (idle) note(option, why);
  return notes;
}

}  // namespace reel
