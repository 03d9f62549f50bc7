#include "tasks/app/no_effect.h"

#include <fmt/core.h>

#include <algorithm>

#include "cells/cell.h"

namespace reel {

std::vector<std::string> without_effect(const Options& options, const Shared& shared, const Task& task,
                                        const TaskProgram& program, const Model& made) {
  const ModelOptions& model = shared.model;
  const OptimizerOptions &rule = shared.optimizer, usual_rule;
  const ScheduleOptions &rate = shared.train.schedule, usual_rate;
  const std::string &kind = rule.kind, &schedule = rate.kind;
  const bool carries = !model.bidirectional && std::any_of(made.cells().begin(), made.cells().end(),
                                                           [](const auto& cell) { return cell->recurrent(); });
  const bool own_model = program.model != nullptr;  // not a stack of cells
  const bool stack = own_model || layers_of(model).size() > 1, drops = own_model || model.dropout > 0;
  const bool symbols = task.shape().vocabulary > 0, embeds = model.input == "embedding";
  const bool sgd = kind == "sgd", rmsprop = kind == "rmsprop",
             adam = kind == "adam" || kind == "adamw" || kind == "amsgrad";
  const bool step = schedule == "step", plateau = schedule == "plateau", window = schedule == "window",
             to_end = schedule == "cosine" || schedule == "linear";

  const ExampleOptions& examples = shared.train.examples;
  const Parts parts = task.parts();
  const bool fixed = examples.examples > 0 || parts.train > 0;

  const std::string one = "it works between layers, and there is one. Hint: --layers 2",
                    numbers = "the inputs are numbers";
  const auto only = [&](const char* of) { return fmt::format("it is for {}, and --optimizer is {}", of, kind); };
  const auto falls = [&](const char* of) { return fmt::format("it is for {}, and --schedule is {}", of, schedule); };
  const struct {
    const char* option;
    bool set, works;
    std::string why;
  } all[] = {
      {"layer-norm", model.layer_norm, stack, one},
      {"residual", model.residual, stack, one},
      {"dropout", model.dropout > 0, stack, one},
      {"variational-dropout", model.variational, stack && drops, stack ? "--dropout is 0" : one},
      {"input", !embeds, symbols, numbers},
      {"embedding", model.embedding > 0, symbols && embeds, symbols ? "--input is one-hot" : numbers},
      {"reset-every", true, carries,
       model.bidirectional ? "--bidirectional reads whole sequences, and no states carry over"
                           : fmt::format("--cell {} has no states that carry over", model.cell)},
      {"shuffle", !examples.shuffle, fixed && !parts.ordered,
       fixed ? "examples continue each other and are never shuffled" : "the examples of each update are new ones"},
      {"momentum", rule.momentum != usual_rule.momentum, sgd, only("sgd")},
      {"decay", rule.decay != usual_rule.decay, rmsprop, only("rmsprop")},
      {"rms-start", rule.rms_start != usual_rule.rms_start, rmsprop, only("rmsprop")},
      {"epsilon-place", rule.epsilon_inside, rmsprop, only("rmsprop")},
      {"epsilon", rule.epsilon != usual_rule.epsilon, !sgd, only("all others")},
      {"beta1", rule.beta1 != usual_rule.beta1, adam, only("adam, adamw, amsgrad")},
      {"beta2", rule.beta2 != usual_rule.beta2, adam, only("adam, adamw, amsgrad")},
      {"lr-floor", rate.floor != usual_rate.floor, to_end, falls("cosine, linear")},
      {"lr-every", rate.every != usual_rate.every, step, falls("step")},
      {"lr-factor", rate.factor != usual_rate.factor, step || plateau || window, falls("step, plateau, window")},
      {"lr-patience", rate.patience != usual_rate.patience, plateau || window, falls("plateau, window")},
      {"lr-after", rate.after != usual_rate.after, window, falls("window")},
  };
  std::vector<std::string> notes;
  const auto note = [&](const std::string& option, const std::string& why) {
    if (options.typed(option)) notes.push_back(fmt::format("--{} has no effect: {}", option, why));
  };
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
