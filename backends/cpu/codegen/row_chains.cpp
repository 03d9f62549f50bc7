#include "backends/cpu/codegen/row_chains.h"

#include <algorithm>
#include <cstring>
#include <ranges>

#include "backends/cpu/codegen/chain_source.h"
#include "backends/cpu/codegen/row_calls.h"
#include "backends/cpu/kernels/check_index.h"

namespace reel::cpu {

std::vector<RowChain> row_chains(const LoweredLoop& loop) {
  std::vector<RowChain> out;
  std::vector<RowCall> calls;
  std::size_t first = 0;
  const auto close = [&](std::size_t end) {
    const auto computes = [&](std::size_t c) { return !loop.calls[c].kernel.as<Kernel::copy>(); };
    if (calls.size() > 1 && std::ranges::any_of(std::views::iota(first, end), computes)) {
      RowChain chain;
      chain.first = first, chain.end = end, chain.rows = calls[0].rows;
      for (const RowCall& call : calls) chain.work += call.rows * call.work;
      chain.text = chain_source(loop, chain, calls);
      if (!chain.text.empty()) out.push_back(std::move(chain));
    }
    calls.clear();
    first = end;
  };
  for (std::size_t c = 0; c < loop.calls.size(); ++c) {
    std::optional<RowCall> call = row_call(loop.calls[c], loop.scratch);
    const bool joins = call && std::ranges::all_of(calls, [&](const RowCall& earlier) {
                         return earlier.rows == call->rows && may_go_row_by_row(earlier, *call);
                       });
    if (!joins) close(c);
    if (call)
      calls.push_back(std::move(*call));
    else
      first = c + 1;
  }
  close(loop.calls.size());
  return out;
}

namespace {

/// A chain's function as a call of a run. Each run has a copy, which keeps the states.
class ChainRun {
 public:
  ChainRun(const RowChain& chain, RowChainFunction function)
      : chain_(std::make_shared<const RowChain>(chain)), function_(function) {}

  void operator()(std::span<std::byte* const> operands) {
    const std::int64_t rows = chain_->rows;
    for (const ChainIndices& i : chain_->indices) {
      try {
        check_index(reinterpret_cast<const std::int32_t*>(operands[i.operand]), rows, i.below);
      } catch (const RuleError& e) {
        throw LoopError(e, i.op, i.where, -1);
      }
    }
    if (chain_->states.empty()) return function_({rows, operands.data(), chain_->groups.data()});
    if (operands_.empty()) begin(operands);
    std::copy(operands.begin(), operands.end(), operands_.begin());
    function_({rows, operands_.data(), chain_->groups.data()});
    for (std::size_t k = operands.size(); k < operands_.size(); k += 2) std::swap(operands_[k], operands_[k + 1]);
  }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  /// The states before the first step.
  void begin(std::span<std::byte* const> operands) {
    operands_.assign(operands.begin(), operands.end());
    memory_.reserve(2 * chain_->states.size());
    for (const KeptState& state : chain_->states) {
      const auto bytes = static_cast<std::size_t>(chain_->rows * state.bytes);
      for (std::size_t k = 0; k < 2; ++k)
        operands_.push_back(memory_.emplace_back(bytes / sizeof(Line) + 3 * (k + 1))[0].bytes);
      std::memcpy(operands_[operands_.size() - 2], operands[state.from], bytes);
    }
  }

  std::shared_ptr<const RowChain> chain_;
  RowChainFunction function_;
  std::vector<std::byte*> operands_;       // of the function, with the states
  std::vector<std::vector<Line>> memory_;  // of the states
};

}  // namespace

LoopCall compiled_call(const RowChain& chain, RowChainFunction function) {
  return {
      KernelCall::of<Kernel::host>(HostArgs{ChainRun(chain, function), std::vector<std::byte*>(chain.operands.size())}),
      chain.operands};
}

}  // namespace reel::cpu
