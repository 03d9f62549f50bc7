// The calls of a loop's step, as far as one kernel can make all of them: fusion groups, products, rotations, copies,
// lookups of columns, sums along rows, Fourier transforms.
#pragma once
#include <optional>
#include <vector>

#include "engine/device/lowered_loop.h"

namespace reel::cuda {

struct Axis {
  std::int64_t extent = 0, stride = 0;  // in elements
};

/// Memory that a call reads or writes: element (r, c) lies r * row elements from the start, and as many more as the
/// digits of c times the strides of `axes`, outermost first. Several axes are needed where a row of the batch is
/// several rows of the call.
struct Access {
  Operand walk;
  std::int64_t rows = 0, columns = 0;
  std::int64_t row = 0;         // 0: all rows read the same
  std::vector<Axis> axes = {};  // without those of extent 1
  DType dtype = DType::f32;
  bool local = false;            // inside a fusion group, without memory
  std::vector<Axis> terms = {};  // of a sum: what is added for each column

  /// Do columns lie side by side?
  bool plain() const { return axes.empty() || (axes.size() == 1 && axes[0].stride == 1); }
  /// Do all columns read the same element?
  bool flat() const { return axes.empty() || (axes.size() == 1 && axes[0].stride == 0); }
  /// Elements of a row from the first to the last, both included.
  std::int64_t span() const {
    std::int64_t out = 1;
    for (const Axis& a : axes) out += (a.extent - 1) * a.stride;
    for (const Axis& a : terms) out += (a.extent - 1) * a.stride;
    return out;
  }
};

/// A call of a step, on the rows of a batch.
struct StepCall {
  enum class Kind {
    run,
    product,
    rotation,
    copy,
    gather,   // column j of out is column index[j] of in
    scatter,  // column index[j] of out has column j of in added
    sum,
    dot,  // by a vector
    norm,
    standardize,
    transform,
  } kind = Kind::run;
  /// The operands. For a fusion group (run): all of the group, results included. For a product: a, b, out (a and out
  /// have the batch's rows, b is [columns, sums] or its transpose). For a rotation: x, out, and c and s unless it is
  /// only an exchange. For all others: in, out; and the index (gather, scatter) or the vector (dot).
  std::vector<Access> operands = {};
  std::vector<FusedCall> calls = {};               // run
  bool transposed = false;                         // product: b is [columns, sums]
  std::int64_t sums = 0;                           // product; standardize: columns of a row
  std::int64_t first = 0, last = 0, distance = 0;  // rotation; a copy that pads: columns that are not 0
  double parameter = 0;     // of norm and standardize, as in RowFunctionArgs; the scale of a transform
  bool conjugated = false;  // dot: the vector
  bool inverse = false;     // transform
  std::int64_t rows() const { return operands[out()].rows; }
  std::int64_t columns() const { return operands[out()].columns; }
  /// The operand that is written; for a fusion group one of them.
  std::size_t out() const { return kind == Kind::run ? at(calls.back().out) : kind == Kind::product ? 2 : 1; }
  /// Does each result depend on several columns, which threads add together?
  bool reduces() const {
    return kind == Kind::sum || kind == Kind::dot || kind == Kind::norm || kind == Kind::standardize;
  }
  bool has_index() const { return kind == Kind::gather || kind == Kind::scatter; }
  /// Does a thread compute other elements than those of its own columns?
  bool crosses() const { return reduces() || kind == Kind::transform; }
  /// A copy of fewer columns than it writes.
  bool pads() const { return kind == Kind::copy && operands[0].columns < columns(); }
  static std::size_t at(int operand) { return static_cast<std::size_t>(operand); }
};

/// The calls of a step; none if there is one that a loop kernel cannot make.
std::optional<std::vector<StepCall>> step_calls(const LoweredLoop& loop);

}  // namespace reel::cuda
