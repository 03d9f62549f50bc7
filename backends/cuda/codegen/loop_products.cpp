#include "backends/cuda/codegen/loop_products.h"

#include <algorithm>

#include "backends/shared/run_text.h"
#include "engine/core/error.h"

namespace reel::cuda {

namespace {

std::string factor_of_warp(const ProductGroup& g) { return fmt::format("warp / {} % {}", g.warps_along, g.factors); }

/// An expression that depends on the factor that a warp has.
template <class F>
std::string by_factor(const ProductGroup& g, F text) {
  const std::string first = text(0);
  std::string out = first;
  for (int f = 1; f < g.factors; ++f) {
    const std::string other = text(f);
    if (other != first) out = fmt::format("({} == {} ? {} : {})", factor_of_warp(g), f, other, out);
  }
  return out;
}

}  // namespace

/// All groups start to fetch rows of other blocks at once, and a group fetches its next rows as soon as it has
/// multiplied: copies and products overlap.
void ProductText::products(const LoopStage& stage) {
  uses_warps_ = true;
  const bool in_parts = layout_.chunk < layout_.rows;
  const auto groups = std::ssize(stage.groups);
  std::string work;
  for (std::ptrdiff_t k = 0; k < groups; ++k) {
    const ProductGroup& g = stage.groups[static_cast<std::size_t>(k)];
    weights(g);
    if (fetches()) {
      step_ +=
          fmt::format("    const auto fetch{0} = [&](int begin) {{\n{1}    }};\n    fetch{0}(0);\n    end_copies();\n",
                      g.first(), fetches_of(g));
      work +=
          fmt::format("      wait_for_copies<{}>();\n      __syncthreads();\n", in_parts ? groups - 1 : groups - 1 - k);
    }
    work += multiplication(g);
    if (fetches() && in_parts)
      work += fmt::format(
          "      __syncthreads();\n      if (begin + {0} < {1}) fetch{2}(begin + {0});\n      end_copies();\n",
          layout_.chunk, layout_.rows, g.first());
  }
  if (fetches() && in_parts)
    step_ += fmt::format("    for (int begin = 0; begin < {}; begin += {}) {{\n", layout_.rows, layout_.chunk);
  else
    step_ += fetches() ? "    {\n      constexpr int begin = 0;\n" : "    {\n";
  step_ += work + "    }\n";
}

std::string ProductText::multiplication(const ProductGroup& g) {
  const char* const t = type_name(call(g.first()).operands[0].dtype);
  std::string from = fmt::format("x{}", g.first()), pitch, out;
  if (fetches()) {
    out = fmt::format("      const {0}* const {1} = reinterpret_cast<const {0}*>(shared + {2}) + {3};\n", t, from,
                      g.arena_at, by_factor(g, [&](int f) { return std::to_string(f * layout_.chunk * g.pitch); }));
    pitch = std::to_string(g.pitch);
  } else {
    out = fmt::format("      const {}* const {} = {};\n", t, from, by_factor(g, [&](int f) {
                        const Source& s = loop_.source(g.first(f), 0);
                        return fmt::format("&{}", in_shared(s.value, !s.before, "0", "0"));
                      }));
    pitch = by_factor(g, [&](int f) { return std::to_string(storage(loop_.source(g.first(f), 0).value).pitch); });
  }
  out += fmt::format("      multiply<{}>(w{}, {}, {}, {}, lane, warp % {}, [&](int r, int c, {} sum) {{\n", g.rows,
                     g.first(), from, pitch, layout_.chunk, g.warps_along, t);
  return out + sums(g) + "      });\n";
}

/// Brings rows of a group's factors, which other blocks computed, to shared memory.
std::string ProductText::fetches_of(const ProductGroup& g) {
  std::string out;
  for (int f = 0; f < g.factors; ++f) {
    const StepCall& product = call(g.first(f));
    const Access& x = product.operands[0];
    const Source& s = loop_.source(g.first(f), 0);
    const auto spare = scratch(s.value);
    const std::int64_t row = spare ? value(s.value).width : x.row, bytes = static_cast<std::int64_t>(size_of(x.dtype));
    const bool aligned = row * bytes % 16 == 0 && row == product.sums &&
                         (spare || (aligned_[static_cast<std::size_t>(x.walk.buffer)] && x.walk.offset % 16 == 0 &&
                                    x.walk.stride % 16 == 0));
    out += fmt::format(
        "      fetch<{0}, {1}, {12}>(reinterpret_cast<{0}*>(shared + {2}) + {3}, {4}, {5}, {6} + (group * {7} + begin) "
        "* "
        "{8}, {9} - group * {7} - begin, {10}, threadIdx.x, {11});\n",
        type_name(x.dtype), aligned, g.arena_at, f * layout_.chunk * g.pitch, std::min(layout_.chunk, layout_.rows),
        g.pitch, memory(spare ? *spare : LoopMemory{x.walk}, x.dtype, true, "i"), layout_.rows, row, loop_.rows,
        product.sums, layout_.threads, g.terms);
  }
  return out;
}

/// Code that uses the sum for row r and the warp's column c.
std::string ProductText::sums(const ProductGroup& g) {
  const std::int64_t width = layout_.slice(call(g.calls[0]).columns());
  std::string out = fmt::format("        const int all = {}, mine = {}r, near = all % {};\n", column_of_block(g),
                                fetches() ? "begin + " : "", width);
  out += fmt::format("        const int row = group * {} + mine, column = slice * {} + near;\n", layout_.rows, width);
  out += fmt::format("        if (mine >= {}) return;\n", layout_.rows);
  for (std::size_t q = 0; q < g.calls.size(); ++q) {
    const int v = loop_.source(g.calls[q], 2).value;
    const Access& to = call(g.calls[q]).operands[2];
    out += fmt::format("        if ({}) {{\n", is_column_of(g, q));
    out += fmt::format("          {} = sum;\n", in_tile(v, fmt::format("warp % {}", g.warps_along), "mine", "near"));
    std::string rest;
    if (storage(v).shared && !fetches())
      rest += fmt::format("            {} = sum;\n", in_shared(v, true, "mine", "column"));
    rest += store(v, to, "sum", "            ");
    if (!rest.empty())
      out +=
          fmt::format("          if (row < {} && column < {}) {{\n{}          }}\n", loop_.rows, value(v).width, rest);
    out += "        }\n";
  }
  return out;
}

/// Is a warp's column `all` one of the q-th call's?
std::string ProductText::is_column_of(const ProductGroup& g, std::size_t q) const {
  const std::int64_t width = layout_.slice(call(g.first()).columns());
  const std::string column = fmt::format("all / {} == {}", width, q % g.calls_per_factor());
  if (g.factors == 1) return column;
  return fmt::format("{} && {} == {}", column, factor_of_warp(g), q / g.calls_per_factor());
}

/// Loads a group's weights into the warp's registers or places in shared memory, once for all steps.
void ProductText::weights(const ProductGroup& g) {
  const StepCall& first = call(g.first());
  const std::int64_t width = layout_.slice(first.columns());
  const char* const t = type_name(first.operands[1].dtype);
  const std::string w = fmt::format("w{}", g.first());
  declared_ += fmt::format("  {} {}{};\n", weights_type(g, t), w,
                           g.weights_at < 0 ? "" : fmt::format("(shared + {}, threadIdx.x)", g.weights_at));
  start_ += fmt::format("  load_weights({}, lane, warp % {}, [&](int c, int s) -> {} {{\n", w, g.warps_along, t);
  start_ += fmt::format("    const int all = {}, column = slice * {} + all % {};\n", column_of_block(g), width, width);
  start_ += fmt::format("    if (column >= {} || s >= {}) return 0;\n", first.columns(), first.sums);
  for (std::size_t q = 0; q < g.calls.size(); ++q) {
    const Access& b = call(g.calls[q]).operands[1];
    start_ += fmt::format("    if ({}) return {}[{}];\n", is_column_of(g, q), memory(b.walk, b.dtype, true, "0"),
                          first.transposed ? fmt::format("column * {} + s", first.sums)
                                           : fmt::format("s * {} + column", first.columns()));
  }
  start_ += "    return 0;\n  });\n";
}

}  // namespace reel::cuda
