#include "backends/cuda/codegen/step_calls.h"

#include "backends/shared/run_text.h"

namespace reel::cuda {

namespace {

using Operands = std::vector<Operand>;

Access whole(const Operand& at, DType dtype, std::int64_t rows, std::int64_t columns) {
  return {at, rows, columns, columns, 1, dtype, false};
}
Access row_for_all(const Operand& at, DType dtype, std::int64_t rows, std::int64_t columns) {
  return {at, rows, columns, 0, 1, dtype, false};
}

std::optional<StepCall> step_call(const FusedArgs& a, const Operands& at) {
  StepCall call;
  call.calls = a.calls;
  const std::vector<DType> dtypes = dtypes_of(a);
  for (std::size_t k = 0; k < a.operands.size(); ++k) {
    const FusedOperand& o = a.operands[k];
    call.operands.push_back({at[k], a.rows, a.columns, o.row, o.column, dtypes[k], o.local});
  }
  return call;
}

std::optional<StepCall> step_call(const GemmArgs& a, const Operands& at) {
  if (a.batch != 1 || a.transpose_a || a.k == 0 || !is_floating(a.dtype)) return std::nullopt;
  StepCall call{.kind = StepCall::Kind::product, .transposed = a.transpose_b, .sums = a.k};
  const std::int64_t rows = a.transpose_b ? a.n : a.k, columns = a.transpose_b ? a.k : a.n;
  call.operands = {whole(at[0], a.dtype, a.m, a.k), whole(at[1], a.dtype, rows, columns),
                   whole(at[2], a.dtype, a.m, a.n)};
  return call;
}

std::optional<StepCall> step_call(const RotateArgs& a, const Operands& at) {
  if (!is_differentiable(a.dtype)) return std::nullopt;
  StepCall call{.kind = StepCall::Kind::rotation, .first = a.first, .last = a.last, .distance = a.distance};
  const auto& [x, c, s, out] = std::tie(at[0], at[1], at[2], at[3]);
  call.operands = {whole(x, a.dtype, a.rows, a.n), whole(out, a.dtype, a.rows, a.n)};
  if (c.buffer >= 0) {
    call.operands.push_back(row_for_all(c, a.dtype, a.rows, a.n));
    call.operands.push_back(row_for_all(s, a.dtype, a.rows, a.n));
  }
  return call;
}

std::optional<StepCall> step_call(const CopyArgs& a, const Operands& at) {
  if (a.loop.rank < 1 || a.loop.rank > 2 || a.loop.inner_stride() != StridedLoop<2>::Offsets{1, 1}) return std::nullopt;
  StepCall call{.kind = StepCall::Kind::copy};
  const bool flat = a.loop.rank == 1;
  for (const std::size_t k : {0U, 1U}) {
    call.operands.push_back(whole(at[k], a.dtype, flat ? 1 : a.loop.dims[0], a.loop.inner_dim()));
    if (!flat) call.operands.back().row = a.loop.strides[0][k];
  }
  return call;
}

}  // namespace

std::optional<std::vector<StepCall>> step_calls(const LoweredLoop& loop) {
  std::vector<StepCall> out;
  for (const LoopCall& call : loop.calls) {
    std::optional<StepCall> step;
    if (const auto* fused = call.kernel.as<Kernel::fused>())
      step = step_call(*fused, call.operands);
    else if (const auto* gemm = call.kernel.as<Kernel::gemm>())
      step = step_call(*gemm, call.operands);
    else if (const auto* rotate = call.kernel.as<Kernel::rotate>())
      step = step_call(*rotate, call.operands);
    else if (const auto* copy = call.kernel.as<Kernel::copy>())
      step = step_call(*copy, call.operands);
    if (!step) return std::nullopt;
    if (step->rows() * step->columns() > 0) out.push_back(std::move(*step));
  }
  return out;
}

}  // namespace reel::cuda
