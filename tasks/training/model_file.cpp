#include "tasks/training/model_file.h"

#include <nlohmann/json.hpp>
#include <set>

#include "tasks/io/files.h"
#include "tasks/io/json_fault.h"

namespace reel {

namespace {

using Json = nlohmann::ordered_json;

/// Takes the fields of a JSON object one by one; every rule that one breaks is an Error with the file's name.
class Fields {
 public:
  Fields(const std::string& path, const Json& json) : path_(path), json_(json) {
    if (!json.is_object()) wrong("is not a JSON object");
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
  double real(const char* name, double low, double high) {
    const Json& value = field(name);
    if (!value.is_number() || !(value.get<double>() >= low && value.get<double>() <= high))
      wrong("{} is {}, not a number from {} to {}", name, shown(value), low, high);
    return value.get<double>();
  }
  /// The field, or null if the file has none.
  const Json* optional(const char* name) {
    taken_.insert(name);
    const auto found = json_.find(name);
    return found == json_.end() ? nullptr : &*found;
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
    const Json* found = optional(name);
    if (!found) wrong("has no field \"{}\"", name);
    return *found;
  }

  const std::string& path_;
  const Json& json_;
  std::set<std::string> taken_;
};

constexpr std::int64_t most_units = 1'000'000, most_layers = 1000;  // as the programs' options have them

LayerOptions read_layer(Fields& fields) {
  return {fields.text("cell"), fields.integer("hidden", 1, most_units), fields.texts("settings")};
}

}  // namespace

std::string model_config_text(const ModelConfig& c) {
  const auto settings = [](const std::map<std::string, std::string>& values) {
    Json out = Json::object();
    for (const auto& [name, value] : values) out[name] = value;
    return out;
  };
  Json json{{"task", c.task},
            {"vocabulary", c.shape.vocabulary},
            {"inputs", c.shape.inputs},
            {"outputs", c.shape.outputs},
            {"every_step", c.shape.every_step},
            {"bidirectional", c.options.bidirectional},
            {"layer_norm", c.options.layer_norm},
            {"residual", c.options.residual},
            {"input", c.options.input},
            {"embedding", c.options.embedding},
            {"dtype", name_of(c.dtype)}};
  // Older versions read what is of theirs: fields of newer ones are there only where they are used.
  if (c.options.zoneout > 0) json["zoneout"] = c.options.zoneout;
  if (c.options.stack.empty()) {
    json["cell"] = c.options.cell;
    json["hidden"] = c.options.hidden;
    json["layers"] = c.options.layers;
    json["settings"] = settings(c.options.settings);
  }
  if (!c.options.stack.empty()) json["stack"] = Json::array();
  for (const LayerOptions& layer : c.options.stack)
    json["stack"].push_back({{"cell", layer.cell}, {"hidden", layer.hidden}, {"settings", settings(layer.settings)}});
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

void save_model_config(const std::string& path, const ModelConfig& config) {
  write_atomically(path, model_config_text(config));
}

ModelConfig parse_model_config(const std::string& path, const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded())
    throw Error(path, fmt::format("is not JSON: {}. Hint: the program of its task with --resume writes the file again",
                                  json_fault(text)));
  Fields fields(path, json);
  ModelConfig c;
  c.task = fields.text("task");
  c.shape.vocabulary = fields.integer("vocabulary", 0, most_units);
  c.shape.inputs = fields.integer("inputs", 0, most_units);
  // Older versions also wrote the number of denoising's symbols without the delimiter as inputs.
  if (c.task == "denoising" && c.shape.inputs > 0 && c.shape.vocabulary == c.shape.inputs + 1) c.shape.inputs = 0;
  if ((c.shape.vocabulary == 0) == (c.shape.inputs == 0))
    fields.wrong("one of vocabulary and inputs is 1 or more, and the other is 0; got {} and {}", c.shape.vocabulary,
                 c.shape.inputs);
  c.shape.outputs = fields.integer("outputs", 1, most_units);
  c.shape.every_step = fields.boolean("every_step");
  if (const Json* stack = fields.optional("stack")) {
    if (!stack->is_array() || stack->empty() || stack->size() > most_layers)
      fields.wrong("stack is no list of 1 to {} layers", most_layers);
    for (const Json& one : *stack) {
      Fields layer(path, one);
      c.options.stack.push_back(read_layer(layer));
      layer.end();
    }
    c.options.layers = std::ssize(c.options.stack);
  }
  const LayerOptions first = c.options.stack.empty() ? read_layer(fields) : c.options.stack.front();
  c.options.cell = first.cell;
  c.options.hidden = first.hidden;
  c.options.settings = first.settings;
  if (c.options.stack.empty()) c.options.layers = fields.integer("layers", 1, most_layers);
  if (fields.optional("zoneout")) c.options.zoneout = fields.real("zoneout", 0, 0.999);
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
  fields.end();
  return c;
}

}  // namespace reel
