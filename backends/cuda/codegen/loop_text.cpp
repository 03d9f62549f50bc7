#include "backends/cuda/codegen/loop_text.h"

#include <algorithm>

#include "backends/cuda/codegen/product_groups.h"
#include "backends/shared/run_text.h"
#include "engine/core/error.h"

namespace reel::cuda {

LoopText::LoopText(const LoopValues& loop, const LoopLayout& layout) : loop_(loop), layout_(layout) {}

std::string LoopText::memory(const LoopMemory& place, DType d, bool reads, const std::string& i) {
  const auto found = std::find(memory_.begin(), memory_.end(), place);
  const std::int64_t k = found - memory_.begin();
  if (found == memory_.end()) memory_.push_back(place);
  return fmt::format("at<{}{}>(a.place[{}], {})", reads ? "const " : "", type_name(d), k,
                     place.walk.double_buffered ? fmt::format("({}) & 1", i) : i);
}

std::optional<LoopMemory> LoopText::scratch(int v) const {
  if (storage(v).scratch_at < 0) return std::nullopt;
  const std::int64_t bytes = loop_.rows * value(v).width * static_cast<std::int64_t>(size_of(value(v).dtype));
  return LoopMemory{{-1, 0, bytes, true}, storage(v).scratch_at};
}

std::string LoopText::each_lane(std::int64_t columns, const std::string& text, const char* indent) const {
  const std::int64_t width = layout_.slice(columns), all = layout_.rows * width, lanes = layout_.lanes(columns);
  std::string out = fmt::format("{0}{{\n#pragma unroll\n{0}for (int k = 0; k < {1}; ++k) {{\n", indent, lanes);
  out += fmt::format("{}  const int e = static_cast<int>(threadIdx.x) + k * {};\n", indent, layout_.threads);
  if (all != lanes * layout_.threads) out += fmt::format("{}  if (e >= {}) continue;\n", indent, all);
  out += fmt::format("{0}  const int mine = e / {1}, near = e % {1}, row = group * {2} + mine, column = {3}near;\n",
                     indent, width, layout_.rows, layout_.slices > 1 ? fmt::format("slice * {} + ", width) : "");
  if (loop_.rows % layout_.rows != 0) out += fmt::format("{}  if (row >= {}) continue;\n", indent, loop_.rows);
  if (columns != width * layout_.slices) out += fmt::format("{}  if (column >= {}) continue;\n", indent, columns);
  return out + text + indent + "}}\n";
}

std::string LoopText::every_lane(std::int64_t columns, const std::string& text) const {
  const std::int64_t width = layout_.slice(columns), all = layout_.rows * width, lanes = layout_.lanes(columns);
  const auto at_most = [](bool beyond, std::int64_t limit, const std::string& x) {
    return beyond ? fmt::format("at_most({}, {})", x, limit - 1) : x;
  };
  std::string out = fmt::format("    {{\n#pragma unroll\n    for (int k = 0; k < {}; ++k) {{\n", lanes);
  out += fmt::format("      const int e = {};\n",
                     at_most(all != lanes * layout_.threads, all,
                             fmt::format("static_cast<int>(threadIdx.x) + k * {}", layout_.threads)));
  out += fmt::format("      const int mine = e / {0}, near = e % {0};\n", width);
  out +=
      fmt::format("      const int row = {}, column = {};\n",
                  at_most(loop_.rows % layout_.rows != 0, loop_.rows, fmt::format("group * {} + mine", layout_.rows)),
                  at_most(columns != width * layout_.slices, columns,
                          layout_.slices > 1 ? fmt::format("slice * {} + near", width) : "near"));
  return out + text + "    }}\n";
}

std::string LoopText::place(const std::vector<Axis>& axes, const std::string& number) {
  std::string out;
  std::int64_t inner = 1;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    if (axis->stride != 0) {
      std::string digit = inner == 1 ? number : fmt::format("{} / {}", number, inner);
      if (axis + 1 != axes.rend()) digit += fmt::format(" % {}", axis->extent);
      const std::string part = axis->stride == 1 ? digit : fmt::format("{} * {}", digit, axis->stride);
      out = out.empty() ? part : fmt::format("{} + {}", part, out);
    }
    inner *= axis->extent;
  }
  return out;
}

std::string LoopText::in_shared(int v, bool now, const std::string& mine, const std::string& column) const {
  const ValueStorage& r = storage(v);
  const std::string version =
      r.versions == 1 ? "" : fmt::format("({} & 1) * {} + ", now ? "(i + 1)" : "i", layout_.rows_in_shared * r.pitch);
  return fmt::format("f{}[{}{} * {} + {}]", v, version, mine, r.pitch, column);
}

std::string LoopText::in_shared(const Source& s, const std::string& mine, const std::string& place) const {
  const std::string first = std::to_string(s.offset);
  const std::string column = place.empty() ? first : s.offset == 0 ? place : first + " + " + place;
  return in_shared(s.value, !s.before, mine, column);
}

std::string LoopText::in_tile(int v, const std::string& plane, const std::string& mine, const std::string& near) const {
  return fmt::format("t{}[({} * {} + {}) * {} + {}]", v, plane, layout_.rows_in_shared, mine,
                     layout_.slice(value(v).width), near);
}

std::string LoopText::weights_type(const ProductGroup& g, const char* type) {
  const std::string sizes = fmt::format("<{}, {}, {}", type, g.columns, g.vectors);
  if (g.tensor_products > 0) return fmt::format("TensorWeights{}, {}>", sizes, g.tensor_products);
  return fmt::format("{}Weights{}>", g.weights_at < 0 ? "" : "Shared", sizes);
}

std::string LoopText::column_of_block(const ProductGroup& g) {
  const int warps = g.warps_along * g.factors;
  return warps == product_warps ? "c" : fmt::format("warp / {} * {} + c", warps, g.columns);
}

std::string LoopText::tile_sum(int v) const {
  std::string out;
  for (int p = 0; p < storage(v).planes; ++p)
    out += (p > 0 ? " + " : "") + in_tile(v, std::to_string(p), "mine", "near");
  return storage(v).planes > 1 ? "(" + out + ")" : out;
}

std::string LoopText::store(int v, const Access& to, const std::string& x, const char* indent) {
  const Operand& walk = value(v).walk;
  const bool others = storage(v).shared && layout_.slices > 1;  // other blocks read it in memory
  const auto put = [&](const LoopMemory& place) {
    return fmt::format("{}[row * {} + column] = {};\n", memory(place, to.dtype, false, "i"), value(v).width, x);
  };
  std::string out;
  if (const auto place = scratch(v)) out += indent + put(*place);
  if (is_temporary(v)) return out;
  const std::string line = put({to.walk});
  if (is_slab(walk) || (others && walk.double_buffered)) return out + indent + line;
  if (call(value(v).writers[0]).kind == StepCall::Kind::product) return out;  // stored at the end
  return out + fmt::format("{}if (i + {} >= a.steps) {}", indent, walk.double_buffered ? 2 : 1, line);
}

}  // namespace reel::cuda
