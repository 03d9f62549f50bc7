#include "tasks/app/pictures.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "tasks/app/eigenvalues.h"
#include "tasks/app/heat_map.h"
#include "tasks/app/layer_names.h"
#include "tasks/io/output.h"
#include "tasks/training/device.h"
#include "tasks/training/probe.h"
#include "tasks/training/safetensors.h"

namespace reel {

namespace {

Batch example(const Ended& e, std::size_t number) { return e.task.batch(e.seed, {e.streams.at(number)}); }

/// Units over time [T, width] as the rows of a map, complex ones by their modulus. It has no more columns than any
/// screen.
HeatMap units_over_time(const Tensor& s, const std::string& title, const std::string& value_label,
                        const std::vector<double>& marks) {
  constexpr std::int64_t most = 2000;
  const std::int64_t T = s.dim(0), width = s.dim(1), apart = (T + most - 1) / most;
  const auto values = cast(transpose(is_complex(s.dtype()) ? abs(s) : s), DType::f64).values<double>();
  HeatMap map{title, "step", "unit", static_cast<std::size_t>(width), 0, {}};
  map.columns = static_cast<std::size_t>((T + apart - 1) / apart);
  for (std::int64_t j = 0; j < width; ++j)
    for (std::int64_t t = 0; t < T; t += apart) map.values.push_back(values[static_cast<std::size_t>(j * T + t)]);
  map.x_step = static_cast<double>(apart);
  map.value_label = value_label;
  map.marks = marks;
  return map;
}

/// Undoes the shift: moves the element at j + shift t back to j, for every time t.
Tensor unshifted(const Tensor& s, std::int64_t shift) {
  Tensors rows;
  for (std::int64_t t = 0; t < s.dim(0); ++t) rows.push_back(roll(at(s, t), -shift * t));
  return stack(rows);
}

/// The maps of a state of a layer, and what they show as numbers [T, width].
struct Shown {
  std::vector<HeatMap> maps;
  Tensor numbers;
};

/// A state of a layer over time: `s` [T, width] as the layer reads, and `first` [1, width] before that.
struct StateOverTime {
  const LayerInput& layer;
  Tensor s, first;
  std::string name;  // "h of layer 2"
  std::vector<double> marks;
  /// In the order of the sequence.
  Tensor in_order(const Tensor& x) const { return layer.backward ? flip(x, 0) : x; }
};

/// Draws a map or two of each state of each layer, for one sequence.
void draw_over_time(const Ended& e, const std::string& name, const std::function<Shown(const StateOverTime&)>& show) {
  const Batch batch = example(e, 0);
  const std::vector<double> marks = e.task.marks(batch);
  const auto layers = e.model.layers(on(batch.x, e.model.device()));
  TensorFile numbers;
  for (const LayerInput& layer : layers) {
    const Tensors states = states_over_time(*layer.cell, layer.x, layer.zoneout), start = layer.cell->initial(1);
    const auto names = state_names(*layer.cell);
    for (std::size_t s = 0; s < states.size(); ++s) {
      const Tensor over_time = reshape(states[s], {states[s].dim(0), states[s].dim(2)});
      const Tensor first =
          s < start.size() ? start[s] : Tensor::zeros({1, over_time.dim(1)}, over_time.dtype(), over_time.backend());
      const std::string which = layer_prefix(layers, layer) + names[s];
      const std::string svg = e.folder.file(fmt::format("{}-{}.svg", name, which));
      const Shown shown = show({layer, over_time, first, names[s] + layer_words(layers, layer), marks});
      print_picture(svg, draw_heat_maps(svg, shown.maps, e.style));
      numbers.tensors.emplace_back(which, shown.numbers);
    }
  }
  numbers.tensors.emplace_back("x", e.task.shape().vocabulary > 0 ? batch.x : layers.front().x);
  save_safetensors(e.folder.file(name + ".safetensors"), numbers);
}

void draw_states(const Ended& e) {
  draw_over_time(e, "states", [&](const StateOverTime& state) {
    const std::int64_t shift = state.layer.cell->shift();
    const std::string shown = (is_complex(state.s.dtype()) ? "modulus of " : "") + state.name;
    const Tensor s = state.in_order(state.s);
    Shown out{{units_over_time(s, fmt::format("{}: {}", e.task.title(), shown), shown, state.marks)}, s};
    if (shift != 0)
      out.maps.push_back(units_over_time(state.in_order(unshifted(state.s, shift)), state.name + ", the shift undone",
                                         shown, state.marks));
    return out;
  });
}

/// What each step adds to s [T, width], which is `first` before them.
Tensor changes(const Tensor& s, const Tensor& first) { return s - concat({first, slice(s, 0, 0, s.dim(0) - 1)}, 0); }

void draw_changes(const Ended& e) {
  draw_over_time(e, "changes", [&](const StateOverTime& state) {
    const std::int64_t shift = state.layer.cell->shift();
    const std::string title = fmt::format("{}: change of {} in a step", e.task.title(), state.name),
                      shown = (is_complex(state.s.dtype()) ? "modulus of the change of " : "change of ") + state.name;
    const Tensor s = state.in_order(changes(state.s, state.first));
    Shown out{{units_over_time(s, title, shown, state.marks)}, s};
    if (shift != 0)
      out.maps.push_back(units_over_time(state.in_order(changes(unshifted(state.s, shift), roll(state.first, shift))),
                                         state.name + ", the shift undone", shown, state.marks));
    return out;
  });
}

/// The mean over a few sequences of norms of Jacobians, of a layer.
struct LayerNorms {
  LayerInput layer;
  std::string prefix, words;
  JacobianNorms norms;
};

/// Over the first sequences that are as long as the first, as in ENRNN (Helfrich and Ye 2020), Figures 4 and 5.
std::vector<LayerNorms> mean_norms(const Ended& e) {
  constexpr std::int64_t points = 50, sequences = 5;
  std::vector<LayerNorms> sums;
  double count = 0;
  for (std::size_t i = 0; i < std::min<std::size_t>(sequences, e.streams.size()); ++i) {
    const auto layers = e.model.layers(on(example(e, i).x, e.model.device()));
    if (i > 0 && layers[0].x.dim(0) != sums[0].layer.x.dim(0)) continue;
    ++count;
    for (std::size_t l = 0; l < layers.size(); ++l) {
      const JacobianNorms one = jacobian_norms(*layers[l].cell, layers[l].x, points, layers[l].zoneout);
      if (i == 0) {
        sums.push_back({layers[l], layer_prefix(layers, layers[l]), layer_words(layers, layers[l]), one});
        continue;
      }
      for (std::size_t s = 0; s < one.norms.size(); ++s)
        for (std::size_t f = 0; f < one.norms[s].size(); ++f) sums[l].norms.norms[s][f] += one.norms[s][f];
    }
  }
  for (LayerNorms& layer : sums)
    for (std::vector<double>& norms : layer.norms.norms)
      for (double& v : norms) v /= count;
  return sums;
}

void draw_gradients(const Ended& e) {
  if (!e.quiet) print_err("gradients of states with respect to inputs ...\n");
  TensorFile numbers;
  for (const LayerNorms& one : mean_norms(e)) {
    const auto names = state_names(*one.layer.cell);
    // What a layer above the first reads is its own.
    const std::string input = one.layer.layer == 1 ? "input x" : fmt::format("input x of layer {}", one.layer.layer),
                      from = one.layer.backward ? ", from the end" : "";
    const std::size_t n = one.norms.times.size();
    for (std::size_t s = 0; s < names.size(); ++s) {
      HeatMap map{fmt::format("{}: how {} depends on earlier inputs{}", e.task.title(), names[s] + one.words,
                              one.layer.layer == 1 ? "" : " of that layer"),
                  fmt::format("step u of the {}{}", input, from),
                  fmt::format("step t of the state {}{}", names[s], from),
                  n,
                  n,
                  one.norms.norms[s]};
      map.low = 0;
      map.value_label = fmt::format("spectral norm ‖∂{}(t) / ∂x(u)‖", names[s]);
      if (n > 1) map.x_step = map.y_step = static_cast<double>(one.norms.times[1]);
      const std::string svg = e.folder.file(fmt::format("gradients-{}{}.svg", one.prefix, names[s]));
      print_picture(svg, draw_heat_map(svg, map, e.style));
      const auto side = static_cast<std::int64_t>(n);
      numbers.tensors.emplace_back(one.prefix + names[s], Tensor::from<double>(map.values, {side, side}));
    }
  }
  save_safetensors(e.folder.file("gradients.safetensors"), numbers);
}

}  // namespace

void add_pictures(Options& options, PictureOptions& variables, const std::vector<Picture>& known) {
  std::string help = "pictures to draw at the end, comma-separated; with --resume also of a finished run";
  for (const Picture& p : known) help += fmt::format("; {}: {}", p.name, p.help);
  options.add("picture", variables.names, help, "Run");
  options.add("picture-size", variables.size,
              "size of these pictures in cm, WIDTHxHEIGHT, e.g. 8.4x7 for a column of a paper; empty: 20.1x18 or more",
              "Run");
  options.add("picture-font", variables.font, "font family, size in points, or both, e.g. Times,9; empty: sans serif",
              "Run");
}

std::vector<Picture> chosen_pictures(const std::string& names, const std::vector<Picture>& known) {
  if (!names.empty() && ("," + names + ",").find(",,") != std::string::npos)
    throw Usage(fmt::format("--picture {}: names expected, got an empty one", names));
  std::vector<Picture> out;
  for (const std::string& name : split_list(names)) {
    const auto found = std::find_if(known.begin(), known.end(), [&](const Picture& p) { return p.name == name; });
    if (found == known.end()) {
      std::vector<std::string> all;
      for (const Picture& p : known) all.push_back(p.name);
      throw Usage(fmt::format("--picture: {} is not one of {}", name, fmt::join(all, ", ")));
    }
    if (std::none_of(out.begin(), out.end(), [&](const Picture& p) { return p.name == name; })) out.push_back(*found);
  }
  return out;
}

void print_picture(const std::string& svg, const std::optional<std::string>& problem) {
  print_out("{}\n", one_line(problem ? *problem : "picture: " + svg));
}

std::vector<Picture> pictures_of_cells() {
  return {{"states", "states over time for one sequence; for cells that shift their units, also with the shift undone",
           draw_states},
          {"changes", "change of the states at each step, likewise", draw_changes},
          {"gradients",
           "norms of the gradients of states with respect to the inputs of their layer, for all pairs of time steps",
           draw_gradients},
          {"eigenvalues",
           "of the recurrent matrix, or of the step's Jacobian if a cell has no single such matrix, before and after "
           "training",
           draw_eigenvalues}};
}

}  // namespace reel
