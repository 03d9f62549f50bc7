#include "backends/cuda/codegen/loop_source.h"

#include <algorithm>

#include "backends/cuda/codegen/loop_transforms.h"
#include "backends/shared/run_text.h"
#include "engine/core/error.h"
#include "ops/functors/binary.h"

namespace reel::cuda {

namespace {

using Kind = StepCall::Kind;
constexpr int distance = 8;  // steps that memory is asked ahead, to have it in a cache

class Writer : TransformText {
 public:
  Writer(const LoopValues& loop, const LoopLayout& layout, const std::vector<char>& aligned, const std::string& name)
      : TransformText(loop, layout, aligned), name_(name) {}

  LoopKernel write() {
    declare_values();
    for (std::size_t v = 0; v < loop_.values.size(); ++v) start_value(static_cast<int>(v));
    int barriers = 0;
    const std::optional<std::size_t> early = early_arrival();
    for (std::size_t k = 0; k < layout_.stages.size(); ++k) {
      const LoopStage& stage = layout_.stages[k];
      if (stage.wait == LoopStage::Wait::block) step_ += "    __syncthreads();\n";
      if (stage.wait == LoopStage::Wait::group) {
        if (!early) step_ += "    arrive_in_group(counter);\n";
        if (early && *early > k) start_ += "  arrive_in_group(counter);\n";  // the first step waits for no results
        step_ += fmt::format("    wait_for_group(counter, {}, static_cast<unsigned>({} * i + {}));\n", layout_.slices,
                             layout_.barriers, ++barriers);
      }
      if (stage.is_products())
        products(stage);
      else if (call(stage.call).reduces())
        reduction(stage.call);
      else if (call(stage.call).kind == Kind::transform)
        transform(stage.call, stage.wait != LoopStage::Wait::none);
      else
        elements(stage.call, early == k);
    }
    for (std::size_t v = 0; v < loop_.values.size(); ++v) finish_product(static_cast<int>(v));
    return {{name_, text()}, memory_};
  }

 private:
  std::string text() const {
    std::string out = "#include \"backends/cuda/codegen/device/loop.h\"\n";
    if (reduces_) out += "#include \"backends/cuda/codegen/device/reductions.h\"\n";
    if (transforms_) out += "#include \"backends/cuda/codegen/device/transforms.h\"\n";
    out += "\n";
    out += fmt::format("struct {}_Arguments {{\n  long long steps;\n  unsigned* counters;\n", name_);
    if (!memory_.empty()) out += fmt::format("  reel::generated::Address place[{}];\n", memory_.size());
    if (numbers_ > 0) out += fmt::format("  double number[{}];\n", numbers_);
    out += fmt::format("}};\n\nextern \"C\" __global__ void __launch_bounds__({0}, 1) {1}(const {1}_Arguments a) {{\n",
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
    out += "  for (long long i = 0; i < a.steps; ++i) {\n";
    if (reads_ahead_) out += "    const long long next = i + 1 < a.steps ? i + 1 : i;\n";
    out += step_ + "  }\n";
    if (!end_.empty()) out += "  __syncthreads();\n" + end_;
    return out + "}\n";
  }

  /// The elementwise stage behind which a block arrives at the step's barrier, before it stores what no other block
  /// reads. None if a step has several barriers, or products write what others read.
  std::optional<std::size_t> early_arrival() const {
    if (layout_.barriers != 1) return std::nullopt;
    const std::vector<LoopStage>& stages = layout_.stages;
    std::size_t barrier = 0;
    while (stages[barrier].wait != LoopStage::Wait::group) ++barrier;
    std::optional<std::size_t> last;
    for (std::size_t k = 0; k < stages.size(); ++k) {
      const std::size_t at = (barrier + k) % stages.size();
      for (const int c : stages[at].calls()) {
        for (std::size_t o = 0; o < call(c).operands.size(); ++o) {
          const Source& s = loop_.source(static_cast<std::size_t>(c), o);
          if (!s.made() || !loop_.writes(static_cast<std::size_t>(c), o) || !storage(s.value).shared) continue;
          if (stages[at].is_products()) return std::nullopt;
          last = at;
        }
      }
    }
    return last;
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
    if (!storage(v).tile || is_slab(value(v).walk) || is_temporary(v)) return;
    const std::string line =
        fmt::format("      {}[row * {} + column] = {};\n", memory(value(v).walk, value(v).dtype, false, "a.steps - 1"),
                    value(v).width, tile_sum(v));
    end_ += each_lane(value(v).width, line);
  }

  // ---- elementwise calls -------------------------------------------------------------------------------------------

  void elements(int c, bool arrives) {
    ahead_.clear();
    loads_.clear();
    made_.clear();
    exchanged_.clear();
    stores_.clear();
    if (call(c).kind == Kind::run)
      run(c);
    else if (call(c).kind == Kind::copy)
      copy(c);
    else if (call(c).kind == Kind::gather)
      gather(c);
    else if (call(c).kind == Kind::scatter)
      scatter(c);
    else
      rotation(c);
    const auto each = [&](const std::string& text) { return text.empty() ? "" : each_lane(call(c).columns(), text); };
    const std::string ahead = ahead_.empty() ? "" : every_lane(call(c).columns(), ahead_);
    step_ += "    {\n" + made_ + (short_step() ? ahead : "") + each(loads_) + each(exchanged_);
    if (arrives) step_ += "    arrive_in_group(counter);\n";
    step_ += each(stores_) + (short_step() ? "" : ahead) + "    }\n";
  }

  void run(int c) {
    const StepCall& run = call(c);
    std::vector<DType> dtypes;
    std::vector<char> flat;
    for (const Access& a : run.operands) {
      dtypes.push_back(a.dtype);
      flat.push_back(!a.local && a.flat());
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

  void copy(int c) {
    const StepCall& copy = call(c);
    if (!copy.pads()) return result(c, 1, operand(c, 0, "column", ""));
    const std::string x = operand(c, 0, fmt::format("(column - {})", copy.first), "");
    result(c, 1,
           fmt::format("column >= {} && column < {} ? {} : {}(0)", copy.first, copy.last, x,
                       type_name(copy.operands[1].dtype)));
  }

  /// An index that is out of range was reported before the loop (Cuda::run_planned).
  void gather(int c) {
    const std::int64_t width = call(c).operands[0].columns;
    loads_ += fmt::format("      const int from = {};\n", operand(c, 2, "column", ""));
    result(c, 1,
           fmt::format("from >= 0 && from < {} ? {} : {}(0)", width, operand(c, 0, "from", ""),
                       type_name(call(c).operands[0].dtype)));
  }

  /// Each thread knows the first column that is added to its own, and whether there are more.
  void scatter(int c) {
    const StepCall& s = call(c);
    const Access& index = s.operands[2];
    const std::int64_t lanes = layout_.lanes(s.columns()), count = index.columns;
    const std::string at_j = memory(index.walk, index.dtype, true, "0") + "[j]", first = fmt::format("first{}[k]", c),
                      more = fmt::format("more{}[k]", c), x = operand(c, 0, "j", "");
    declared_ += fmt::format("  int first{0}[{1}];\n  bool more{0}[{1}];\n", c, lanes);
    start_ += each_lane(s.columns(), fmt::format("      {0} = -1, {1} = false;\n"
                                                 "      for (int j = 0; j < {2}; ++j) {{\n"
                                                 "        if ({3} != column) continue;\n"
                                                 "        if ({0} < 0) {0} = j;\n"
                                                 "        else {1} = true;\n"
                                                 "      }}\n",
                                                 first, more, count, at_j));
    loads_ += fmt::format("      int j = {};\n      {} sum = j < 0 ? {}(0) : {};\n", first,
                          type_name(s.operands[0].dtype), type_name(s.operands[0].dtype), x);
    loads_ += fmt::format(
        "      while ({} && ++j < {}) {{\n        if ({} == column) sum = reel::Add()(sum, {});\n      }}\n", more,
        count, at_j, x);
    result(c, 1, "sum");
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
    if (r.shared && layout_.slices == 1) stores_ += fmt::format("      {} = {};\n", in_shared(s, "mine", "column"), y);
    (r.shared && layout_.slices > 1 ? exchanged_ : stores_) += store(s.value, access, y, "      ");
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
        return in_shared(s, "mine", place(a.axes, column));
      case ReadPath::memory:
        break;
    }
    std::string from = place(a.axes, column);
    if (a.row != 0 && a.rows > 1)
      from = fmt::format("row{}{}{}", a.row == 1 ? "" : fmt::format(" * {}", a.row), from.empty() ? "" : " + ", from);
    if (from.empty()) from = "0";
    const auto read = [&](const std::string& i) {
      return fmt::format("{}[{}]", memory(a.walk, a.dtype, true, i), from);
    };
    const std::int64_t lanes = layout_.lanes(call(c).columns());
    const bool one = a.row == 0 && a.flat() && a.walk.stride == 0;  // shared by all of a thread's columns
    const std::string name = fmt::format("n{}_{}{}", c, k, tag);
    std::string held = one ? name : name + "[k]";
    if (a.walk.double_buffered) return read("i");
    if (a.walk.stride == 0) {  // constant over steps: kept in registers, as far as they last
      if (!layout_.reads_ahead || held_ + (one ? 1 : lanes) > most_held) return read("i");
      held_ += one ? 1 : lanes;
    }
    std::string now = fmt::format("x{}{}", k, tag);
    const std::string prefetched =
        fmt::format("      if (i + {0} < a.steps) prefetch(&{1});\n", distance, read(fmt::format("i + {}", distance)));
    if (a.walk.stride != 0 && !layout_.reads_ahead) {
      loads_ += fmt::format("      const {} {} = {};\n", type_name(a.dtype), now, read("i")) + prefetched;
      return now;
    }
    declared_ += fmt::format("  {} {}{};\n", type_name(a.dtype), name, one ? "" : fmt::format("[{}]", lanes));
    const std::string first = fmt::format("      {} = {};\n", held, read("0"));
    start_ += one ? first : each_lane(call(c).columns(), first);
    if (a.walk.stride == 0) return held;
    // All threads ask for the next step's number, even those without one: nothing that only some do waits for it.
    reads_ahead_ = true;
    if (short_step()) {
      made_ += fmt::format("    {} {}[{}];\n", type_name(a.dtype), now, lanes);
      ahead_ += fmt::format("      {}[k] = {};\n", now, held);
      now += "[k]";
    } else {
      now = held;
    }
    ahead_ += fmt::format("      {} = {};\n", held, read("next")) + prefetched;
    return now;
  }
  /// Does a step leave memory too little time, unless it is asked at the step's beginning?
  bool short_step() const {
    return layout_.stages.size() <= 2 && std::none_of(layout_.stages.begin(), layout_.stages.end(),
                                                      [](const LoopStage& stage) { return stage.is_products(); });
  }

  static constexpr std::int64_t most_held = 24;

  std::string name_;
  int numbers_ = 0;
  std::int64_t held_ = 0;  // registers that hold operands constant over steps
  bool reads_ahead_ = false;
  std::string end_;  // the last section of the kernel
  // Of an elementwise call: before its elements; what the next step reads; per element; stores for other blocks, and
  // all others.
  std::string made_, ahead_, loads_, exchanged_, stores_;
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
