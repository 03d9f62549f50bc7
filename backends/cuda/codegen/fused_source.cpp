#include "backends/cuda/codegen/fused_source.h"

#include <algorithm>

#include "engine/core/error.h"
#include "ops/functors/unary.h"

namespace reel::cuda {

FusedLayout lay_out(const FusedArgs& args) {
  FusedLayout out{args.rows, args.columns, 1, args.rows * args.columns >= (std::int64_t{1} << 31)};
  std::size_t largest = 1;
  bool one_row = !has_rolls(args.calls);
  for (const FusedOperand& o : args.operands) {
    if (!o.local) largest = std::max(largest, o.element_bytes);
    one_row = one_row && (o.local || (o.column == 1 && (o.row == args.columns || args.rows == 1)));
  }
  if (one_row) out.columns = out.rows * out.columns, out.rows = 1;
  // A small amount of work is better spread over many threads.
  constexpr std::int64_t little = 1 << 15;
  const int per = static_cast<int>(16 / largest);
  if (args.rows * args.columns <= little || out.columns % per != 0) return out;
  for (const FusedOperand& o : args.operands) {
    const std::size_t bytes = o.element_bytes * static_cast<std::size_t>(per);
    if (!o.local && o.column == 1 && reinterpret_cast<std::uintptr_t>(o.data) % bytes != 0) return out;
  }
  out.per = per;
  return out;
}

std::string fused_key(const FusedArgs& args, const FusedLayout& layout) {
  std::string key;
  key.reserve(32 * args.calls.size() + 4 * args.operands.size() + 16);
  const auto put = [&](const auto& value) { key.append(reinterpret_cast<const char*>(&value), sizeof(value)); };
  for (const FusedCall& call : args.calls) {
    put(call.kind);
    put(call.functor);
    put(call.dtype);
    put(call.to);
    put(call.in);
    put(call.out);
    if (is_power(call)) put(call.params.as<Power>().exponent);
  }
  for (const FusedOperand& o : args.operands) {
    put(o.local);
    put(static_cast<std::uint8_t>(o.element_bytes));
    put(static_cast<std::uint8_t>(o.local ? 0 : 2 * (o.column != 0) + (o.row != 0)));
  }
  put(layout.per);
  put(layout.wide);
  put(layout.rows == 1);
  if (has_rolls(args.calls)) put(layout.columns);  // the source contains the number of columns, since rolls wrap around
  return key;
}

namespace {

/// Operands that are broadcast along a row.
std::vector<char> flat_operands(const FusedArgs& args) {
  std::vector<char> out;
  for (const FusedOperand& o : args.operands) out.push_back(!o.local && o.column == 0);
  return out;
}

class Writer {
 public:
  Writer(const FusedArgs& args, const FusedLayout& layout, const std::string& name)
      : args_(args),
        layout_(layout),
        name_(name),
        slot_(args.operands.size(), -1),
        run_(
            args.calls, dtypes_of(args), flat_operands(args), layout.columns, 0,
            [this](int o, std::int64_t shift) { return load(o, shift); }, layout.per > 1 ? "      " : "    ") {}

  KernelSource write() {
    int pointers = 0, numbers = 0;
    for (std::size_t o = 0; o < slot_.size(); ++o)
      if (!args_.operands[o].local) slot_[o] = pointers++;
    for (const FusedCall& call : args_.calls) numbers += numbers_of(call);
    for (int o = 0; o < static_cast<int>(slot_.size()); ++o) {
      if (slot(o) < 0 || !run_.made(o)) continue;
      const std::string result = run_.value(o), type = type_name(run_.dtype(o));
      if (layout_.per == 1) {
        stores_ += fmt::format("    {}[at] = {};\n", address(o, false), result);
      } else {
        before_ += fmt::format("    AlignedVector<{}, {}> y{};\n", type, layout_.per, o);
        packs_ += fmt::format("      y{}.at[k] = {};\n", o, result);
        stores_ += fmt::format("    *reinterpret_cast<AlignedVector<{}, {}>*>({} + at) = y{};\n", type, layout_.per,
                               address(o, false), o);
      }
    }
    return {name_, text(pointers, numbers)};
  }

 private:
  std::string text(int pointers, int numbers) const {
    std::string out = "#include \"backends/cuda/codegen/device/kernel.h\"\n\n";
    out += fmt::format("struct {}_Arguments {{\n  long long rows, columns;\n  void* data[{}];\n", name_, pointers);
    if (numbers > 0) out += fmt::format("  double number[{}];\n", numbers);
    out += fmt::format("}};\n\nextern \"C\" __global__ void __launch_bounds__(256) {0}(const {0}_Arguments a) {{\n",
                       name_);
    out += "  using namespace reel::generated;\n";
    out += fmt::format("  using Index = {};\n", layout_.wide ? "long long" : "unsigned");
    out += fmt::format("  const Index packs = static_cast<Index>(a.rows * a.columns / {});\n", layout_.per);
    if (needs_row_) out += "  const Index columns = static_cast<Index>(a.columns);\n";
    out +=
        "  const Index first = blockIdx.x * Index(blockDim.x) + threadIdx.x, step = gridDim.x * Index(blockDim.x);\n";
    out += "  for (Index g = first; g < packs; g += step) {\n";
    out += fmt::format("    const Index at = g * {};\n", layout_.per);
    if (needs_row_) out += "    const Index row = at / columns, column = at - row * columns;\n";
    out += before_;
    if (layout_.per > 1) out += fmt::format("#pragma unroll\n    for (int k = 0; k < {}; ++k) {{\n", layout_.per);
    out += loads_ + run_.lines() + packs_;
    if (layout_.per > 1) out += "    }\n";
    return out + stores_ + "  }\n}\n";
  }

  std::string load(int o, std::int64_t shift) {
    const FusedOperand& operand = args_.operands[static_cast<std::size_t>(o)];
    const std::string type = type_name(run_.dtype(o)), from = address(o, true);
    std::string name = RunText::name(o, shift);
    const bool full = operand.column != 0 && (operand.row != 0 || layout_.rows == 1);
    std::string place = operand.column == 0 ? (operand.row != 0 ? "row" : "0") : full ? "at" : "column";
    if (shift != 0)
      place = fmt::format("{0}(column{1} >= {2} ? column{1} - {2} : column{1} + {3})", full ? "row * columns + " : "",
                          layout_.per > 1 ? " + k" : "", shift, layout_.columns - shift);
    needs_row_ = needs_row_ || (place != "0" && place != "at");
    if (layout_.per > 1 && shift == 0 && operand.column != 0) {
      before_ += fmt::format("    const auto {} = *reinterpret_cast<const AlignedVector<{}, {}>*>({} + {});\n", name,
                             type, layout_.per, from, place);
      return name + ".at[k]";
    }
    (shift == 0 ? before_ : loads_) += fmt::format("    const {} {} = {}[{}];\n", type, name, from, place);
    return name;
  }

  int slot(int o) const { return slot_[static_cast<std::size_t>(o)]; }
  std::string address(int o, bool reads) const {
    return fmt::format("static_cast<{}{}*>(a.data[{}])", reads ? "const " : "", type_name(run_.dtype(o)), slot(o));
  }

  const FusedArgs& args_;
  FusedLayout layout_;
  std::string name_;
  std::vector<int> slot_;  // by operand: index of its address
  RunText run_;
  std::string before_, loads_, packs_, stores_;  // per pack; per element of a pack (2); per pack
  bool needs_row_ = false;
};

}  // namespace

KernelSource fused_source(const FusedArgs& args, const FusedLayout& layout, const std::string& name) {
  return Writer(args, layout, name).write();
}

std::vector<std::uint64_t> fused_arguments(const FusedArgs& args, const FusedLayout& layout) {
  std::vector<std::uint64_t> out{static_cast<std::uint64_t>(layout.rows), static_cast<std::uint64_t>(layout.columns)};
  for (const FusedOperand& o : args.operands) {
    if (!o.local) out.push_back(reinterpret_cast<std::uintptr_t>(o.data));
  }
  put_numbers(args.calls, out);
  return out;
}

FusedParts split(const FusedArgs& args, std::size_t calls) {
  const auto middle = args.calls.begin() + static_cast<std::ptrdiff_t>(calls);
  FusedParts out{{args.rows, args.columns, {args.calls.begin(), middle}, args.operands},
                 {args.rows, args.columns, {middle, args.calls.end()}, args.operands},
                 {}};
  const auto used = [&](const FusedArgs& part) {
    std::vector<char> is_used(args.operands.size(), 0);
    for (const FusedCall& c : part.calls) {
      for (const int o : {c.in[0], c.in[1], c.in[2], c.out}) {
        if (o >= 0) is_used[static_cast<std::size_t>(o)] = 1;
      }
    }
    return is_used;
  };
  const std::vector<char> in_first = used(out.first), in_second = used(out.second);
  for (std::size_t o = 0; o < args.operands.size(); ++o) {
    FusedOperand &a = out.first.operands[o], &b = out.second.operands[o];
    if (a.local && in_first[o] && in_second[o]) {
      a = b = {nullptr, args.columns, 1, a.element_bytes, false};
      out.passed.push_back(o);
    }
    a.local = a.local || !in_first[o];  // no argument of a kernel that does not use it
    b.local = b.local || !in_second[o];
  }
  return out;
}

}  // namespace reel::cuda
