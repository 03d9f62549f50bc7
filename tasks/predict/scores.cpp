#include "tasks/predict/scores.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "tasks/data/csv.h"
#include "tasks/data/data_error.h"
#include "tasks/predict/answers_file.h"

namespace reel {

Scores::Scores(const TableSpec& spec, const Table& table) : spec_(spec), table_(table) {
  std::map<std::string_view, const Column*> known;
  for (const Column& column : table.columns) known.emplace(column.name, &column);
  for (const ScaledColumn& target : spec.targets)
    if (const auto found = known.find(target.name); found != known.end()) columns_.push_back(found->second);
  if (columns_.size() != spec.targets.size()) columns_.clear();
  squares_.assign(columns_.size(), 0);
  sizes_.assign(columns_.size(), 0);
  counts_.assign(columns_.size(), 0);
}

void Scores::require_targets(const std::string& path) const {
  const std::vector<std::string> columns = table_.names();
  for (const std::string& name : spec_.target_names()) require_column(path, columns, name, "a target of the model");
  if (!spec_.classifies()) table_.numbers(spec_.target_names());
}

void Scores::add(const Answer& answer, std::int64_t row) {
  if (columns_.empty() || answer.empty()) return;
  const auto at = static_cast<std::size_t>(row);
  if (spec_.classifies()) {
    const std::string field = field_of(*columns_[0], row);
    if (field.empty()) return;
    auto known = std::find(spec_.classes.begin(), spec_.classes.end(), field);
    if (const auto number = parse_number(field); number && known == spec_.classes.end())  // 1.0 is of the class 1
      known = std::find(spec_.classes.begin(), spec_.classes.end(), fmt::format("{}", *number));
    if (known == spec_.classes.end()) {
      ++unknown_;
      ++classes_[field];
    } else {
      right_ += *known == spec_.likeliest(answer) ? 1 : 0;
      log_likelihood_ += std::log(answer[static_cast<std::size_t>(known - spec_.classes.begin())]);
    }
    ++counts_[0];
    return;
  }
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i]->is_text() || std::isnan(columns_[i]->numbers[at])) continue;
    const double off = answer[i] - columns_[i]->numbers[at];
    squares_[i] += off * off;
    sizes_[i] += std::abs(off);
    ++counts_[i];
  }
}

std::string Scores::text() const {
  std::string out;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    if (counts_[i] == 0) continue;
    const auto n = static_cast<double>(counts_[i]);
    if (!out.empty()) out += ", ";
    if (spec_.classifies())
      out += fmt::format(
          "accuracy {:.4g}, cross entropy {}", static_cast<double>(right_) / n,
          unknown_ == counts_[0] ? "-" : fmt::format("{:.4g}", -log_likelihood_ / (n - static_cast<double>(unknown_))));
    else
      out += fmt::format("rmse of {} {:.4g}, mae {:.4g}", spec_.targets[i].name, std::sqrt(squares_[i] / n),
                         sizes_[i] / n);
    const auto same = [&](std::int64_t count) { return count == counts_[i]; };
    if (i + 1 == counts_.size() || !std::all_of(counts_.begin(), counts_.end(), same))
      out += fmt::format(" over {} answers", counts_[i]);
  }
  return out;
}

std::string Scores::unknown() const {
  constexpr std::size_t most = 8;  // named
  std::string out;
  std::size_t named = 0;
  for (const auto& [name, rows] : classes_) {
    if (++named > most) break;
    out += fmt::format("{}\"{}\" ({} row{})", named > 1 ? ", " : "", name, rows, rows == 1 ? "" : "s");
  }
  if (classes_.size() > most) out += fmt::format(", and {} more", classes_.size() - most);
  if (out.empty()) return "";
  return fmt::format("{} the model does not know: {}; {} as wrong, and the cross entropy is that of the others",
                     classes_.size() == 1 ? "a class that" : "classes that", out,
                     unknown_ == 1 ? "it counts" : "they count");
}

}  // namespace reel
