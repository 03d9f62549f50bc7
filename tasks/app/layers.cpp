#include "tasks/app/layers.h"

#include <algorithm>

#include "engine/core/parse.h"

namespace reel {

void set_layers(ModelOptions& model, const std::string& cells, const std::string& hidden, const Options& options) {
  const std::vector<std::string> names = split_list(cells), sizes = split_list(hidden);
  const std::size_t count = std::max(names.size(), sizes.size());
  const auto layer = [&](std::size_t l) {
    const std::string& cell = names[names.size() == 1 ? 0 : l];
    return LayerOptions{cell, parse<std::int64_t>(sizes[sizes.size() == 1 ? 0 : l]).value(), options.settings(cell)};
  };
  const LayerOptions first = layer(0);
  model.cell = first.cell;
  model.hidden = first.hidden;
  model.settings = first.settings;
  if (count == 1) return;
  if (names.size() != 1 && sizes.size() != 1 && names.size() != sizes.size())
    throw Usage(fmt::format("--hidden {}: {} sizes for {} cells. Hint: one for each of --cell {}, or one for all",
                            hidden, sizes.size(), names.size(), cells));
  // a run's config.toml always has layers, and typed lists override it
  const bool lists = (options.typed("cell") && names.size() > 1) || (options.typed("hidden") && sizes.size() > 1);
  if ((options.typed("layers") || (options.given("layers") && !lists)) &&
      model.layers != static_cast<std::int64_t>(count))
    throw Usage(fmt::format("--layers {}: {} has {} layers. Hint: leave --layers out", model.layers,
                            names.size() > 1 ? "--cell " + cells : "--hidden " + hidden, count));
  model.layers = static_cast<std::int64_t>(count);
  for (std::size_t l = 0; l < count; ++l) model.stack.push_back(layer(l));
}

}  // namespace reel
