// table.json: a TableSpec as a file.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "tasks/data/data_error.h"
#include "tasks/data/table_spec.h"
#include "tasks/io/json_fault.h"

namespace reel {

namespace {

using Json = nlohmann::ordered_json;
constexpr std::int64_t version = 1;
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 28;

Json columns_json(const std::vector<ScaledColumn>& columns) {
  Json all = Json::array();
  for (const ScaledColumn& c : columns) all.push_back({{"name", c.name}, {"mean", c.mean}, {"deviation", c.deviation}});
  return all;
}

/// Checked access to the fields of an object.
class Fields {
 public:
  Fields(const std::string& path, const Json& json, std::string within = "")
      : path_(path), json_(json), within_(std::move(within)) {
    if (!json.is_object()) fail(within_.empty() ? "the file" : within_, "an object is expected");
  }
  [[noreturn]] void fail(const std::string& name, const std::string& what) const {
    throw FileError(fmt::format("{}: {}: {}", path_, name, what));
  }
  std::string full(const std::string& name) const { return within_.empty() ? name : within_ + "." + name; }

  const Json& at(const std::string& name) const {
    const auto found = json_.find(name);
    if (found == json_.end()) fail(full(name), "is missing");
    return *found;
  }
  std::string text(const std::string& name) const {
    if (!at(name).is_string()) fail(full(name), "text is expected");
    return at(name).get<std::string>();
  }
  std::int64_t whole(const std::string& name) const {
    const Json& value = at(name);
    if (!value.is_number_integer() || (value.is_number_unsigned() && value.get<std::uint64_t>() >> 63) ||
        value.get<std::int64_t>() < 0)
      fail(full(name), "an integer of 0 or more is expected");
    return value.get<std::int64_t>();
  }
  double number(const std::string& name) const {
    if (!at(name).is_number() || !std::isfinite(at(name).get<double>()))
      fail(full(name), "a finite number is expected");
    return at(name).get<double>();
  }
  std::string one_of(const std::string& name, const std::vector<std::string>& choices) const {
    std::string value = text(name), list;
    for (const std::string& choice : choices) {
      if (value == choice) return value;
      list += (list.empty() ? "" : ", ") + choice;
    }
    fail(full(name), fmt::format("one of {} is expected, got \"{}\"", list, value));
  }
  const Json& list(const std::string& name) const {
    if (!at(name).is_array()) fail(full(name), "a list is expected");
    return at(name);
  }
  std::vector<ScaledColumn> columns(const std::string& name) const {
    std::vector<ScaledColumn> all;
    std::set<std::string> before;
    for (const Json& entry : list(name)) {
      const Fields column(path_, entry, fmt::format("{}[{}]", name, all.size()));
      all.push_back({column.text("name"), column.number("mean"), column.number("deviation")});
      if (!(all.back().deviation > 0)) fail(column.full("deviation"), "a number above 0 is expected");
      if (!before.insert(all.back().name).second) fail(column.full("name"), "is there twice");
    }
    if (all.empty()) fail(full(name), "one or more columns are expected");
    return all;
  }

 private:
  const std::string& path_;
  const Json& json_;
  std::string within_;
};

}  // namespace

std::string TableSpec::json() const {
  const Json json{{"format", "reel.table"},
                  {"version", version},
                  {"inputs", columns_json(inputs)},
                  {"targets", columns_json(targets)},
                  {"predict", classifies() ? "class" : "value"},
                  {"classes", classes},
                  {"at", each ? "each" : "last"},
                  {"group", group},
                  {"time", time},
                  {"window", window},
                  {"horizon", horizon},
                  {"missing", missing},
                  {"data", {{"bytes", data_bytes}, {"crc32", data_crc32}}}};
  return json.dump(2) + "\n";
}

TableSpec TableSpec::parse(const std::string& path, std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded())
    throw FileError(fmt::format("{}: this is not JSON: {}. Hint: put the run's own file back", path, json_fault(text)));
  const Fields all(path, json);
  all.one_of("format", {"reel.table"});
  if (all.whole("version") != version)
    all.fail("version", fmt::format("{} is expected, as this Reel writes it, got {}", version, all.whole("version")));
  TableSpec spec{.inputs = all.columns("inputs"), .targets = all.columns("targets")};
  const bool classifies = all.one_of("predict", {"class", "value"}) == "class";
  std::set<std::string> before;
  for (const Json& name : all.list("classes")) {
    if (!name.is_string()) all.fail("classes", "names are expected");
    spec.classes.push_back(name.get<std::string>());
    if (!before.insert(spec.classes.back()).second)
      all.fail("classes", fmt::format("\"{}\" is there twice", spec.classes.back()));
  }
  if (classifies == spec.classes.empty())
    all.fail("classes", classifies ? "one or more are expected" : "none are expected with values");
  if (classifies && spec.targets.size() != 1) all.fail("targets", "one column is expected with classes");
  spec.each = all.one_of("at", {"last", "each"}) == "each";
  spec.group = all.text("group"), spec.time = all.text("time");
  spec.window = all.whole("window"), spec.horizon = all.whole("horizon");
  spec.missing = all.one_of("missing", {"error", "previous", "zero"});
  const Fields data(path, all.at("data"), "data");
  spec.data_bytes = data.whole("bytes"), spec.data_crc32 = data.text("crc32");
  return spec;
}

TableSpec TableSpec::load(const std::string& path) {
  std::string text;
  try {
    text = read_file(path, most_bytes);
  } catch (const OutOfMemory&) {
    throw;
  } catch (const Error& e) {
    throw FileError(e.what());
  }
  return parse(path, text);
}

void TableSpec::save(const std::string& path) const { write_atomically(path, json()); }

}  // namespace reel
