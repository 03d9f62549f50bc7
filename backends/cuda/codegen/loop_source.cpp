#include "backends/cuda/codegen/loop_source.h"

#include <algorithm>

#include "backends/cuda/codegen/loop_text.h"
#include "backends/shared/run_text.h"
#include "engine/core/error.h"
#include "ops/functors/binary.h"

namespace reel::cuda {

namespace {

using Kind = StepCall::Kind;
constexpr int distance = 8;  // steps that memory is asked ahead, to have it in a cache

class Writer : LoopText {
 public:
  Writer(const LoopValues& loop, const LoopLayout& layout, const std::vector<char>& aligned, const std::string& name)
      : LoopText(loop, layout), aligned_(aligned), name_(name) {}

  LoopKernel write() {
    declare_values();
    for (std::size_t v = 0; v < loop_.values.size(); ++v) start_value(static_cast<int>(v));
    int barriers = 0;
    for (const LoopStage& stage : layout_.stages) {
      if (stage.wait == LoopStage::Wait::block) step_ += "    __syncthreads();\n";
      if (stage.wait == LoopStage::Wait::group)
        step_ += fmt::format("    wait_for_group(counter, {}, static_cast<unsigned>({} * i + {}));\n", layout_.slices,
                             layout_.barriers, ++barriers);
      stage.is_products() ? products(stage) : elements(stage.call);
    }
    for (std::size_t v = 0; v < loop_.values.size(); ++v) finish_product(static_cast<int>(v));
    return {{name_, text()}, memory_};
  }

 private:
  std::string text() const {
    std::string out = "#include \"backends/cuda/codegen/device/loop.h\"\n\n";
    out += fmt::format("struct {}_Arguments {{\n  long long steps;\n  unsigned* counters;\n", name_);
    if (!memory_.empty()) out += fmt::format("  reel::generated::Address place[{}];\n", memory_.size());
    if (numbers_ > 0) out += fmt::format("  double number[{}];\n", numbers_);
    out += fmt::format("}};\n\nextern \"C\" __global__ void __launch_bounds__({0}) {1}(const {1}_Arguments a) {{\n",
                       layout_.threads, name_);
    out += "  using namespace reel::generated;\n";
    out += fmt::format("  const int group = blockIdx.x / {0}, slice = blockIdx.x % {0};\n", layout_.slices);
    if (layout_.barriers > 0)
      out += fmt::format("  unsigned* const counter = a.counters + group * {};\n", counter_bytes / 4);
    if (layout_.bytes > 0) {
      out += "  char* const shared = shared_memory();\n";
      out +=
          fmt::format("  for (int k = threadIdx.x * 4; k < {}; k += {}) *reinterpret_cast<float*>(shared + k) = 0;\n",
                      layout_.bytes, 4 * layout_.threads);
      out += "  __syncthreads();\n";
    }
    if (uses_warps_) out += "  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;\n";
    out += declared_ + start_;
    if (layout_.bytes > 0) out += "  __syncthreads();\n";
    out += "  for (long long i = 0; i < a.steps; ++i) {\n" + step_ + "  }\n";
    if (!end_.empty()) out += "  __syncthreads();\n" + end_;
    return out + "}\n";
  }

  // ---- values ------------------------------------------------------------------------------------------------------

  void declare_values() {
    for (int v = 0; v < static_cast<int>(loop_.values.size()); ++v) {
      const ValueStorage& r = storage(v);
      const char* const t = type_name(value(v).dtype);
      if (r.in_register) declared_ += fmt::format("  {} r{}[{}];\n", t, v, layout_.lanes(value(v).width));
      if (r.shared && layout_.slices == 1)
        declared_ += fmt::format("  {0}* const f{1} = reinterpret_cast<{0}*>(shared + {2});\n", t, v, r.shared_at);
      if (r.tile)
        declared_ += fmt::format("  {0}* const t{1} = reinterpret_cast<{0}*>(shared + {2});\n", t, v, r.tile_at);
    }
  }

  /// Initializes a value that the first step reads from the step before.
  void start_value(int v) {
    if (!storage(v).before) return;
    Operand walk;
    for (std::size_t c = 0; c < loop_.calls.size(); ++c) {
      for (std::size_t k = 0; k < loop_.sources[c].size(); ++k) {
        const Source& s = loop_.source(c, k);
        if (s.value != v || !s.before) continue;
        walk = loop_.calls[c].operands[k].walk;
        walk.offset -= s.offset * static_cast<std::int64_t>(size_of(value(v).dtype));
      }
    }
    const ValueStorage& r = storage(v);
    std::string text = fmt::format("      const {} x = {}[row * {} + column];\n", type_name(value(v).dtype),
                                   memory(walk, value(v).dtype, true, "0"), value(v).width);
    if (r.in_register) text += fmt::format("      r{}[k] = x;\n", v);
    if (r.shared && layout_.slices == 1) text += fmt::format("      f{}[mine * {} + column] = x;\n", v, r.pitch);
    if (r.tile) text += fmt::format("      {} = x;\n", in_tile(v, "0", "mine", "near"));
    start_ += each_lane(value(v).width, text);
  }

  void finish_product(int v) {
    if (!storage(v).tile || is_slab(value(v).walk)) return;
    const std::string line =
        fmt::format("      {}[row * {} + column] = {};\n", memory(value(v).walk, value(v).dtype, false, "a.steps - 1"),
                    value(v).width, tile_sum(v));
    end_ += each_lane(value(v).width, line);
  }

  // ---- elementwise calls -------------------------------------------------------------------------------------------

  void elements(int c) {
    loads_.clear();
    made_.clear();
    stores_.clear();
    if (call(c).kind == Kind::run)
      run(c);
    else if (call(c).kind == Kind::copy)
      result(c, 1, operand(c, 0, "column", ""));
    else
      rotation(c);
    step_ +=
        "    {\n" + made_ + each_lane(call(c).columns(), loads_) + each_lane(call(c).columns(), stores_) + "    }\n";
  }

  void run(int c) {
    const StepCall& run = call(c);
    std::vector<DType> dtypes;
    std::vector<char> flat;
    for (const Access& a : run.operands) {
      dtypes.push_back(a.dtype);
      flat.push_back(!a.local && a.column == 0);
    }
    RunText text(
        run.calls, dtypes, flat, run.columns(), numbers_,
        [&](int o, std::int64_t shift) {
          const std::string column =
              shift == 0 ? "column"
                         : fmt::format("(column >= {0} ? column - {0} : column + {1})", shift, run.columns() - shift);
          std::string name = RunText::name(o, shift);
          loads_ += fmt::format("      const {} {} = {};\n", type_name(dtypes[o]), name,
                                operand(c, o, column, shift == 0 ? "" : fmt::format("_{}", shift)));
          return name;
        },
        "      ");
    std::vector<std::pair<std::size_t, std::string>> results;
    for (std::size_t o = 0; o < run.operands.size(); ++o) {
      if (!run.operands[o].local && text.made(static_cast<int>(o)))
        results.emplace_back(o, text.value(static_cast<int>(o)));
    }
    loads_ += text.lines();
    for (const auto& [o, name] : results) result(c, o, name);
    for (const FusedCall& f : run.calls) numbers_ += numbers_of(f);
  }

  void rotation(int c) {
    const StepCall& r = call(c);
    const std::string there = fmt::format("partner(column, {}, {}, {})", r.first, r.last, r.distance);
    const std::string other = operand(c, 0, there, "_p");
    if (r.operands.size() == 2) return result(c, 1, other);
    const auto times = [&](const std::string& a, const std::string& b) {
      return fmt::format("Binary<{}>{{}}({}, {})", index_of<Mul, BinaryFunctors>, a, b);
    };
    const std::string x = operand(c, 0, "column", ""), cos = operand(c, 2, "column", ""),
                      sin = operand(c, 3, "column", "");
    result(c, 1, fmt::format("{} + {}", times(cos, x), times(sin, other)));
  }

  /// Holds a call's result in a register until all its elements are computed, so that their loads overlap.
  void result(int c, std::size_t o, const std::string& x) {
    const Access& access = call(c).operands[o];
    const Source& s = loop_.source(c, o);
    const ValueStorage& r = storage(s.value);
    made_ += fmt::format("    {} y{}[{}];\n", type_name(access.dtype), o, layout_.lanes(call(c).columns()));
    loads_ += fmt::format("      y{}[k] = {};\n", o, x);
    const std::string y = fmt::format("y{}[k]", o);
    if (r.in_register) stores_ += fmt::format("      r{}[k] = {};\n", s.value, y);
    if (r.shared && layout_.slices == 1) {
      const std::string column = s.offset == 0 ? "column" : fmt::format("{} + column", s.offset);
      stores_ += fmt::format("      {} = {};\n", in_shared(s.value, true, "mine", column), y);
    }
    stores_ += store(s.value, access, y, "      ");
  }

  /// An operand's element in this row, at a given column of the call.
  std::string operand(int c, std::size_t k, const std::string& column, const std::string& tag) {
    const Access& a = call(c).operands[k];
    const Source& s = loop_.source(c, k);
    switch (layout_.read_paths[c][k]) {
      case ReadPath::register_:
        return fmt::format("r{}[k]", s.value);
      case ReadPath::tile:
        return tile_sum(s.value);
      case ReadPath::shared:
        return in_shared(s.value, !s.before, "mine", s.offset == 0 ? column : fmt::format("{} + {}", s.offset, column));
      case ReadPath::memory:
        break;
    }
    std::string place = a.column == 0 ? "" : column;
    if (a.row != 0 && a.rows > 1)
      place =
          fmt::format("row{}{}{}", a.row == 1 ? "" : fmt::format(" * {}", a.row), place.empty() ? "" : " + ", place);
    if (place.empty()) place = "0";
    const auto read = [&](const std::string& i) {
      return fmt::format("{}[{}]", memory(a.walk, a.dtype, true, i), place);
    };
    const std::int64_t lanes = layout_.lanes(call(c).columns());
    const bool one = a.row == 0 && a.column == 0 && a.walk.stride == 0;  // shared by all of a thread's columns
    const std::string name = fmt::format("n{}_{}{}", c, k, tag);
    std::string held = one ? name : name + "[k]";
    if (a.walk.double_buffered) return read("i");
    if (a.walk.stride == 0) {  // constant over steps: kept in registers, as far as they last
      if (one ? held_ + 1 > most_held : held_ + lanes > most_held) return read("i");
      held_ += one ? 1 : lanes;
    }
    declared_ += fmt::format("  {} {}{};\n", type_name(a.dtype), name, one ? "" : fmt::format("[{}]", lanes));
    const std::string first = fmt::format("      {} = {};\n", held, read("0"));
    start_ += one ? first : each_lane(call(c).columns(), first);
    if (a.walk.stride == 0) return held;
    std::string now = fmt::format("x{}{}", k, tag);
    loads_ += fmt::format("      const {} {} = {};\n", type_name(a.dtype), now, held);
    loads_ += fmt::format("      if (i + 1 < a.steps) {} = {};\n", held, read("i + 1"));
    loads_ +=
        fmt::format("      if (i + {0} < a.steps) prefetch(&{1});\n", distance, read(fmt::format("i + {}", distance)));
    return now;
  }

  // ---- products ----------------------------------------------------------------------------------------------------

  void products(const LoopStage& stage) {
    uses_warps_ = true;
    const bool fetches = layout_.slices > 1;
    std::string fetch, work;
    for (const ProductGroup& g : stage.groups) {
      weights(g);
      const char* const t = type_name(call(g.first()).operands[0].dtype);
      std::string from = fmt::format("x{}", g.first()), pitch;
      if (fetches) {
        fetch += fetches_of(g);
        work +=
            fmt::format("      const {0}* const {1} = reinterpret_cast<const {0}*>(shared + {2}) + {3};\n", t, from,
                        g.arena_at, by_factor(g, [&](int f) { return std::to_string(f * layout_.chunk * g.pitch); }));
        pitch = std::to_string(g.pitch);
      } else {
        work += fmt::format("      const {}* const {} = {};\n", t, from, by_factor(g, [&](int f) {
                              const Source& s = loop_.source(g.first(f), 0);
                              return fmt::format("&{}", in_shared(s.value, !s.before, "0", "0"));
                            }));
        pitch = by_factor(g, [&](int f) { return std::to_string(storage(loop_.source(g.first(f), 0).value).pitch); });
      }
      work += fmt::format("      multiply<{}>(w{}, {}, {}, {}, lane, warp % {}, [&](int r, int c, {} sum) {{\n", g.rows,
                          g.first(), from, pitch, fetches ? layout_.chunk : layout_.rows_in_shared, g.warps_along, t);
      work += sums(g, fetches) + "      });\n";
    }
    if (!fetches) {
      step_ += "    {\n" + work + "    }\n";
      return;
    }
    step_ += fmt::format("    for (int begin = 0; begin < {}; begin += {}) {{\n", layout_.rows, layout_.chunk);
    if (layout_.chunk < layout_.rows) step_ += "      if (begin > 0) __syncthreads();\n";
    step_ += fetch + "      wait_for_copies();\n      __syncthreads();\n" + work + "    }\n";
  }

  /// An expression that depends on the factor that a warp has.
  template <class F>
  static std::string by_factor(const ProductGroup& g, F text) {
    const std::string first = text(0);
    std::string out = first;
    for (int f = 1; f < g.factors; ++f) {
      const std::string other = text(f);
      if (other != first) out = fmt::format("({} == {} ? {} : {})", factor_of_warp(g), f, other, out);
    }
    return out;
  }
  static std::string factor_of_warp(const ProductGroup& g) {
    return fmt::format("warp / {} % {}", g.warps_along, g.factors);
  }

  /// Brings rows of a group's factors, which other blocks computed, to shared memory.
  std::string fetches_of(const ProductGroup& g) {
    std::string out;
    for (int f = 0; f < g.factors; ++f) {
      const StepCall& product = call(g.first(f));
      const Access& x = product.operands[0];
      const Source& s = loop_.source(g.first(f), 0);
      const auto spare = scratch(s.value);
      const std::int64_t row = spare ? value(s.value).width : x.row,
                         bytes = static_cast<std::int64_t>(size_of(x.dtype));
      const bool aligned = row * bytes % 16 == 0 && row == product.sums &&
                           (spare || (aligned_[static_cast<std::size_t>(x.walk.buffer)] && x.walk.offset % 16 == 0 &&
                                      x.walk.stride % 16 == 0));
      out += fmt::format(
          "      fetch<{0}, {1}>(reinterpret_cast<{0}*>(shared + {2}) + {3}, {4}, {5}, {6} + (group * {7} + begin) * "
          "{8}, {9} - group * {7} - begin, {10}, threadIdx.x, {11});\n",
          type_name(x.dtype), aligned, g.arena_at, f * layout_.chunk * g.pitch, layout_.chunk, g.pitch,
          memory(spare ? *spare : LoopMemory{x.walk}, x.dtype, true, "i"), layout_.rows, row, loop_.rows, product.sums,
          layout_.threads);
    }
    return out;
  }

  /// Code that uses the sum for row r and the warp's column c.
  std::string sums(const ProductGroup& g, bool fetches) {
    const std::int64_t width = layout_.slice(call(g.calls[0]).columns());
    std::string out = fmt::format("        const int all = warp / {} * {} + c, mine = {}r, near = all % {};\n",
                                  g.warps_along * g.factors, g.columns, fetches ? "begin + " : "", width);
    out += fmt::format("        const int row = group * {} + mine, column = slice * {} + near;\n", layout_.rows, width);
    out += fmt::format("        if (mine >= {}) return;\n", layout_.rows);
    for (std::size_t q = 0; q < g.calls.size(); ++q) {
      const int v = loop_.source(g.calls[q], 2).value;
      const Access& to = call(g.calls[q]).operands[2];
      out += fmt::format("        if ({}) {{\n", is_column_of(g, q));
      out += fmt::format("          {} = sum;\n", in_tile(v, fmt::format("warp % {}", g.warps_along), "mine", "near"));
      std::string rest;
      if (storage(v).shared && !fetches)
        rest += fmt::format("            {} = sum;\n", in_shared(v, true, "mine", "column"));
      rest += store(v, to, "sum", "            ");
      if (!rest.empty())
        out += fmt::format("          if (row < {} && column < {}) {{\n{}          }}\n", loop_.rows, value(v).width,
                           rest);
      out += "        }\n";
    }
    return out;
  }

  /// Is a warp's column `all` one of the q-th call's?
  std::string is_column_of(const ProductGroup& g, std::size_t q) const {
    const std::int64_t width = layout_.slice(call(g.first()).columns());
    const std::string column = fmt::format("all / {} == {}", width, q % g.calls_per_factor());
    if (g.factors == 1) return column;
    return fmt::format("{} && {} == {}", column, factor_of_warp(g), q / g.calls_per_factor());
  }

  /// Loads a group's weights into the warp's registers or places in shared memory, once for all steps.
  void weights(const ProductGroup& g) {
    const StepCall& first = call(g.first());
    const std::int64_t width = layout_.slice(first.columns());
    const char* const t = type_name(first.operands[1].dtype);
    const std::string w = fmt::format("w{}", g.first());
    declared_ +=
        fmt::format("  {}Weights<{}, {}, {}> {}{};\n", g.weights_at < 0 ? "" : "Shared", t, g.columns, g.vectors, w,
                    g.weights_at < 0 ? "" : fmt::format("(shared + {}, threadIdx.x)", g.weights_at));
    start_ += fmt::format("  load_weights({}, lane, warp % {}, [&](int c, int s) -> {} {{\n", w, g.warps_along, t);
    start_ += fmt::format("    const int all = warp / {} * {} + c, column = slice * {} + all % {};\n",
                          g.warps_along * g.factors, g.columns, width, width);
    start_ += fmt::format("    if (column >= {} || s >= {}) return 0;\n", first.columns(), first.sums);
    for (std::size_t q = 0; q < g.calls.size(); ++q) {
      const Access& b = call(g.calls[q]).operands[1];
      start_ += fmt::format("    if ({}) return {}[{}];\n", is_column_of(g, q), memory(b.walk, b.dtype, true, "0"),
                            first.transposed ? fmt::format("column * {} + s", first.sums)
                                             : fmt::format("s * {} + column", first.columns()));
    }
    start_ += "    return 0;\n  });\n";
  }

  static constexpr std::int64_t most_held = 24;

  const std::vector<char>& aligned_;  // by buffer
  std::string name_;
  int numbers_ = 0;
  std::int64_t held_ = 0;  // registers that hold operands constant over steps
  bool uses_warps_ = false;
  std::string declared_, start_, step_, end_;  // sections of the kernel
  std::string made_, loads_, stores_;          // of an elementwise call: before its elements; per element (2)
};

}  // namespace

LoopKernel loop_kernel(const LoopValues& loop, const LoopLayout& layout, const std::vector<char>& aligned,
                       const std::string& name) {
  return Writer(loop, layout, aligned, name).write();
}

std::vector<char> aligned_buffers(std::span<std::byte* const> buffers) {
  std::vector<char> out;
  for (const std::byte* b : buffers) out.push_back(reinterpret_cast<std::uintptr_t>(b) % 16 == 0);
  return out;
}

std::vector<std::uint64_t> loop_arguments(const LoopValues& loop, const LoopKernel& kernel, std::int64_t steps,
                                          std::span<std::byte* const> buffers, std::byte* counters,
                                          std::byte* scratch) {
  std::vector<std::uint64_t> out{static_cast<std::uint64_t>(steps), reinterpret_cast<std::uintptr_t>(counters)};
  for (const LoopMemory& m : kernel.memory) {
    const std::byte* const first =
        m.scratch >= 0 ? scratch + m.scratch : buffers[static_cast<std::size_t>(m.walk.buffer)] + m.walk.offset;
    out.push_back(reinterpret_cast<std::uintptr_t>(first));
    out.push_back(static_cast<std::uint64_t>(m.walk.stride));
  }
  for (const StepCall& call : loop.calls) put_numbers(call.calls, out);
  return out;
}

std::size_t argument_bytes(const LoopValues& loop, const LoopKernel& kernel) {
  std::size_t words = 2 + 2 * kernel.memory.size();
  for (const StepCall& call : loop.calls) {
    for (const FusedCall& f : call.calls) words += static_cast<std::size_t>(numbers_of(f));
  }
  return words * sizeof(std::uint64_t);
}

}  // namespace reel::cuda
