#include "tasks/app/pictures.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "tasks/app/eigenvalues.h"
#include "tasks/app/heat_map.h"
#include "tasks/io/output.h"
#include "tasks/training/device.h"
#include "tasks/training/probe.h"
#include "tasks/training/safetensors.h"

namespace reel {

namespace {

/// "h", or "2-h" if there are several layers.
std::string label(std::size_t layers, std::size_t layer, const std::string& state) {
  return layers == 1 ? state : fmt::format("{}-{}", layer + 1, state);
}

/// The same in words: "h of layer 2".
std::string words_of(std::size_t layers, std::size_t layer, const std::string& state) {
  return layers == 1 ? state : fmt::format("{} of layer {}", state, layer + 1);
}

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

/// Draws a map or two of each state of each layer, for one sequence.
void draw_over_time(const Ended& e, const std::string& name,
                    const std::function<std::vector<HeatMap>(const Cell&, const Tensor&, const std::string&,
                                                             const std::vector<double>&)>& maps) {
  const Batch batch = example(e, 0);
  const std::vector<double> marks = e.task.marks(batch);
  const auto layers = e.model.layers(on(batch.x, e.model.device()));
  TensorFile numbers;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const auto& [cell, x] = layers[l];
    const Tensors states = states_over_time(*cell, x);
    const auto names = state_names(*cell);
    for (std::size_t s = 0; s < states.size(); ++s) {
      const std::string which = label(layers.size(), l, names[s]);
      const Tensor over_time = reshape(states[s], {states[s].dim(0), states[s].dim(2)});
      const std::string svg = e.folder.file(fmt::format("{}-{}.svg", name, which));
      print_picture(svg,
                    draw_heat_maps(svg, maps(*cell, over_time, words_of(layers.size(), l, names[s]), marks), e.style));
      numbers.tensors.emplace_back(which, over_time);
    }
  }
  numbers.tensors.emplace_back("x", e.task.shape().vocabulary > 0 ? batch.x : layers.front().second);
  save_safetensors(e.folder.file(name + ".safetensors"), numbers);
}

void draw_states(const Ended& e) {
  draw_over_time(e, "states", [&](const Cell& cell, const Tensor& s, const std::string& which, const auto& marks) {
    const std::string shown = (is_complex(s.dtype()) ? "modulus of " : "") + which;
    std::vector<HeatMap> maps{units_over_time(s, fmt::format("{}: {}", e.task.title(), shown), shown, marks)};
    if (cell.shift() != 0)
      maps.push_back(units_over_time(unshifted(s, cell.shift()), which + ", the shift undone", shown, marks));
    return maps;
  });
}

/// What each step adds to s [T, width]; before the first one it is 0.
Tensor changes(const Tensor& s) {
  return s - concat({Tensor::zeros({1, s.dim(1)}, s.dtype(), s.backend()), slice(s, 0, 0, s.dim(0) - 1)}, 0);
}

void draw_changes(const Ended& e) {
  draw_over_time(e, "changes", [&](const Cell& cell, const Tensor& s, const std::string& which, const auto& marks) {
    const std::string title = fmt::format("{}: change of {} in a step", e.task.title(), which),
                      shown = (is_complex(s.dtype()) ? "modulus of the change of " : "change of ") + which;
    std::vector<HeatMap> maps{units_over_time(changes(s), title, shown, marks)};
    if (cell.shift() != 0)
      maps.push_back(units_over_time(changes(unshifted(s, cell.shift())), which + ", the shift undone", shown, marks));
    return maps;
  });
}

/// Draws the mean over a few sequences of the same length, as in ENRNN (Helfrich and Ye 2020), Figures 4 and 5.
void draw_gradients(const Ended& e) {
  constexpr std::int64_t points = 50, sequences = 5;
  std::vector<JacobianNorms> sums;                         // one per layer
  std::vector<std::string> names;                          // of all states, in files
  std::vector<std::pair<std::string, std::string>> words;  // state, state of its layer
  std::int64_t T = 0, count = 0;
  if (!e.quiet) print_err("gradients of states with respect to inputs ...\n");
  for (std::size_t i = 0; i < std::min<std::size_t>(sequences, e.streams.size()); ++i) {
    const auto layers = e.model.layers(on(example(e, i).x, e.model.device()));
    if (i > 0 && layers[0].second.dim(0) != T) continue;
    T = layers[0].second.dim(0);
    ++count;
    for (std::size_t l = 0; l < layers.size(); ++l) {
      const auto& [cell, x] = layers[l];
      const JacobianNorms one = jacobian_norms(*cell, x, points);
      if (i == 0) {
        sums.push_back(one);
        for (const std::string& name : state_names(*cell)) {
          names.push_back(label(layers.size(), l, name));
          words.emplace_back(name, words_of(layers.size(), l, name));
        }
        continue;
      }
      for (std::size_t s = 0; s < one.norms.size(); ++s)
        for (std::size_t f = 0; f < one.norms[s].size(); ++f) sums[l].norms[s][f] += one.norms[s][f];
    }
  }
  TensorFile numbers;
  for (JacobianNorms& layer : sums) {
    for (std::vector<double>& norms : layer.norms) {
      for (double& v : norms) v /= static_cast<double>(count);
      const std::string& name = names[numbers.tensors.size()];
      const auto& [state, in_words] = words[numbers.tensors.size()];
      const std::size_t n = layer.times.size();
      HeatMap map{fmt::format("{}: how {} depends on earlier inputs", e.task.title(), in_words),
                  "step u of the input x",
                  fmt::format("step t of the state {}", state),
                  n,
                  n,
                  norms};
      map.low = 0;
      map.value_label = fmt::format("spectral norm ‖∂{}(t) / ∂x(u)‖", state);
      if (n > 1) map.x_step = map.y_step = static_cast<double>(layer.times[1]);
      const std::string svg = e.folder.file(fmt::format("gradients-{}.svg", name));
      print_picture(svg, draw_heat_map(svg, map, e.style));
      const auto side = static_cast<std::int64_t>(n);
      numbers.tensors.emplace_back(name, Tensor::from<double>(norms, {side, side}));
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
  std::vector<Picture> out;
  for (const std::string& name : split_list(names)) {
    const auto found = std::find_if(known.begin(), known.end(), [&](const Picture& p) { return p.name == name; });
    if (found == known.end()) {
      std::vector<std::string> all;
      for (const Picture& p : known) all.push_back(p.name);
      throw Usage(fmt::format("--picture: {} is not one of {}", name, fmt::join(all, ", ")));
    }
    out.push_back(*found);
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
          {"gradients", "norms of the gradients of states with respect to inputs, for all pairs of time steps",
           draw_gradients},
          {"eigenvalues",
           "of the recurrent matrix, or of the step's Jacobian if a cell has no single such matrix, before and after "
           "training",
           draw_eigenvalues}};
}

}  // namespace reel
