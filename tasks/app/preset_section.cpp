#include "tasks/app/preset_section.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/parse.h"
#include "tasks/io/output.h"

namespace reel {

namespace {

/// True if a name in a table means this preset.
bool means(const std::string& name, const Preset& p) {
  return name == "all" || name == p.label || name == p.model || name == p.in_case;
}

}  // namespace

PresetSection::PresetSection(std::string file, std::string name, const toml::table& table,
                             std::span<const char* const> known)
    : file_(std::move(file)), name_(std::move(name)), table_(&table) {
  for (const auto& [key, node] : table)
    if (std::find(known.begin(), known.end(), key.str()) == known.end())
      fail(fmt::format("{} is no key of {}", key.str(), name_.find('.') == name_.npos ? "a section" : name_),
           key.source().begin.line);
}

void PresetSection::fail(const std::string& what, std::size_t line) const {
  throw Error(fmt::format("{}:{}", file_, line), fmt::format("[{}]: {}", name_, what));
}
void PresetSection::fail(const std::string& what) const { fail(what, table_->source().begin.line); }

void PresetSection::check_name(const std::string& name, std::size_t line) const {
  if (name.starts_with('.') || name.find('/') != std::string::npos || one_line(name) != name)
    fail(fmt::format("\"{}\" cannot be a name: no / in it, no control characters, and no dot in front", one_line(name)),
         line);
}

std::string PresetSection::text(const char* key, bool needed) const {
  const auto value = (*table_)[key].value_exact<std::string>();
  if (!value && (needed || table_->contains(key))) fail(fmt::format("{} = \"TEXT\" expected", key));
  return value.value_or("");
}

bool PresetSection::flag(const char* key) const {
  const auto value = (*table_)[key].value_exact<bool>();
  if (!value && table_->contains(key)) fail(fmt::format("{} = true or false expected", key));
  return value.value_or(false);
}

PresetSection::Names PresetSection::side(const char* key) const {
  Names out;
  const toml::table* side = table_of(key);
  if (!side) return {{"", ""}};
  for (const auto& [name, node] : *side) {
    const auto value = node.value_exact<std::string>();
    if (!value) fail(fmt::format("{}.{} = \"OPTIONS\" expected", key, name.str()), name.source().begin.line);
    check_name(std::string(name.str()), name.source().begin.line);
    out.emplace_back(name.str(), *value);
  }
  // a TOML table has no order of its own, so sort its keys by their position in the file
  std::stable_sort(out.begin(), out.end(), [&](const auto& a, const auto& b) {
    const auto at = [&](const std::string& n) { return side->get(n)->source().begin; };
    const auto x = at(a.first), y = at(b.first);
    return std::pair(x.line, x.column) < std::pair(y.line, y.column);
  });
  return out;
}

bool PresetSection::has(const std::string& in_case, const std::string& model) const {
  const toml::table* only = table_of("only");
  const toml::array* cases = only ? only->get_as<toml::array>(model) : nullptr;
  if (only && only->contains(model) && !cases) fail(fmt::format("only.{} = [CASES] expected", model));
  if (!cases) return true;
  return std::any_of(cases->begin(), cases->end(),
                     [&](const auto& c) { return c.template value_exact<std::string>() == in_case; });
}

const toml::node* PresetSection::find(const char* key, const Preset& p) const {
  const toml::table* values = table_of(key);
  if (!values) return nullptr;
  if (const toml::node* node = values->get(p.label); node && !node->is_table()) return node;
  if (const toml::table* of_case = values->get_as<toml::table>(p.in_case))
    if (const toml::node* node = of_case->get(p.model)) return node;
  for (const std::string& name : {p.model, p.in_case, std::string("all")})
    if (const toml::node* node = values->get(name); node && !node->is_table()) return node;
  return nullptr;
}

std::string PresetSection::text(const char* key, const Preset& p, const std::string& otherwise) const {
  const toml::node* node = find(key, p);
  if (!node) return otherwise;
  if (const auto value = node->value_exact<std::string>()) return *value;
  fail(fmt::format("{}: text expected", key), node->source().begin.line);
}

std::optional<double> PresetSection::number(const char* key, const Preset& p) const {
  const toml::node* node = find(key, p);
  if (!node) return std::nullopt;
  if (const auto value = node->value<double>(); value && node->is_number()) return value;
  fail(fmt::format("{}: a number expected", key), node->source().begin.line);
}

std::vector<std::string> PresetSection::notes(const Preset& p) const {
  std::vector<std::string> out;
  const toml::table* notes = table_of("notes");
  for (const std::string& name : {std::string("all"), p.in_case, p.model, p.label}) {
    const auto note = notes ? (*notes)[name].value_exact<std::string>() : std::nullopt;
    if (note && !name.empty() && (out.empty() || out.back() != *note)) out.push_back(*note);
  }
  return out;
}

void PresetSection::take_reported(const Preset& of, Measure& measure) const {
  for (const auto& [key, doubt] :
       {std::pair{"reported", ""}, {"unverified", " (unverified)"}, {"simulated", " (simulated)"}}) {
    const toml::node* node = find(key, of);
    if (!node) continue;
    measure.doubtful = *doubt != 0;
    if (const auto text = node->value_exact<std::string>()) {
      measure.reported = *text + doubt;
      const std::size_t deviation = text->find(" ± ");
      if (deviation != text->npos) measure.value = parse<double>(text->substr(0, deviation));
    } else {
      measure.value = number(key, of);
      const auto whole = node->value_exact<std::int64_t>();
      measure.reported = (whole ? fmt::format("{}", *whole) : fmt::format("{}", *measure.value)) + doubt;
    }
    return;
  }
}

void PresetSection::take_expected(std::vector<Preset>& presets, std::size_t at) const {
  constexpr std::array bounds{"below", "above", "below_share", "above_share", "within", "within_share", "diverges"};
  constexpr std::array known{"below",  "above",        "below_share", "above_share",
                             "within", "within_share", "diverges",    "order"};
  const auto expect = inner("expect", known);
  if (!expect) return;
  expect->check_names(presets, bounds);
  for (Preset& p : presets) {
    Expectation& e = p.measures[at].expect;
    const auto take = [&](const char* key, std::optional<double>& number, bool positive) {
      number = expect->number(key, p);
      if (number && !(std::isfinite(*number) && (!positive || *number > 0)))
        expect->fail(fmt::format("{}: a {}number expected, got {}", key, positive ? "positive " : "", *number),
                     expect->find(key, p)->source().begin.line);
    };
    take("below", e.below, false);
    take("above", e.above, false);
    take("below_share", e.below_share, true);
    take("above_share", e.above_share, true);
    take("within", e.within, true);
    take("within_share", e.within_share, true);
    if (const toml::node* node = expect->find("diverges", p)) {
      const auto value = node->value_exact<bool>();
      if (!value) expect->fail("diverges: true or false expected", node->source().begin.line);
      e.diverges = *value;
    }
    if (!p.measures[at].value) e.within.reset(), e.within_share.reset();  // words, such as "out of memory"
  }
  for (const char* key : {"within", "within_share"}) {
    const toml::table* within = expect->table_of(key);
    if (!within) continue;
    for (const auto& [name, node] : *within)
      if (std::none_of(presets.begin(), presets.end(), [&, n = std::string(name.str())](const Preset& p) {
            return means(n, p) && p.measures[at].value;
          }))
        expect->fail(fmt::format("{}.{}: no number is reported there", key, name.str()), name.source().begin.line);
  }
  expect->take_orders(presets, at);
  for (const Preset& p : presets) {
    Expectation others = p.measures[at].expect;
    if (std::exchange(others.diverges, false) && !others.empty())
      expect->fail(fmt::format("diverges: a run that diverges has no number; leave out the others that {} is judged by",
                               p.label));
  }
}

void PresetSection::take_orders(std::vector<Preset>& presets, std::size_t at) const {
  const toml::array* orders = table_->get_as<toml::array>("order");
  if (!orders && table_->contains("order")) fail("order = [\"A < B\", ...] expected");
  if (!orders) return;
  const auto labelled = [&](const std::string& label) {
    return std::find_if(presets.begin(), presets.end(), [&](const Preset& p) { return p.label == label; });
  };
  for (const toml::node& node : *orders) {
    const std::size_t line = node.source().begin.line;
    const auto text = node.value_exact<std::string>();
    if (!text) fail("order = [\"A < B\", ...] expected", line);
    std::vector<Order> pairs;
    try {
      pairs = parse_order(*text);
    } catch (const Error& e) {
      fail(fmt::format("order \"{}\": {}", one_line(*text), e.what()), line);
    }
    std::vector<std::string> names{pairs.front().left.label};
    for (const Order& o : pairs) names.push_back(o.right.label);
    const bool rows =
        std::all_of(names.begin(), names.end(), [&](const std::string& n) { return labelled(n) != presets.end(); });
    for (const std::string& name : names)
      if (!rows && std::none_of(presets.begin(), presets.end(), [&](const Preset& p) { return p.model == name; }))
        fail(fmt::format("order \"{}\": there is no such preset or model as {}", one_line(*text), one_line(name)),
             line);
    if (rows) {
      for (const Order& o : pairs) labelled(o.left.label)->measures[at].expect.orders.push_back(o);
      continue;
    }
    for (Preset& p : presets)  // names of models: in each case that has both
      for (Order o : pairs) {
        if (o.left.label != p.model) continue;
        const auto other = std::find_if(presets.begin(), presets.end(), [&](const Preset& q) {
          return q.in_case == p.in_case && q.model == o.right.label;
        });
        if (other == presets.end()) continue;
        o.left.label = p.label;
        o.right.label = other->label;
        p.measures[at].expect.orders.push_back(o);
      }
  }
}

void PresetSection::check_names(const std::vector<Preset>& presets, std::span<const char* const> keys) const {
  for (const char* key : keys) {
    const toml::table* values = table_of(key);
    if (!values) continue;
    for (const auto& [name, node] : *values) {
      const std::string n(name.str());
      if (std::none_of(presets.begin(), presets.end(), [&](const Preset& p) { return means(n, p); }))
        fail(fmt::format("{}.{}: there is no such preset, model or case", key, n), name.source().begin.line);
      const toml::table* models = node.as_table();
      if (!models) continue;
      for (const auto& [model, value] : *models)
        if (std::none_of(presets.begin(), presets.end(),
                         [&, m = std::string(model.str())](const Preset& p) { return p.in_case == n && p.model == m; }))
          fail(fmt::format("{}.{}.{}: there is no such model in this case", key, n, model.str()),
               model.source().begin.line);
    }
  }
}

const toml::table* PresetSection::table_of(const std::string& key) const {
  const toml::table* table = table_->get_as<toml::table>(key);
  if (!table && table_->contains(key)) fail(key + " must be a table");
  return table;
}

std::optional<PresetSection> PresetSection::inner(const std::string& key, std::span<const char* const> known) const {
  const toml::table* table = table_of(key);
  if (!table) return std::nullopt;
  return PresetSection(file_, name_ + "." + key, *table, known);
}

PresetSection PresetSection::inner(const std::string& key, const std::string& name,
                                   std::span<const char* const> known) const {
  return {file_, fmt::format("{}.{}.{}", name_, key, name), *table_of(key)->get_as<toml::table>(name), known};
}

}  // namespace reel
