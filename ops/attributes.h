// The attributes of ops by name, for code that translates an op instead of running it (tasks/to_onnx). An op's file
// names those that do not follow from the shapes of its arguments and result:
//
//   REEL_ATTRIBUTES(Slice, {"axis", attribute(op.axis)}, {"first", attribute(op.first)}, {"last", attribute(op.last)})
//
// Functors of elementwise ops are read as they are, from their headers.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "engine/autodiff/op.h"

namespace reel {

/// Each attribute is a number or a list of them.
using Attributes = std::map<std::string, std::vector<double>>;

/// The attributes that an op's file names; none for other ops.
Attributes attributes_of(const Op& op, const Attrs& attrs);

/// Is it an op of the registry? Others may have the name of one.
bool is_registered(const Op& op);

/// Called by REEL_ATTRIBUTES.
bool register_attributes(const Op& op, Attributes (*read)(const Attrs&));

/// The value of an attribute.
template <class... N>
std::vector<double> attribute(N... n) {
  return {static_cast<double>(n)...};
}

/// Names the attributes of an op, which is called `op` there. Use it once per op, in its .cpp file.
#define REEL_ATTRIBUTES(O, ...)                                                        \
  [[maybe_unused]] static const bool REEL_OP_CONCAT(attributes_of_, O) =               \
      ::reel::register_attributes(::reel::op_of<O>(), [](const ::reel::Attrs& attrs) { \
        const O& op = attrs.as<O>();                                                   \
        return ::reel::Attributes{__VA_ARGS__};                                        \
      });

}  // namespace reel
