#include "backends/cuda/codegen/step_calls.h"

#include <algorithm>

#include "backends/shared/run_text.h"
#include "ops/functors/binary.h"
#include "ops/functors/unary.h"

namespace reel::cuda {

namespace {

using Kind = StepCall::Kind;
using Operands = std::vector<Operand>;
using Step = std::optional<StepCall>;

/// The number of sequences, which all calls have as rows, or as several rows each: that of products, or else the least.
std::int64_t rows_of_batch(const LoweredLoop& loop) {
  std::optional<std::int64_t> least;
  const auto has = [&](std::int64_t rows) { least = std::min(rows, least.value_or(rows)); };
  for (const LoopCall& call : loop.calls) {
    if (const auto* gemm = call.kernel.as<Kernel::gemm>()) return gemm->m;
    if (const auto* fused = call.kernel.as<Kernel::fused>()) has(fused->rows);
    if (const auto* rotate = call.kernel.as<Kernel::rotate>()) has(rotate->rows);
    if (const auto* copy = call.kernel.as<Kernel::copy>(); copy && copy->loop.rank > 1) has(copy->loop.dims[0]);
    if (const auto* fft = call.kernel.as<Kernel::fft>()) has(fft->rows);
  }
  return least.value_or(1);
}

/// Reads the calls of a loop over `batch` sequences.
class Reader {
 public:
  explicit Reader(std::int64_t batch) : batch_(batch) {}

  Step read(const LoopCall& call) const {
    const Operands& at = call.operands;
    if (const auto* fused = call.kernel.as<Kernel::fused>()) return run(*fused, at);
    if (const auto* gemm = call.kernel.as<Kernel::gemm>()) return product(*gemm, at);
    if (const auto* rotate = call.kernel.as<Kernel::rotate>()) return rotation(*rotate, at);
    if (const auto* zip = call.kernel.as<Kernel::zip>()) return run(*zip, at);
    if (const auto* copy = call.kernel.as<Kernel::copy>()) return moved(*copy, at);
    if (const auto* reduce = call.kernel.as<Kernel::reduce>()) return sum(*reduce, at);
    if (const auto* rows = call.kernel.as<Kernel::row_function>()) return row_function(*rows, at);
    if (const auto* gather = call.kernel.as<Kernel::gather_rows>()) return lookup(Kind::gather, *gather, at);
    if (const auto* fft = call.kernel.as<Kernel::fft>()) return transform(*fft, at);
    return std::nullopt;
  }

  /// Zeros, and what is added to some of them.
  Step filled(const LoopCall& zeros, const LoopCall& next) const {
    const auto* fill = zeros.kernel.as<Kernel::fill>();
    if (!fill || fill->value != 0.0) return std::nullopt;
    if (next.kernel.as<Kernel::copy>()) return padded(zeros, *fill, next);
    const auto* sums = next.kernel.as<Kernel::segment_sum>();
    const bool all = sums && sums->outer * sums->rows * sums->width == fill->n && next.operands[2] == zeros.operands[0];
    return all ? lookup(Kind::scatter, *sums, next.operands) : std::nullopt;
  }

 private:
  /// A copy to some columns of zeros.
  Step padded(const LoopCall& zeros, const FillArgs& fill, const LoopCall& copy) const {
    if (fill.n % batch_ != 0) return std::nullopt;
    Step out = read(copy);
    if (!out || out->kind != Kind::copy) return std::nullopt;
    Access& to = out->operands[1];
    const Operand &all = zeros.operands[0], &part = to.walk;
    const std::int64_t width = fill.n / batch_, bytes = static_cast<std::int64_t>(size_of(fill.dtype)),
                       apart = part.offset - all.offset;
    if (part.buffer != all.buffer || part.stride != all.stride || part.double_buffered != all.double_buffered ||
        fill.dtype != to.dtype || !to.plain() || (batch_ > 1 && to.row != width) || apart < 0 ||
        apart / bytes + to.columns > width)
      return std::nullopt;
    out->first = apart / bytes;
    out->last = out->first + to.columns;
    to = whole(all, to.dtype, width);
    return out;
  }

  /// Elements in the order of axes, of which the first has the batch's rows, or several for each; none if it has not.
  std::optional<Access> access(const Operand& walk, DType dtype, std::vector<Axis> axes) const {
    Access out{walk, batch_, 1, 0, {}, dtype};
    if (batch_ > 1) {
      if (axes.empty() || axes[0].extent % batch_ != 0) return std::nullopt;
      axes[0].extent /= batch_;
      out.row = axes[0].stride * axes[0].extent;
    }
    for (const Axis& a : axes) {
      if (a.stride < 0) return std::nullopt;
      out.columns *= a.extent;
      if (a.extent == 1) continue;
      if (!out.axes.empty() && out.axes.back().stride == a.stride * a.extent)
        out.axes.back() = {out.axes.back().extent * a.extent, a.stride};
      else
        out.axes.push_back(a);
    }
    return out;
  }
  static std::vector<Axis> axis(std::int64_t extent, std::int64_t stride) {
    return extent == 1 ? std::vector<Axis>() : std::vector<Axis>{{extent, stride}};
  }
  Access whole(const Operand& walk, DType dtype, std::int64_t columns) const {
    return {walk, batch_, columns, columns, axis(columns, 1), dtype};
  }
  Access row_for_all(const Operand& walk, DType dtype, std::int64_t columns) const {
    return {walk, batch_, columns, 0, axis(columns, 1), dtype};
  }
  /// Adds an operand, if it can be read.
  bool add(StepCall& call, const std::optional<Access>& a) const {
    if (a) call.operands.push_back(*a);
    return a.has_value();
  }
  template <std::size_t N>
  static std::vector<Axis> axes_of(const StridedLoop<N>& loop, std::size_t operand) {
    std::vector<Axis> out;
    for (std::size_t i = 0; i < static_cast<std::size_t>(loop.rank); ++i)
      out.push_back({loop.dims[i], loop.strides[i][operand]});
    return out;
  }

  Step run(const FusedArgs& a, const Operands& at) const {
    if (has_rolls(a.calls) && a.rows != batch_) return std::nullopt;
    StepCall call;
    call.calls = a.calls;
    const std::vector<DType> dtypes = dtypes_of(a);
    for (std::size_t k = 0; k < a.operands.size(); ++k) {
      const FusedOperand& o = a.operands[k];
      if (!add(call, access(at[k], dtypes[k], {{a.rows, o.row}, {a.columns, o.column}}))) return std::nullopt;
      call.operands.back().local = o.local;
    }
    return call;
  }

  Step run(const ZipArgs& a, const Operands& at) const {
    StepCall call;
    call.calls = {{.kind = FusedCall::Kind::zip,
                   .functor = a.functor,
                   .params = a.params,
                   .dtype = a.dtype,
                   .in = {0, 1, -1},
                   .out = 2}};
    for (const std::size_t k : {0U, 1U, 2U}) {
      const DType dtype = k == 2 ? result_of_call(call.calls[0]) : a.dtype;
      if (!add(call, access(at[k], dtype, axes_of(a.loop, k)))) return std::nullopt;
    }
    return call;
  }

  Step product(const GemmArgs& a, const Operands& at) const {
    if (a.batch != 1 || a.transpose_a || a.k == 0 || a.m != batch_) return std::nullopt;
    if (is_complex(a.dtype)) return a.k == 1 ? outer(a, at) : a.n == 1 ? dot(a, at) : std::nullopt;
    if (!is_floating(a.dtype)) return std::nullopt;
    StepCall call{.kind = Kind::product, .transposed = a.transpose_b, .sums = a.k};
    const std::int64_t rows = a.transpose_b ? a.n : a.k, columns = a.transpose_b ? a.k : a.n;
    call.operands = {whole(at[0], a.dtype, a.k),
                     {at[1], rows, columns, columns, {{columns, 1}}, a.dtype},
                     whole(at[2], a.dtype, a.n)};
    return call;
  }

  /// The rows of a column by one row: elementwise.
  Step outer(const GemmArgs& a, const Operands& at) const {
    StepCall call;
    call.operands = {
        {at[0], batch_, a.n, 1, axis(a.n, 0), a.dtype}, row_for_all(at[1], a.dtype, a.n), whole(at[2], a.dtype, a.n)};
    FusedCall times{.kind = FusedCall::Kind::zip,
                    .functor = index_of<Mul, BinaryFunctors>,
                    .dtype = a.dtype,
                    .in = {0, 1, -1},
                    .out = 2};
    for (const int k : {0, 1}) {
      if (!(k == 0 ? a.conj_a : a.conj_b)) continue;
      Access conjugate = call.operands[StepCall::at(k)];
      conjugate.local = true;
      times.in[k] = static_cast<int>(call.operands.size());
      call.calls.push_back({.kind = FusedCall::Kind::map,
                            .functor = index_of<Conj, UnaryFunctors>,
                            .dtype = a.dtype,
                            .in = {k, -1, -1},
                            .out = times.in[k]});
      call.operands.push_back(conjugate);
    }
    call.calls.push_back(times);
    return call;
  }
  Step dot(const GemmArgs& a, const Operands& at) const {
    if (a.conj_a) return std::nullopt;
    StepCall call{.kind = Kind::dot, .conjugated = a.conj_b};
    call.operands = {{at[0], batch_, 1, a.k, {}, a.dtype}, whole(at[2], a.dtype, 1), row_for_all(at[1], a.dtype, a.k)};
    call.operands[0].terms = {{a.k, 1}};
    return call;
  }

  Step lookup(Kind kind, const RowsArgs& a, const Operands& at) const {
    if (a.outer != batch_ || a.count == 0 || a.rows == 0 || a.width != 1 || a.dtype == DType::boolean ||
        at[0].stride != 0)
      return std::nullopt;
    const std::int64_t in = kind == Kind::gather ? a.rows : a.count, out = kind == Kind::gather ? a.count : a.rows;
    StepCall call{.kind = kind};
    call.operands = {whole(at[1], a.dtype, in), whole(at[2], a.dtype, out), row_for_all(at[0], DType::i32, a.count)};
    return call;
  }

  Step transform(const FftArgs& a, const Operands& at) const {
    if (a.rows != batch_ || a.n < 2 || (a.n & (a.n - 1)) != 0) return std::nullopt;
    StepCall call{.kind = Kind::transform, .parameter = a.scale, .inverse = a.inverse};
    call.operands = {whole(at[0], a.dtype, a.n), whole(at[1], a.dtype, a.n)};
    return call;
  }

  Step rotation(const RotateArgs& a, const Operands& at) const {
    if (!is_differentiable(a.dtype) || a.rows != batch_) return std::nullopt;
    StepCall call{.kind = Kind::rotation, .first = a.first, .last = a.last, .distance = a.distance};
    const auto& [x, c, s, out] = std::tie(at[0], at[1], at[2], at[3]);
    call.operands = {whole(x, a.dtype, a.n), whole(out, a.dtype, a.n)};
    if (c.buffer >= 0) {
      call.operands.push_back(row_for_all(c, a.dtype, a.n));
      call.operands.push_back(row_for_all(s, a.dtype, a.n));
    }
    return call;
  }

  Step moved(const CopyArgs& a, const Operands& at) const {
    StepCall call{.kind = Kind::copy};
    for (const std::size_t k : {0U, 1U}) {
      if (!add(call, access(at[k], a.dtype, axes_of(a.loop, k)))) return std::nullopt;
    }
    return call;
  }

  Step sum(const ReduceArgs& a, const Operands& at) const {
    if (a.kind != Reduction::sum || !is_differentiable(a.dtype)) return std::nullopt;
    StepCall call{.kind = Kind::sum};
    const std::vector<Axis> in = axes_of(a.loop, 0), out = axes_of(a.loop, 1);
    std::vector<Axis> from, to, terms;
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (in[i].stride < 0) return std::nullopt;
      if (out[i].stride == 0) {
        terms.push_back(in[i]);
        continue;
      }
      from.push_back(in[i]);
      to.push_back(out[i]);
    }
    if (terms.empty() || !add(call, access(at[0], a.dtype, from)) || !add(call, access(at[1], a.dtype, to)))
      return std::nullopt;
    call.operands[0].terms = terms;
    return call;
  }

  Step row_function(const RowFunctionArgs& a, const Operands& at) const {
    const bool norm = a.function == RowFunction::norm;
    if ((!norm && a.function != RowFunction::standardize) || !is_floating(a.dtype) || a.n == 0) return std::nullopt;
    StepCall call{.kind = norm ? Kind::norm : Kind::standardize, .sums = a.n, .parameter = a.parameter};
    std::vector<Axis> in{{a.rows, a.n}}, out{{a.rows, norm ? 1 : a.n}};
    if (!norm) in.push_back({a.n, 1}), out.push_back({a.n, 1});
    if (!add(call, access(at[0], a.dtype, in)) || !add(call, access(at[1], a.dtype, out))) return std::nullopt;
    if (norm) call.operands[0].terms = {{a.n, 1}};
    return call;
  }

  std::int64_t batch_;
};

}  // namespace

std::optional<std::vector<StepCall>> step_calls(const LoweredLoop& loop) {
  const std::int64_t batch = rows_of_batch(loop);
  if (batch < 1) return std::nullopt;
  const Reader reader(batch);
  std::vector<StepCall> out;
  for (std::size_t i = 0; i < loop.calls.size(); ++i) {
    Step step = reader.read(loop.calls[i]);
    if (!step && i + 1 < loop.calls.size()) {
      step = reader.filled(loop.calls[i], loop.calls[i + 1]);
      ++i;
    }
    if (!step) return std::nullopt;
    if (step->rows() * step->columns() > 0) out.push_back(std::move(*step));
  }
  return out;
}

}  // namespace reel::cuda
