#include "backends/cuda/codegen/loop_reductions.h"

#include "backends/cuda/codegen/product_groups.h"
#include "backends/shared/lp_norm.h"
#include "backends/shared/run_text.h"
#include "engine/core/error.h"

namespace reel::cuda {

namespace {

using Kind = StepCall::Kind;
constexpr std::int64_t most_terms_held = 8;  // of a lane's, in registers, as in Share of device/reductions.h

std::int64_t count(const std::vector<Axis>& axes) {
  std::int64_t out = 1;
  for (const Axis& a : axes) out *= a.extent;
  return out;
}

}  // namespace

int ReductionText::lanes_for(std::int64_t terms, std::int64_t results) const {
  int lanes = 1;
  while (lanes < warp_lanes && lanes < terms && 2 * results * lanes <= layout_.threads) lanes *= 2;
  return lanes;
}

std::string ReductionText::put(int c, const std::string& x, const char* indent) {
  const Access& to = call(c).operands[1];
  const Source& s = loop_.source(static_cast<std::size_t>(c), 1);
  std::string out;
  if (storage(s.value).shared) out += fmt::format("{}{} = {};\n", indent, in_shared(s, "mine", "column"), x);
  return out + store(s.value, to, x, indent);
}

std::string ReductionText::factor(int c, std::int64_t terms, int lanes) {
  const Access& w = call(c).operands[2];
  const std::int64_t each = (terms + lanes - 1) / lanes;
  if (w.walk.stride != 0 || w.walk.double_buffered || each > most_terms_held)
    return memory(w.walk, w.dtype, true, "i") + "[j]";
  declared_ += fmt::format("  {} w{}[{}];\n", type_name(w.dtype), c, each);
  start_ += fmt::format("#pragma unroll\n  for (int k = 0; k < {}; ++k) {{\n", each);
  start_ += fmt::format("    const int j = threadIdx.x % {0} + k * {0};\n    if (j < {1}) w{2}[k] = {3}[j];\n  }}\n",
                        lanes, terms, c, memory(w.walk, w.dtype, true, "0"));
  return fmt::format("w{}[j / {}]", c, lanes);
}

void ReductionText::reduction(int c) {
  reduces_ = true;
  const StepCall& r = call(c);
  const Access& from = r.operands[0];
  const bool rows = r.kind == Kind::standardize;  // a whole row of results
  const std::int64_t terms = rows ? r.sums : count(from.terms), results = r.columns() / (rows ? terms : 1),
                     all = layout_.rows * results;
  const int lanes = rows ? static_cast<int>(warp_lanes) : lanes_for(terms, all);
  const char* const t = type_name(from.dtype);
  const std::string in = in_shared(loop_.source(static_cast<std::size_t>(c), 0), "mine",
                                   rows ? fmt::format("near * {}", terms) : place(from.axes, "near"));
  const std::string index = rows ? "j" : place(from.terms, "j");

  std::string there = fmt::format("e < {}", all);
  if (loop_.rows % layout_.rows != 0) there += fmt::format(" && row < {}", loop_.rows);
  step_ += fmt::format("    for (int first = 0; first < {}; first += {}) {{\n", all, layout_.threads / lanes);
  step_ += fmt::format("      const int part = threadIdx.x % {0}, e = first + threadIdx.x / {0}, mine = e / {1};\n",
                       lanes, results);
  step_ += fmt::format("      const int near = e % {}, row = group * {} + mine;\n", results, layout_.rows);
  step_ += fmt::format("      const bool there = {};\n", there);
  step_ += fmt::format("      const auto x = [&](int j) {{ return (&{})[{}]; }};\n", in, index.empty() ? "0" : index);
  const std::string sizes = fmt::format("{}, {}", lanes, terms),
                    share = fmt::format("there, part, {}", r.kind == Kind::dot ? "x_times_w" : "x");
  if (r.kind == Kind::dot) {
    const std::string at_j = factor(c, terms, lanes);
    step_ += fmt::format("      const auto x_times_w = [&](int j) {{ return x(j) * {}; }};\n",
                         r.conjugated ? fmt::format("conj({})", at_j) : at_j);
  }
  if (rows) {
    step_ += fmt::format("      standardize<{}, {}>({}, {}, [&](int j, {} y) {{\n", sizes, t, share,
                         number_text(r.parameter), t);
    step_ +=
        fmt::format("        const int column = near * {} + j;\n", terms) + put(c, "y", "        ") + "      });\n";
  } else {
    step_ += r.kind == Kind::norm ? fmt::format("      const {0} y = norm_of<{1}, {2}, {0}>({3}, {4});\n", t, sizes,
                                                whole_exponent(r.parameter), share, number_text(r.parameter))
                                  : fmt::format("      const {0} y = sum_of<{1}, {0}>({2});\n", t, sizes, share);
    step_ +=
        "      const int column = near;\n      if (there && part == 0) {\n" + put(c, "y", "        ") + "      }\n";
  }
  step_ += "    }\n";
}

}  // namespace reel::cuda
