#include "backends/cpu/codegen/row_calls.h"

#include <algorithm>

#include "backends/shared/run_text.h"

namespace reel::cpu {

namespace {

constexpr std::int64_t fewest = 8;  // numbers of a row: shorter rows are faster as one long row
constexpr std::int64_t most = 8;    // arrays: more are faster read from end to end than a row of each at a time

std::int64_t bytes_of(DType d) { return static_cast<std::int64_t>(size_of(d)); }

RowCall of_group(const FusedArgs& group) {
  RowCall out{group.rows, {}, group.columns * std::ssize(group.calls)};
  const std::vector<int> maker = makers_of(group.calls, group.operands.size());
  const std::vector<DType> dtypes = dtypes_of(group);
  for (const bool written : {false, true}) {
    for (std::size_t o = 0; o < group.operands.size(); ++o) {
      const FusedOperand& operand = group.operands[o];
      if ((maker[o] >= 0) != written || (operand.local && written)) continue;
      const auto element = static_cast<std::int64_t>(operand.element_bytes);
      const std::int64_t row = operand.local ? 0 : operand.row * element;
      out.accesses.push_back({o, {}, row, operand.column == 0 ? element : group.columns * element, written, dtypes[o]});
    }
  }
  return out;
}

RowCall of_rotation(const RotateArgs& r) {
  const std::int64_t row = r.n * bytes_of(r.dtype);
  RowCall out{r.rows, {{0, {}, row, row, false, r.dtype}}, r.n};
  if (r.c) out.accesses.push_back({1, {}, 0, row, false, r.dtype});
  if (r.c) out.accesses.push_back({2, {}, 0, row, false, r.dtype});
  out.accesses.push_back({3, {}, row, row, true, r.dtype});
  return out;
}

RowCall of_rows(const RowsArgs& r, bool gather) {
  const std::int64_t row = r.width * bytes_of(r.dtype), table = r.rows * row;
  const RowAccess index{0, {}, 4, 4, false, DType::i32, r.rows};
  if (gather) return {r.count, {index, {1, {}, 0, table, false, r.dtype}, {2, {}, row, row, true, r.dtype}}, r.width};
  return {r.count, {index, {1, {}, row, row, false, r.dtype}, {2, {}, 0, table, true, r.dtype}}, r.width};
}

RowCall of_sum(const SumRowsArgs& s) {
  const std::int64_t row = s.n * bytes_of(s.dtype);
  return {s.rows,
          {{0, {}, row, row, false, s.dtype}, {1, {}, row, row, false, s.dtype}, {2, {}, 0, row, true, s.dtype}},
          s.n};
}

RowCall of_copy(const CopyArgs& c) {
  const std::int64_t element = bytes_of(c.dtype), bytes = c.loop.inner_dim() * element;
  const auto& row = c.loop.strides[0];
  return {c.loop.dims[0],
          {{0, {}, row[0] * element, bytes, false, c.dtype}, {1, {}, row[1] * element, bytes, true, c.dtype}},
          c.loop.inner_dim()};
}
/// Are the elements of a row side by side, and rows apart?
bool copies_rows(const CopyArgs& c) {
  return c.loop.rank == 2 && c.loop.inner_stride() == StridedLoop<2>::Offsets{1, 1} && c.loop.inner_dim() >= fewest &&
         c.loop.strides[0][0] >= 0 && c.loop.strides[0][1] >= c.loop.inner_dim() && is_differentiable(c.dtype);
}

/// Do two accesses to one buffer touch the same bytes in some step?
enum class Overlap { none, same_rows, other };
Overlap overlap(const RowAccess& a, std::int64_t rows_a, const RowAccess& b, std::int64_t rows_b) {
  const auto apart = [&](std::int64_t i) {
    const std::int64_t of_a = a.at.at(i), of_b = b.at.at(i);
    return of_a + a.end(rows_a) - a.at.offset <= of_b || of_b + b.end(rows_b) - b.at.offset <= of_a;
  };
  const bool alike = a.at.stride == b.at.stride && a.at.double_buffered == b.at.double_buffered;
  const bool known = alike || (a.at.double_buffered && b.at.double_buffered);
  if (known && apart(0) && (!a.at.double_buffered || apart(1))) return Overlap::none;
  const std::int64_t first = std::min(a.at.offset, b.at.offset),
                     end = std::max(a.at.offset + a.bytes, b.at.offset + b.bytes);
  return alike && a.row == b.row && end - first <= a.row ? Overlap::same_rows : Overlap::other;
}

}  // namespace

std::optional<RowCall> row_call(const LoopCall& call, int scratch) {
  std::optional<RowCall> out;
  if (const FusedArgs* group = call.kernel.as<Kernel::fused>(); group && group->columns >= fewest)
    out = of_group(*group);
  else if (const RotateArgs* r = call.kernel.as<Kernel::rotate>(); r && r->n >= fewest)
    out = of_rotation(*r);
  else if (const RowsArgs* from = call.kernel.as<Kernel::gather_rows>();
           from && from->outer == 1 && from->width >= fewest && from->rows > 0)
    out = of_rows(*from, true);
  else if (const RowsArgs* to = call.kernel.as<Kernel::segment_sum>();
           to && to->outer == 1 && to->width >= fewest && to->rows > 0)
    out = of_rows(*to, false);
  else if (const SumRowsArgs* s = call.kernel.as<Kernel::sum_rows>();
           s && s->n >= fewest && (is_floating(s->dtype) || call.operands[1].buffer < 0))
    out = of_sum(*s);
  else if (const CopyArgs* c = call.kernel.as<Kernel::copy>(); c && copies_rows(*c))
    out = of_copy(*c);
  if (!out || out->rows == 0) return std::nullopt;
  if (call.kernel.as<Kernel::sum_rows>() && call.operands[1].buffer < 0) out->accesses.erase(out->accesses.begin() + 1);
  std::int64_t arrays = 0;  // but for values of the step, which are near
  for (RowAccess& access : out->accesses) {
    if (access.operand >= call.operands.size() || call.operands[access.operand].buffer < 0) return std::nullopt;
    access.at = call.operands[access.operand];
    arrays += access.at.buffer == scratch ? 0 : 1;
  }
  if (arrays > most) return std::nullopt;
  return out;
}

bool may_go_row_by_row(const RowCall& earlier, const RowCall& later) {
  for (const RowAccess& a : earlier.accesses) {
    for (const RowAccess& b : later.accesses) {
      if ((a.written || b.written) && a.at.buffer == b.at.buffer &&
          overlap(a, earlier.rows, b, later.rows) == Overlap::other)
        return false;
    }
  }
  return true;
}

}  // namespace reel::cpu
