#include "tasks/apply/subject.h"

namespace reel {

Subject subject_of(const std::string& name, const Cell& cell, double zoneout) {
  return {.text = fmt::format("{} with I = {}, N = {}", name, cell.input, cell.hidden),
          .parameters = cell.parameters(),
          .states = cell.states(),
          .inputs = cell.input,
          .outputs = cell.outputs(),
          .dtype = real_of(cell.parameters().at(0).value.dtype()),
          .initial = [&cell](std::int64_t batch) { return cell.initial(batch); },
          .run =
              [&cell, zoneout](const Tensors& state, const Tensor& x, const Tensor& lengths) {
                CellInput in = x;
                in.zoneout.rate = zoneout;
                in.lengths = lengths;
                return scan(cell, state, in);
              }};
}

Subject subject_of(const TrainedModel& trained) {
  const Model& model = trained.model;
  const ModelShape& shape = trained.config.shape;
  const bool carries = !trained.config.options.bidirectional;
  std::vector<State> states;
  for (std::size_t c = 0; carries && c < model.cells().size(); ++c) {
    for (State s : model.cells()[c]->states()) {
      if (model.cells().size() > 1) s.name = fmt::format("layer{}.{}", c + 1, s.name);
      states.push_back(std::move(s));
    }
  }
  return {.text = fmt::format("the model of {}, {} to {}", trained.config.task,
                              shape.vocabulary > 0 ? fmt::format("{} symbols", shape.vocabulary)
                                                   : fmt::format("{} inputs", shape.inputs),
                              fmt::format("{} outputs", shape.outputs)),
          .parameters = model.parameters(),
          .states = states,
          .inputs = shape.inputs,
          .outputs = shape.outputs,
          .every_step = shape.every_step,
          .dtype = trained.config.dtype,
          .initial = [&model](std::int64_t batch) { return model.initial(batch); },
          .run =
              [&model](const Tensors& state, const Tensor& x, const Tensor& lengths) {
                Tensors carried = state;
                const Tensor y = model(x, std::nullopt, state.empty() ? nullptr : &carried, lengths);
                return Sequence{y, carried};
              }};
}

}  // namespace reel
