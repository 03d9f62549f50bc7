#include "tasks/data/sequences.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "ops/functors/philox.h"
#include "tasks/data/data_error.h"

namespace reel {

namespace {

/// A number for each row, the same for rows of the same group, by their first rows. Groups differ if they are written
/// differently, where that is known.
std::vector<std::int64_t> group_numbers(const Table& table, const Column& column, std::int64_t& count) {
  std::vector<std::int64_t> numbers;
  std::map<double, std::int64_t> known;
  const bool written = !column.texts.empty();
  for (std::int64_t r = 0; r < table.rows; ++r) {
    const auto row = static_cast<std::size_t>(r);
    const double value = written ? column.texts[row] : column.numbers[row];
    if (std::isnan(value) || (written && value < 0))
      throw FileError(fmt::format("{}: column \"{}\": the group of the row is missing", table.where(r), column.name));
    if (!written) check_exact(table, r, column, "group");
    numbers.push_back(known.try_emplace(value, std::ssize(known)).first->second);
  }
  count = std::ssize(known);
  return numbers;
}

bool are_dates(const std::vector<std::string>& words) {
  const std::string shape = date_shape(words[0]);
  return !shape.empty() &&
         std::all_of(words.begin(), words.end(), [&](const std::string& word) { return date_shape(word) == shape; });
}

/// False if the order of these times is not known: they are texts, but no dates.
bool check_time(const Table& table, const Sequences& sequences, const Column& column) {
  const bool dates = column.is_text();
  if (dates && !are_dates(column.words)) return false;
  const auto number = [&](std::int64_t row) { return column.numbers[static_cast<std::size_t>(row)]; };
  const auto word = [&](std::int64_t row) -> const std::string& {
    return column.words[static_cast<std::size_t>(column.texts[static_cast<std::size_t>(row)])];
  };
  const auto shown = [&](std::int64_t row) { return dates ? word(row) : fmt::format("{}", number(row)); };
  for (const Rows& part : sequences.parts) {
    std::int64_t before = -1;
    for (std::int64_t r = part.first; r < part.first + part.count; ++r) {
      const std::int64_t row = sequences.order[static_cast<std::size_t>(r)];
      if (dates ? column.texts[static_cast<std::size_t>(row)] < 0 : std::isnan(number(row)))
        throw FileError(fmt::format("{}: column \"{}\": the time is missing", table.where(row), column.name));
      if (before >= 0 && (dates ? word(row) < word(before) : number(row) < number(before)))
        throw FileError(fmt::format("{}: column \"{}\": rows in order of time are expected, got {} after {}",
                                    table.where(row), column.name, shown(row), shown(before)));
      before = row;
    }
  }
  return true;
}

/// How many of n entries a share is: at least one.
std::int64_t share_of(double share, std::int64_t n) {
  return share > 0 ? std::max<std::int64_t>(1, std::llround(share * static_cast<double>(n))) : 0;
}

}  // namespace

Sequences sequences_of(const Table& table, const std::string& group, const std::string& time) {
  Sequences out;
  out.order.resize(static_cast<std::size_t>(table.rows));
  if (group.empty()) {
    std::iota(out.order.begin(), out.order.end(), 0);
    out.parts = table.sequences.empty() ? std::vector<Rows>{{0, table.rows}} : table.sequences;
  } else {
    std::int64_t count = 0;
    const std::vector<std::int64_t> number = group_numbers(table, table.at(group), count);
    out.parts.resize(static_cast<std::size_t>(count));
    for (const std::int64_t n : number) ++out.parts[static_cast<std::size_t>(n)].count;
    for (std::size_t i = 1; i < out.parts.size(); ++i)
      out.parts[i].first = out.parts[i - 1].first + out.parts[i - 1].count;
    std::vector<std::int64_t> next;
    for (const Rows& part : out.parts) next.push_back(part.first);
    for (std::int64_t r = 0; r < table.rows; ++r)
      out.order[static_cast<std::size_t>(next[static_cast<std::size_t>(number[static_cast<std::size_t>(r)])]++)] = r;
  }
  if (!time.empty()) out.checked = check_time(table, out, table.at(time));
  return out;
}

std::string date_shape(std::string_view text) {
  constexpr std::string_view day = "0000-00-00", minute = "00:00";
  std::string shape(text.substr(0, 40));
  for (char& c : shape)
    if (c >= '0' && c <= '9') c = '0';
  if (shape == day) return shape;
  const std::string_view all(shape), rest = all.substr(std::min(day.size(), all.size()));
  const bool time = (rest.starts_with('T') || rest.starts_with(' ')) && rest.substr(1).starts_with(minute) &&
                    rest.find_first_not_of("0:.Z", 1) == rest.npos;
  return all.starts_with(day) && time ? shape : "";
}

std::vector<Rows> windows_of(const Rows& sequence, const WindowOptions& o) {
  const std::int64_t usable = sequence.count - o.horizon;  // rows with a target
  if (usable < 1 || (o.full && usable < o.window)) return {};
  if (o.window == 0 || usable <= o.window) return {{sequence.first, usable}};
  std::vector<Rows> out;
  std::int64_t at = 0;
  for (; at + o.window <= usable; at += o.stride) out.push_back({sequence.first + at, o.window});
  if (o.rest && at < usable) out.push_back({sequence.first + at, usable - at});
  return out;
}

Split split_at_random(std::vector<Rows> entries, const SplitOptions& o) {
  constexpr std::uint64_t stream = std::uint64_t{5} << 60;  // of the seed; other streams draw examples and their order
  Stream random(o.seed, stream);
  for (std::size_t k = entries.size(); k > 1; --k)
    std::swap(entries[k - 1], entries[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(k)))]);
  const std::int64_t n = std::ssize(entries), test = std::min(n, share_of(o.test, n)),
                     valid = std::min(n - test, share_of(o.valid, n)), train = n - valid - test;
  const auto begin = entries.begin();
  Split split{std::vector<Rows>(begin, begin + train), std::vector<Rows>(begin + train, begin + train + valid),
              std::vector<Rows>(begin + train + valid, entries.end())};
  for (std::vector<Rows>& part : split)  // the order of training is drawn elsewhere
    std::sort(part.begin(), part.end(), [](const Rows& a, const Rows& b) { return a.first < b.first; });
  return split;
}

Split split_by_time(const std::vector<Rows>& sequences, const SplitOptions& o) {
  Split split;
  for (const Rows& s : sequences) {
    const std::int64_t test = std::min(s.count, share_of(o.test, s.count)),
                       valid = std::min(s.count - test, share_of(o.valid, s.count)), train = s.count - valid - test;
    std::int64_t first = s.first;
    const std::int64_t counts[] = {train, valid, test};
    for (std::size_t i = 0; i < split.size(); ++i) {
      if (counts[i] > 0) split[i].push_back({first, counts[i]});
      first += counts[i];
    }
  }
  return split;
}

}  // namespace reel
