// Ops that move elements.
#include "ops/rotation.h"
#include "tasks/to_onnx/rules.h"

namespace reel::onnx_rules {

Name gathered(OnnxCall& c, const Name& x, std::int64_t axis, const std::function<std::int64_t(std::int64_t)>& from) {
  const std::int64_t n = own_extent(c, axis);
  Dims index;
  for (std::int64_t j = 0; j < n; ++j) index.push_back(from(j));
  return c.graph.node("Gather", {x, c.graph.integers(index)}, {{"axis", axis}});
}
Name exchanged(OnnxCall& c, const Name& x) {
  const std::int64_t last = c.specs[0].shape.rank() - 1, n = c.specs[0].shape[static_cast<int>(last)];
  const RotationLayer layer{c.integer("offset"), c.integer("distance")};
  return gathered(c, x, last, [&](std::int64_t j) { return layer.partner(j, n); });
}
Name sliced(OnnxCall& c, const Name& x, std::int64_t axis) {
  return c.graph.node("Slice", {x, c.graph.integers({c.integer("first")}), c.graph.integers({c.integer("last")}),
                                c.graph.integers({axis})});
}
Name padded(OnnxCall& c, const Name& x) {
  Dims pads(2 * static_cast<std::size_t>(c.result.shape.rank()));
  const auto axis = static_cast<std::size_t>(c.integer("axis"));
  pads[axis] = c.integer("before");
  pads[pads.size() / 2 + axis] = c.integer("after");
  return c.graph.node("Pad", {x, c.graph.integers(pads)});
}
Name reshaped(OnnxCall& c, const Name& x) {
  const auto& [here, there] = c.shape;
  Dims dims(here.begin(), here.end());
  int open = 0;
  for (int i = 0; i < here.rank(); ++i) {
    if (here[i] == there[i]) continue;
    dims[static_cast<std::size_t>(i)] = -1;
    ++open;
  }
  if (open > 1) c.refuse("makes a shape in which two extents depend on the batch");
  return c.graph.node("Reshape", {x, c.graph.integers(dims)});
}
namespace {
/// The result's shape as a tensor.
Name shape_of_result(OnnxCall& c) {
  const auto& [here, there] = c.shape;
  std::vector<Name> pieces;
  Dims known;
  const auto finish = [&] {
    if (!known.empty()) pieces.push_back(c.graph.integers(known));
    known.clear();
  };
  for (int i = 0; i < here.rank(); ++i) {
    if (here[i] == there[i]) {
      known.push_back(here[i]);
      continue;
    }
    if (i > 0) c.refuse("stretches to a shape whose batch is not the first axis");
    const std::int64_t times = here[i] / OnnxShape::batch_here;
    if (here[i] != times * OnnxShape::batch_here || there[i] != times * OnnxShape::batch_there)
      c.refuse("stretches to a shape whose first extent is no multiple of the batch");
    finish();
    pieces.push_back(times == 1 ? c.batch : c.graph.node("Mul", {c.batch, c.graph.integers({times})}));
  }
  finish();
  return pieces.size() == 1 ? pieces[0] : c.graph.node("Concat", pieces, {{"axis", 0}});
}
}  // namespace
Name expanded(OnnxCall& c, const Name& x) { return c.graph.node("Expand", {x, shape_of_result(c)}); }
OnnxValue full(OnnxCall& c) {
  const std::vector<double>& value = c.attributes.at("value");
  const DType dtype = real_of(c.result.dtype);
  const auto part = [&](double number) {
    return c.graph.node("Expand", {c.graph.scalar(number, dtype), shape_of_result(c)});
  };
  return {part(value[0]), value[1] == 0 ? "" : part(value[1])};
}
OnnxValue joined(OnnxCall& c) {
  std::vector<Name> re, im;
  for (const OnnxValue& part : c.in) {
    re.push_back(part.re);
    if (is_complex(c.result.dtype)) im.push_back(imaginary(c.graph, part, real_of(c.result.dtype)));
  }
  const OnnxAttributes axis{{"axis", c.integer("axis")}};
  return {c.graph.node("Concat", re, axis), im.empty() ? "" : c.graph.node("Concat", im, axis)};
}

}  // namespace reel::onnx_rules
