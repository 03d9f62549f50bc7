#include "tasks/app/eigenvalues.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "ops/spectral.h"
#include "tasks/app/axes.h"
#include "tasks/app/gnuplot.h"
#include "tasks/app/layer_names.h"
#include "tasks/data/data_error.h"
#include "tasks/training/device.h"
#include "tasks/training/probe.h"
#include "tasks/training/safetensors.h"

namespace reel {

namespace {

Tensor eigenvalues(const Tensor& matrix) {
  const NoGrad no_grad;
  return eigvals(cast(on(matrix, backend("cpu")), is_complex(matrix.dtype()) ? DType::c128 : DType::f64));
}

/// Real and imaginary parts as a data block; grows `radius` to the largest modulus.
std::string block(const std::string& name, const Tensor& values, double& radius) {
  const auto re = real(values).values<double>(), im = imag(values).values<double>();
  std::string out = fmt::format("${} << END\n", name);
  for (std::size_t i = 0; i < re.size(); ++i) {
    radius = std::max(radius, std::hypot(re[i], im[i]));
    out += fmt::format("{} {}\n", re[i], im[i]);
  }
  return out + "END\n";
}

std::optional<std::string> draw(const std::string& svg, const std::string& title, const Tensor& before,
                                const Tensor& after, const PictureStyle& style) {
  double radius = 1;
  std::string settings = block("before", before, radius) + block("after", after, radius) + "$circle << END\n";
  for (int degree = 0; degree <= 360; degree += 2) {
    const double angle = degree * std::numbers::pi / 180;
    settings += fmt::format("{} {}\n", std::cos(angle), std::sin(angle));
  }
  Drawing drawing{title, "", "", 680, 720};
  const Fit room = fit(style, 3, std::string("before training").size(), drawing);
  settings += "END\n" + frame(narrow(style) ? "" : title, "real part", "imaginary part", room);
  settings += fmt::format("set xrange [{0}:{1}]\nset yrange [{0}:{1}]\nset size ratio -1\nset border 15\n",
                          -1.1 * radius, 1.1 * radius);
  const std::string plot =
      "plot $circle with lines linewidth 1.2 linecolor '#999999' title 'unit circle', "
      "$before with points pointtype 6 pointsize 0.7 linewidth 1.2 linecolor '#d9822b' title 'before training', "
      "$after with points pointtype 7 pointsize 0.5 linecolor '#1f5f9e' title 'after training'";
  drawing.settings = settings;
  drawing.plot = plot;
  return draw_grown(svg, drawing, style, room);
}

}  // namespace

Spectrum spectrum_of(const Cell& cell, const Tensor& x, const Zoneout& zoneout) {
  if (!cell.recurrent()) return {};
  if (const Tensor matrix = cell.recurrent_matrix(); matrix.defined()) return {eigenvalues(matrix), {}};
  constexpr std::int64_t most_times = 4, most_values = 1024;  // so that a large cell takes seconds, not minutes
  const Tensors states = states_over_time(cell, x, zoneout);
  std::int64_t size = 0;
  for (const State& s : cell.states()) size += s.complex ? 2 * s.width : s.width;
  const std::int64_t T = x.dim(0), count = std::min(T, std::clamp<std::int64_t>(most_values / size, 1, most_times));
  Spectrum out;
  Tensors all;
  for (std::int64_t k = 1; k <= count; ++k) {
    const std::int64_t t = k * T / (count + 1);
    Tensors before = cell.initial(1);
    for (std::size_t s = 0; t > 0 && s < states.size(); ++s) before[s] = at(states[s], t - 1);
    all.push_back(eigenvalues(step_jacobian(cell, before, at(x, t), zoneout)));
    out.times.push_back(t);
  }
  out.values = concat(all, 0);
  return out;
}

void draw_eigenvalues(const Ended& e) {
  std::unique_ptr<Model> start;
  try {
    start = e.untrained();
  } catch (const FileError& error) {
    return print_picture("", fmt::format("no picture {}: {}", e.folder.file("eigenvalues.svg"), error.what()));
  }
  const Tensor x = on(e.task.batch(e.seed, {e.streams.front()}).x, e.model.device());
  const auto before = start->layers(x), after = e.model.layers(x);
  TensorFile numbers;
  for (std::size_t l = 0; l < after.size(); ++l) {
    const std::string layer = layer_prefix(after, after[l]);  // "2-"
    const std::string svg = e.folder.file(
        layer.empty() ? "eigenvalues.svg" : fmt::format("eigenvalues-{}.svg", layer.substr(0, layer.size() - 1)));
    const Cell& cell = *after[l].cell;
    const Spectrum first = spectrum_of(*before[l].cell, before[l].x, before[l].zoneout),
                   last = spectrum_of(cell, after[l].x, after[l].zoneout);
    if (!last.values.defined()) {
      print_picture(svg, fmt::format("no picture {}: the cell has no recurrence", svg));
      continue;
    }
    const auto names = state_names(cell);
    const std::string state = names.size() == 1 ? names[0] : fmt::format("({})", fmt::join(names, ", "));
    const std::string what = last.times.empty() ? "the recurrent matrix" : fmt::format("∂{0}(t) / ∂{0}(t-1)", state);
    print_picture(svg,
                  draw(svg, fmt::format("{}: eigenvalues of {}{}", e.task.title(), what, layer_words(after, after[l])),
                       first.values, last.values, e.style));
    numbers.tensors.emplace_back(layer + "before", first.values);
    numbers.tensors.emplace_back(layer + "after", last.values);
    std::vector<std::int32_t> times(last.times.begin(), last.times.end());
    if (!times.empty())
      numbers.tensors.emplace_back(layer + "times", Tensor::from<std::int32_t>(times, {std::ssize(last.times)}));
  }
  save_safetensors(e.folder.file("eigenvalues.safetensors"), numbers);
}

}  // namespace reel
