#include "tasks/training/model_file.h"

#include <nlohmann/json.hpp>
#include <set>

#include "tasks/io/files.h"

namespace reel {

namespace {

using Json = nlohmann::ordered_json;

/// Takes the fields of a JSON object one by one; every rule that one breaks is an Error with the file's name.
class Fields {
 public:
  Fields(const std::string& path, const Json& json) : path_(path), json_(json) {
    if (!json.is_object()) wrong("is no JSON object");
  }

  template <class... Args>
  [[noreturn]] void wrong(fmt::format_string<Args...> format, Args&&... args) const {
    throw Error(path_, fmt::format(format, std::forward<Args>(args)...));
  }

  std::int64_t integer(const char* name, std::int64_t low, std::int64_t high) {
    const Json& value = field(name);
    const bool fits = value.is_number_unsigned() ? value.get<std::uint64_t>() <= static_cast<std::uint64_t>(high)
                                                 : value.is_number_integer();
    if (!fits || value.get<std::int64_t>() < low || value.get<std::int64_t>() > high)
      wrong("{} is {}, not an integer from {} to {}", name, shown(value), low, high);
    return value.get<std::int64_t>();
  }
  bool boolean(const char* name) {
    const Json& value = field(name);
    if (!value.is_boolean()) wrong("{} is {}, not true or false", name, shown(value));
    return value.get<bool>();
  }
  std::string text(const char* name) {
    const Json& value = field(name);
    if (!value.is_string()) wrong("{} is {}, not a text", name, shown(value));
    return value.get<std::string>();
  }
  std::map<std::string, std::string> texts(const char* name) {
    const Json& all = field(name);
    if (!all.is_object()) wrong("{} is {}, not an object", name, shown(all));
    std::map<std::string, std::string> out;
    for (const auto& [key, value] : all.items()) {
      if (!value.is_string()) wrong("{}.{} is {}, not a text", name, key, shown(value));
      out[key] = value.get<std::string>();
    }
    return out;
  }
  /// Throws Error for a field that nobody took.
  void end() const {
    for (const auto& [key, value] : json_.items())
      if (!taken_.contains(key)) wrong("has a field \"{}\", which this version of Reel does not know", key);
  }

 private:
  static std::string shown(const Json& value) {
    std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
    if (text.size() > 40) text = text.substr(0, 40) + "...";
    return text;
  }
  const Json& field(const char* name) {
    taken_.insert(name);
    const auto found = json_.find(name);
    if (found == json_.end()) wrong("has no field \"{}\"", name);
    return *found;
  }

  const std::string& path_;
  const Json& json_;
  std::set<std::string> taken_;
};

constexpr std::int64_t most_units = 1'000'000, most_layers = 1000;  // as the programs' options have them

}  // namespace

std::string model_config_text(const ModelConfig& c) {
  Json settings = Json::object();
  for (const auto& [name, value] : c.options.settings) settings[name] = value;
  const Json json{{"task", c.task},
                  {"vocabulary", c.shape.vocabulary},
                  {"inputs", c.shape.inputs},
                  {"outputs", c.shape.outputs},
                  {"every_step", c.shape.every_step},
                  {"cell", c.options.cell},
                  {"hidden", c.options.hidden},
                  {"layers", c.options.layers},
                  {"bidirectional", c.options.bidirectional},
                  {"layer_norm", c.options.layer_norm},
                  {"residual", c.options.residual},
                  {"input", c.options.input},
                  {"embedding", c.options.embedding},
                  {"dtype", name_of(c.dtype)},
                  {"settings", settings}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

void save_model_config(const std::string& path, const ModelConfig& config) {
  write_atomically(path, model_config_text(config));
}

ModelConfig parse_model_config(const std::string& path, const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) throw Error(path, "is no JSON");
  Fields fields(path, json);
  ModelConfig c;
  c.task = fields.text("task");
  c.shape.vocabulary = fields.integer("vocabulary", 0, most_units);
  c.shape.inputs = fields.integer("inputs", 0, most_units);
  if ((c.shape.vocabulary == 0) == (c.shape.inputs == 0))
    fields.wrong("one of vocabulary and inputs is 1 or more, and the other is 0; got {} and {}", c.shape.vocabulary,
                 c.shape.inputs);
  c.shape.outputs = fields.integer("outputs", 1, most_units);
  c.shape.every_step = fields.boolean("every_step");
  c.options.cell = fields.text("cell");
  c.options.hidden = fields.integer("hidden", 1, most_units);
  c.options.layers = fields.integer("layers", 1, most_layers);
  c.options.bidirectional = fields.boolean("bidirectional");
  c.options.layer_norm = fields.boolean("layer_norm");
  c.options.residual = fields.boolean("residual");
  c.options.input = fields.text("input");
  if (c.options.input != "embedding" && c.options.input != "one-hot")
    fields.wrong("input is \"{}\", not embedding or one-hot", c.options.input);
  c.options.embedding = fields.integer("embedding", 0, most_units);
  const std::string dtype = fields.text("dtype");
  if (dtype != "f32" && dtype != "f64") fields.wrong("dtype is \"{}\", not f32 or f64", dtype);
  c.dtype = dtype == "f64" ? DType::f64 : DType::f32;
  c.options.settings = fields.texts("settings");
  fields.end();
  return c;
}

ModelConfig load_model_config(const std::string& path) { return parse_model_config(path, read_file(path, 1 << 20)); }

}  // namespace reel
