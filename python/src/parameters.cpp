#include "python/src/parameters.h"

#include <algorithm>

namespace reel::python {

namespace {

std::string text_of(nb::handle value) {
  if (PyBool_Check(value.ptr())) return nb::cast<bool>(value) ? "on" : "off";
  return nb::cast<std::string>(nb::str(value));
}

/// A weakref.WeakValueDictionary of owners by the ids of their parameters.
nb::object owners() {
  static const nb::object& all = *new nb::object(nb::module_::import_("weakref").attr("WeakValueDictionary")());
  return all;
}

/// ". Hint: its settings are width, depth"
std::string known(const CellType& type) {
  std::string text;
  for (const Setting& s : type.settings) text += (text.empty() ? ". Hint: its settings are " : ", ") + s.name;
  return text;
}

std::string names_of(const std::vector<Parameter>& parameters) {
  std::string text;
  for (const Parameter& p : parameters) text += (text.empty() ? "" : ", ") + p.name;
  return text;
}

}  // namespace

const CellType& known_cell(const std::string& name) {
  try {
    return cell_type(name);
  } catch (const SettingError& e) {
    if (!e.hint.setting.empty()) throw;
    throw SettingError(e.setting, e.rule + ". Hint: reel.load_plugin(FILE.so) loads cells of other projects");
  }
}

std::map<std::string, std::string> settings_of(const CellType& type, const nb::dict& given) {
  std::map<std::string, std::string> settings;
  for (const auto [key, value] : given) {
    auto setting = nb::cast<std::string>(key);
    if (setting.starts_with(type.name + ".")) setting.erase(0, type.name.size() + 1);
    const auto same = [&](const Setting& s) { return s.name == setting; };
    if (std::none_of(type.settings.begin(), type.settings.end(), same))
      throw SettingError(type.name + "." + setting,
                         fmt::format("the cell {} has no such setting{}", type.name, known(type)));
    settings[setting] = text_of(value);
  }
  return settings;
}

void check_lengths(const std::string& subject, const Tensor& lengths, std::int64_t steps, std::int64_t batch) {
  if (lengths.dtype() != DType::i32 || lengths.rank() != 1 || lengths.dim(0) != batch)
    fail(subject.c_str(), here(), "lengths must be i32 [B] with B = {}, got {}", batch, lengths.spec().str());
  if (!lengths.concrete()) return;
  const auto* const n = lengths.data_as<std::int32_t>();
  for (std::int64_t b = 0; b < batch; ++b) {
    if (n[b] < 0 || n[b] > steps)
      fail(subject.c_str(), here(), "lengths are 0 to the {} steps of the input, got {} for sequence {}", steps, n[b],
           b);
  }
}

nb::dict by_name(const std::vector<Parameter>& parameters, bool trained) {
  nb::dict out;
  for (const Parameter& p : parameters) {
    if (p.trained == trained) out[nb::cast(p.name)] = p.value;
  }
  return out;
}

nb::dict handed_out(nb::handle owner, const std::vector<Parameter>& parameters) {
  if (!parameters.empty() && owner_of(parameters[0].value).is_none()) {
    for (const Parameter& p : parameters) owners()[nb::cast(p.value.id())] = owner;
  }
  return by_name(parameters, true);
}

nb::object owner_of(const Tensor& x) { return owners().attr("get")(x.id()); }

Tensors with_values(const std::string& subject, const std::vector<Parameter>& own, const Values& values,
                    const Tensors& in, const Function& f, const Loc& where) {
  std::map<std::uint64_t, Tensor> by_id;
  for (const auto& [key, value] : values) {
    const auto found = std::find_if(own.begin(), own.end(), [&](const Parameter& p) { return p.name == key; });
    if (found == own.end())
      fail(subject.c_str(), where, "no parameter is called \"{}\". Hint: they are {}", key, names_of(own));
    if (!(found->value.spec() == value.spec()))
      fail(subject.c_str(), where, "parameter {} is {}, got {}", key, found->value.spec().str(), value.spec().str());
    by_id[found->value.id()] = value;
  }
  if (values.empty()) return f(in);
  std::vector<Spec> specs;
  for (const Tensor& t : in) specs.push_back(t.spec());
  Traced traced = trace(specs, f);
  for (Tensor& c : traced.consts) {
    if (const auto found = by_id.find(c.id()); found != by_id.end()) c = found->second;
  }
  return eval(traced.program, in, traced.consts);
}

}  // namespace reel::python
