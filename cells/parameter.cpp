#include "cells/parameter.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "engine/core/error.h"

namespace reel {

namespace {
/// What tables, files and pages can have, such as "W_1" and "shift.W".
bool is_parameter_name(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return c > ' ' && c != 0x7f && std::string_view("/=,\"").find(static_cast<char>(c)) == std::string_view::npos;
  });
}
}  // namespace

void append(std::vector<Parameter>& parameters, Parameter parameter) {
  const Tensor& value = parameter.value;
  if (!is_parameter_name(parameter.name))
    throw Error("parameter", fmt::format("\"{}\": a name has one character or more, no spaces, and none of / = , \"",
                                         parameter.name));
  if (!value.defined()) throw Error("parameter", fmt::format("\"{}\" has no tensor", parameter.name));
  if (parameter.group.find_first_of("=,") != std::string::npos)  // --group-lr GROUP=RATE,...
    throw Error("parameter", fmt::format("\"{}\" is in the group \"{}\": the name of a group has no = and no comma",
                                         parameter.name, parameter.group));
  if (parameter.trained && !is_differentiable(value.dtype()))
    throw Error("parameter", fmt::format("\"{}\" is {}, which has no gradient. Hint: fixed() takes what is not trained",
                                         parameter.name, value.spec().str()));
  for (const Parameter& other : parameters) {
    if (other.name == parameter.name)
      throw Error("parameter", fmt::format("two parameters are called \"{}\"", parameter.name));
    if (other.value.id() == value.id())
      throw Error("parameter", fmt::format("\"{}\" and \"{}\" are one tensor", other.name, parameter.name));
  }
  parameters.push_back(std::move(parameter));
}

}  // namespace reel
