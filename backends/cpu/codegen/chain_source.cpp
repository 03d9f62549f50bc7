#include "backends/cpu/codegen/chain_source.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/cpu/codegen/group_source.h"
#include "backends/cpu/codegen/own_values.h"
#include "backends/shared/run_text.h"

namespace reel::cpu {

namespace {

/// The type in which elements are summed: unsigned for i32, so that overflow wraps.
const char* summand_name(DType d) { return d == DType::i32 ? "std::uint32_t" : type_name(d); }

class Writer {
 public:
  Writer(const LoweredLoop& loop, RowChain& chain, const std::vector<RowCall>& calls)
      : loop_(loop),
        chain_(chain),
        calls_(calls),
        values_(row_values({loop, chain.first, calls})),
        states_(own_states({loop, chain.first, calls})) {}

  std::string text() {
    for (std::size_t c = 0; c < calls_.size(); ++c) {
      const LoopCall& made = loop_.calls[chain_.first + c];
      const std::size_t known = chain_.indices.size();
      const std::string lines = call(made.kernel, calls_[c]);
      for (ChainIndices& i : std::span(chain_.indices).subspan(known)) i.op = made.op, i.where = made.where;
      if (lines.empty()) return {};
      rows_ += "    {\n" + lines + "    }\n";
    }
    for (const auto& [from, to] : states_) chain_.states.push_back({operand(from), from.bytes});
    std::string out =
        "(const reel::cpu::RowChainArgs& args) {\n  using namespace reel;\n  using namespace reel::cpu;\n";
    for (std::size_t k = 0; k < chain_.operands.size(); ++k)
      out += fmt::format("  std::byte* const o{0} = args.operands[{0}];\n", k);
    for (std::size_t k = 0; k < 2 * chain_.states.size(); ++k)
      out += fmt::format("  std::byte* const state{} = args.operands[{}];\n", k, chain_.operands.size() + k);
    // Not whole pages apart, so that rows do not compete for the same cache lines.
    for (std::size_t k = 0; k < values_.size(); ++k)
      out += fmt::format("  alignas(64) std::byte s{}[{}];\n", k, (values_[k].bytes + 63) / 64 * 64 + 192);
    out += functors_ + "  for (std::int64_t r = 0; r < args.rows; ++r) {\n" + rows_ + "  }\n";
    return out + (states_.empty() ? "}\n" : "  end_streams();\n}\n");
  }

 private:
  std::size_t operand(const RowAccess& access) {
    const auto known = std::ranges::find(chain_.operands, access.at);
    const auto k = static_cast<std::size_t>(known - chain_.operands.begin());
    if (known == chain_.operands.end()) chain_.operands.push_back(access.at);
    return k;
  }
  static std::string row(const std::string& name, std::size_t k, const RowAccess& access) {
    return access.row == 0 ? fmt::format("{}{}", name, k) : fmt::format("{}{} + r * {}", name, k, access.row);
  }
  /// Where the row r of what a call accesses starts.
  std::string address(const RowAccess& access) {
    const auto same = [&](const RowAccess& v) { return v.same_memory(access); };
    const auto own = std::ranges::find_if(values_, same);
    if (own != values_.end()) return fmt::format("s{}", own - values_.begin());
    for (std::size_t k = 0; k < states_.size(); ++k) {
      if (same(states_[k].first)) return row("state", 2 * k, access);
      if (same(states_[k].second)) return row("state", 2 * k + 1, access);
    }
    return row("o", operand(access), access);
  }
  /// Where the row r of a kept state is saved; empty: it is none.
  std::string saved(const RowAccess& access) {
    const auto is = [&](const auto& state) { return state.second.same_memory(access); };
    return access.written && std::ranges::any_of(states_, is) ? row("o", operand(access), access) : std::string();
  }
  std::string pointer(const RowAccess& access, const std::string& type) {
    return fmt::format("reinterpret_cast<{}{}*>({})", access.written ? "" : "const ", type, address(access));
  }
  std::string call(const KernelCall& kernel, const RowCall& call) {
    if (const FusedArgs* group = kernel.as<Kernel::fused>()) return this->group(*group, call);
    if (const RotateArgs* r = kernel.as<Kernel::rotate>()) return rotation(*r, call);
    if (const SumRowsArgs* s = kernel.as<Kernel::sum_rows>()) return sum(*s, call);
    if (kernel.as<Kernel::copy>())
      return fmt::format("      std::memcpy({}, {}, {});\n", address(call.accesses[1]), address(call.accesses[0]),
                         call.accesses[1].bytes);
    const RowsArgs* const gather = kernel.as<Kernel::gather_rows>();
    return rows(gather ? *gather : *kernel.as<Kernel::segment_sum>(), call, gather != nullptr);
  }
  std::string group(const FusedArgs& group, const RowCall& call) {
    const std::string name = fmt::format("g{}_f", chain_.groups.size());
    const auto access = [&](int o) -> const RowAccess& {
      return *std::ranges::find(call.accesses, static_cast<std::size_t>(o), &RowAccess::operand);
    };
    const std::string lines = row_source(
        group, [&](int o) { return address(access(o)); }, [&](int o) { return saved(access(o)); });
    if (lines.empty()) return {};
    functors_ += functor_source(group, name, fmt::format("args.groups[{}]", chain_.groups.size()));
    chain_.groups.push_back(group);
    std::string out = fmt::format("    constexpr std::int64_t columns = {};\n", group.columns);
    for (std::size_t i = 0; i < group.calls.size(); ++i) {
      const FusedCall::Kind kind = group.calls[i].kind;
      if (kind == FusedCall::Kind::map || kind == FusedCall::Kind::zip)
        out += fmt::format("    const auto& f{} = {}{};\n", i, name, i);
    }
    return out + lines;
  }
  std::string rotation(const RotateArgs& r, const RowCall& call) {
    const bool pairs = is_complex(r.dtype);
    const std::string type = type_name(real_of(r.dtype)),
                      layer = fmt::format("{}<{}, {}>", r.c ? "Turned" : "Exchanged", type, pairs ? 2 : 1);
    const std::string f =
        r.c ? fmt::format("{{{}, {}}}", pointer(call.accesses[1], type), pointer(call.accesses[2], type)) : "{}";
    return fmt::format(
        "      const {0} f{1};\n      const Layer<{2}, {3}, {0}> layer({4}, {5}, {6}, {7}, f);\n"
        "      layer.rows(1, {8}, {9});\n",
        layer, f, type, pairs ? 2 : 1, r.n, r.first, r.last, r.distance, pointer(call.accesses[0], type),
        pointer(call.accesses.back(), type));
  }
  std::string sum(const SumRowsArgs& s, const RowCall& call) {
    const std::string type = summand_name(real_of(s.dtype));
    const bool product = call.accesses.size() == 3;
    const std::int64_t numbers = is_complex(s.dtype) ? 2 * s.n : s.n;  // a sum of complex numbers is one of their parts
    return fmt::format("      add_row<{}>({}, {}, {}, {});\n", product, numbers, pointer(call.accesses[0], type),
                       pointer(call.accesses[product ? 1 : 0], type), pointer(call.accesses.back(), type));
  }
  std::string rows(const RowsArgs& r, const RowCall& call, bool gather) {
    const std::string index = pointer(call.accesses[0], "std::int32_t"), type = summand_name(r.dtype);
    chain_.indices.push_back({operand(call.accesses[0]), call.accesses[0].below});
    return fmt::format("      {}<{}>({}, {}, *{}, {});\n", gather ? "gather_row" : "add_to_row", type,
                       pointer(call.accesses[1], type), pointer(call.accesses[2], type), index, r.width);
  }

  const LoweredLoop& loop_;
  RowChain& chain_;
  const std::vector<RowCall>& calls_;
  const std::vector<RowAccess> values_;                        // one row of each on the stack
  const std::vector<std::pair<RowAccess, RowAccess>> states_;  // before and after the step
  std::string functors_, rows_;
};

}  // namespace

std::string chain_source(const LoweredLoop& loop, RowChain& chain, const std::vector<RowCall>& calls) {
  return Writer(loop, chain, calls).text();
}

}  // namespace reel::cpu
