#include "tasks/app/success_map.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <set>
#include <sstream>

#include "tasks/app/heat_map.h"

namespace reel {

void SuccessMap::add(const std::string& tsv) {
  std::istringstream in(tsv);
  std::string line;
  while (std::getline(in, line)) {
    std::istringstream numbers(line);
    std::int64_t K = 0, S = 0, planes = 0, T = 0, right = 0, draws = 0;
    if (!(numbers >> K >> S >> planes >> T >> right >> draws)) continue;
    fields_[{K, S}].right += right;
    fields_[{K, S}].draws += draws;
  }
}

std::int64_t SuccessMap::right() const {
  std::int64_t n = 0;
  for (const auto& [place, tries] : fields_) n += tries.right;
  return n;
}

std::int64_t SuccessMap::draws() const {
  std::int64_t n = 0;
  for (const auto& [place, tries] : fields_) n += tries.draws;
  return n;
}

std::int64_t SuccessMap::draws_of_a_field() const {
  std::int64_t most = 0;
  for (const auto& [place, tries] : fields_) most = std::max(most, tries.draws);
  return most;
}

std::optional<std::string> SuccessMap::draw(const std::string& svg, const std::string& title) const {
  std::set<std::int64_t> Ks, Ss;
  for (const auto& [place, tries] : fields_) {
    Ks.insert(place.first);
    Ss.insert(place.second);
  }
  HeatMap map{title, "S: symbols to remember", "K: different symbols", Ks.size(), Ss.size(), {}};
  map.low = 0;
  map.high = 1;
  map.value_label = "share of correct runs";
  for (const std::int64_t K : Ks) {
    for (const std::int64_t S : Ss) {
      const auto field = fields_.find({K, S});
      const bool tried = field != fields_.end() && field->second.draws > 0;
      const double share = tried ? static_cast<double>(field->second.right) / static_cast<double>(field->second.draws)
                                 : std::numeric_limits<double>::quiet_NaN();
      map.values.push_back(share);
      map.texts.push_back(tried ? fmt::format("{:.0f} %", 100 * share) : "");
    }
  }
  for (const std::int64_t K : Ks) map.row_names.push_back(fmt::format("{}", K));
  for (const std::int64_t S : Ss) map.column_names.push_back(fmt::format("{}", S));
  return draw_heat_map(svg, map);
}

}  // namespace reel
