#include "backends/cuda/codegen/loop_trace.h"

#include <algorithm>

#include "backends/cuda/codegen/run_text.h"

namespace reel::cuda {

namespace {

Access rows_of(const void* data, DType dtype, std::int64_t rows, std::int64_t columns) {
  return {{static_cast<std::byte*>(const_cast<void*>(data)), 0, false}, rows, columns, columns, 1, dtype, false};
}
Access row_for_all(const void* data, DType dtype, std::int64_t rows, std::int64_t columns) {
  Access out = rows_of(data, dtype, rows, columns);
  out.row = 0;
  return out;
}

bool alike(const FusedCall& a, const FusedCall& b) {
  return a.kind == b.kind && a.functor == b.functor && a.params == b.params && a.dtype == b.dtype && a.to == b.to &&
         std::equal(a.in, a.in + 3, b.in) && a.out == b.out;
}
bool alike(const LoopCall& a, const LoopCall& b) {
  const auto same_place = [](const Access& x, const Access& y) {
    return x.rows == y.rows && x.columns == y.columns && x.row == y.row && x.column == y.column && x.dtype == y.dtype &&
           x.local == y.local;
  };
  return a.kind == b.kind && a.transposed == b.transposed && a.sums == b.sums && a.first == b.first &&
         a.last == b.last && a.distance == b.distance &&
         std::equal(a.operands.begin(), a.operands.end(), b.operands.begin(), b.operands.end(), same_place) &&
         std::equal(a.calls.begin(), a.calls.end(), b.calls.begin(), b.calls.end(),
                    [](const FusedCall& x, const FusedCall& y) { return alike(x, y); });
}

}  // namespace

bool LoopTrace::add(LoopCall call) {
  steps_.back().push_back(std::move(call));
  return true;
}

bool LoopTrace::add(const FusedArgs& a) {
  LoopCall call;
  call.calls.assign(a.calls.begin(), a.calls.end());
  const std::vector<DType> dtypes = dtypes_of(a);
  for (std::size_t k = 0; k < a.operands.size(); ++k) {
    const FusedOperand& o = a.operands[k];
    call.operands.push_back({{o.data, 0, false}, a.rows, a.columns, o.row, o.column, dtypes[k], o.local});
    if (o.local) call.operands.back().walk.first = nullptr;
  }
  return add(std::move(call));
}

bool LoopTrace::add(const GemmArgs& a) {
  if (a.batch != 1 || a.transpose_a || is_complex(a.dtype) || !is_floating(a.dtype)) return false;
  LoopCall call{.kind = LoopCall::Kind::product, .transposed = a.transpose_b, .sums = a.k};
  const std::int64_t rows = a.transpose_b ? a.n : a.k, columns = a.transpose_b ? a.k : a.n;
  call.operands = {rows_of(a.a, a.dtype, a.m, a.k), rows_of(a.b, a.dtype, rows, columns),
                   rows_of(a.c, a.dtype, a.m, a.n)};
  return add(std::move(call));
}

bool LoopTrace::add(const RotateArgs& a) {
  if (!is_differentiable(a.dtype)) return false;
  LoopCall call{.kind = LoopCall::Kind::rotation, .first = a.first, .last = a.last, .distance = a.distance};
  call.operands = {rows_of(a.x, a.dtype, a.rows, a.n), rows_of(a.out, a.dtype, a.rows, a.n)};
  if (a.c) call.operands.push_back(row_for_all(a.c, a.dtype, a.rows, a.n));
  if (a.c) call.operands.push_back(row_for_all(a.s, a.dtype, a.rows, a.n));
  return add(std::move(call));
}

bool LoopTrace::add(const CopyArgs& a) {
  const bool flat = a.loop.rank == 1;
  if (a.loop.rank < 1 || a.loop.rank > 2) return false;
  const auto [in, out] = a.loop.inner_stride();
  if (in != 1 || out != 1) return false;
  LoopCall call{.kind = LoopCall::Kind::copy};
  const DType dtype = a.element_bytes == 4 ? DType::f32 : a.element_bytes == 8 ? DType::f64 : DType::boolean;
  if (size_of(dtype) != a.element_bytes) return false;
  const std::int64_t rows = flat ? 1 : a.loop.dims[0], columns = a.loop.inner_dim();
  for (const std::size_t k : {0U, 1U}) {
    call.operands.push_back(rows_of(k == 0 ? a.in : a.out, dtype, rows, columns));
    if (!flat) call.operands.back().row = a.loop.strides[0][k];
  }
  return add(std::move(call));
}

std::optional<std::vector<LoopCall>> LoopTrace::calls() const {
  if (std::ssize(steps_) != looked_at) return std::nullopt;
  std::vector<LoopCall> out = steps_[0];
  for (const auto& step : steps_) {
    if (!std::equal(step.begin(), step.end(), out.begin(), out.end(),
                    [](const LoopCall& a, const LoopCall& b) { return alike(a, b); }))
      return std::nullopt;
  }
  for (std::size_t c = 0; c < out.size(); ++c) {
    for (std::size_t k = 0; k < out[c].operands.size(); ++k) {
      std::byte* at[looked_at];
      for (std::size_t i = 0; i < looked_at; ++i) at[i] = steps_[i][c].operands[k].walk.first;
      LoopWalk& walk = out[c].operands[k].walk;
      walk.stride = at[1] - at[0];
      walk.buffers = walk.stride != 0 && at[2] == at[0];
      for (std::int64_t i = 0; i < looked_at; ++i) {
        if (walk.at(i) != at[i]) return std::nullopt;
      }
    }
  }
  return out;
}

std::optional<std::vector<LoopCall>> trace_loop(LoopTrace*& trace, std::int64_t steps,
                                                const std::function<void(std::int64_t i)>& step) {
  if (trace) throw NotTraceable();  // a nested loop
  if (steps < LoopTrace::looked_at) return std::nullopt;
  struct Looking {
    LoopTrace*& trace;
    ~Looking() { trace = nullptr; }
  } const looking{trace};
  LoopTrace here;
  trace = &here;
  try {
    for (std::int64_t i = 0; i < LoopTrace::looked_at; ++i) {
      here.start_step();
      step(i);
    }
  } catch (const NotTraceable&) {
    return std::nullopt;
  }
  return here.calls();
}

}  // namespace reel::cuda
