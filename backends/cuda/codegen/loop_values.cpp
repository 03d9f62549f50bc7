#include "backends/cuda/codegen/loop_values.h"

#include <algorithm>

#include "backends/shared/run_text.h"

namespace reel::cuda {

namespace {

using Kind = StepCall::Kind;

std::int64_t bytes_of(const Access& a) { return static_cast<std::int64_t>(size_of(a.dtype)); }
bool is_full(const Access& a) { return a.plain() && (a.row != 0 || a.rows == 1); }

/// The bytes [first, last) of a buffer that memory covers over all steps.
struct Range {
  int buffer;
  std::int64_t first, last;
  bool overlaps(const Range& o) const { return buffer == o.buffer && first < o.last && o.first < last; }
};
Range range_of(const Operand& walk, std::int64_t bytes, std::int64_t steps) {
  const std::int64_t a = walk.offset, b = walk.at(walk.double_buffered ? 1 : steps - 1);
  return {walk.buffer, std::min(a, b), std::max(a, b) + bytes};
}
Range range_of(const Access& a, std::int64_t steps) {
  return range_of(a.walk, bytes_of(a) * ((a.rows - 1) * a.row + a.span()), steps);
}

/// The previous step's walk.
Operand before(Operand w) {
  w.offset = w.double_buffered ? w.offset + w.stride : w.offset - w.stride;
  if (w.double_buffered) w.stride = -w.stride;
  return w;
}

/// The column of a value at which an access starts, if all that it reaches lies in the value's rows.
std::optional<std::int64_t> offset_in(const Access& a, const Operand& walk, std::int64_t width, DType dtype) {
  const std::int64_t apart = a.walk.offset - walk.offset, bytes = bytes_of(a);
  if (a.walk.buffer != walk.buffer || a.walk.stride != walk.stride || a.walk.double_buffered != walk.double_buffered ||
      bytes_of(a) != static_cast<std::int64_t>(size_of(dtype)))
    return std::nullopt;
  if (a.rows > 1 && a.row != width) return std::nullopt;
  if (apart < 0 || apart % bytes != 0 || apart / bytes + a.span() > width) return std::nullopt;
  return apart / bytes;
}

class Finder {
 public:
  Finder(std::vector<StepCall> calls, std::int64_t steps) : steps_(steps) { out_.calls = std::move(calls); }

  std::optional<LoopValues> find() {
    if (out_.calls.empty()) return std::nullopt;
    out_.rows = out_.calls[0].rows();
    for (const StepCall& call : out_.calls) out_.sources.emplace_back(call.operands.size());
    if (!each([&](int c, std::size_t k) { return !out_.writes(c, k) || add_write(c, k); })) return std::nullopt;
    if (!whole()) return std::nullopt;
    if (!each([&](int c, std::size_t k) { return out_.writes(c, k) || add_read(c, k); })) return std::nullopt;
    return std::move(out_);
  }

 private:
  Access& access(int call, std::size_t k) { return out_.calls[call].operands[k]; }

  template <class F>
  bool each(F f) {
    for (int c = 0; c < static_cast<int>(out_.calls.size()); ++c) {
      for (std::size_t k = 0; k < out_.calls[c].operands.size(); ++k) {
        if (!access(c, k).local && !f(c, k)) return false;
      }
    }
    return true;
  }

  bool add_write(int c, std::size_t k) {
    const Access& a = access(c, k);
    const std::int64_t width = a.rows > 1 ? a.row : a.columns;
    if (!is_full(a) || width < a.columns) return false;
    for (std::size_t v = 0; v < out_.values.size(); ++v) {
      LoopValue& value = out_.values[v];
      const std::int64_t room = width * bytes_of(a), apart = a.walk.offset - value.walk.offset;
      if (a.walk.buffer != value.walk.buffer || value.width != width || apart <= -room || apart >= room) continue;
      if (a.walk.stride != value.walk.stride || a.walk.double_buffered != value.walk.double_buffered) continue;
      if (apart < 0) value.walk.offset = a.walk.offset;
      value.writers.push_back(c);
      return true;
    }
    out_.values.push_back({a.walk, width, a.dtype, {c}});
    return true;
  }

  /// Is each value written completely and once, and do values not overlap?
  bool whole() {
    std::vector<std::int64_t> written(out_.values.size(), 0);
    const bool placed = each([&](int c, std::size_t k) {
      if (!out_.writes(c, k)) return true;
      for (std::size_t v = 0; v < out_.values.size(); ++v) {
        const LoopValue& value = out_.values[v];
        if (std::find(value.writers.begin(), value.writers.end(), c) == value.writers.end()) continue;
        const auto offset = offset_in(access(c, k), value.walk, value.width, value.dtype);
        if (!offset) continue;
        out_.sources[c][k] = {static_cast<int>(v), false, *offset};
        written[v] += access(c, k).columns;
        return true;
      }
      return false;
    });
    if (!placed) return false;
    std::vector<Range> ranges;
    for (std::size_t v = 0; v < out_.values.size(); ++v) {
      const LoopValue& value = out_.values[v];
      if (written[v] != value.width) return false;
      const std::int64_t bytes = out_.rows * value.width * static_cast<std::int64_t>(size_of(value.dtype));
      if (!value.walk.double_buffered && value.walk.stride != 0 && std::abs(value.walk.stride) < bytes) return false;
      ranges.push_back(range_of(value.walk, bytes, steps_));
      for (std::size_t u = 0; u < v; ++u) {
        if (ranges[v].overlaps(ranges[u])) return false;
      }
    }
    ranges_ = std::move(ranges);
    return true;
  }

  bool add_read(int c, std::size_t k) {
    const Access& a = access(c, k);
    const Range range = range_of(a, steps_);
    for (std::size_t v = 0; v < out_.values.size(); ++v) {
      const LoopValue& value = out_.values[v];
      const auto [first, last] = std::minmax_element(value.writers.begin(), value.writers.end());
      Source& source = out_.sources[c][k];
      if (const auto now = offset_in(a, value.walk, value.width, value.dtype)) {
        source = {static_cast<int>(v), false, *now};
        return *last < c;
      }
      if (const auto then = offset_in(a, before(value.walk), value.width, value.dtype);
          then && value.walk.stride != 0) {
        source = {static_cast<int>(v), true, *then};
        return c < *first || (c == *first && out_.calls[c].kind != Kind::product);
      }
      if (range.overlaps(ranges_[v])) return false;
    }
    return true;
  }

  LoopValues out_;
  std::int64_t steps_;
  std::vector<Range> ranges_;  // of values
};

}  // namespace

bool LoopValues::writes(std::size_t call, std::size_t operand) const {
  const StepCall& c = calls[call];
  if (c.kind != Kind::run) return operand == c.out();
  return std::any_of(c.calls.begin(), c.calls.end(),
                     [&](const FusedCall& f) { return static_cast<std::size_t>(f.out) == operand; });
}

std::optional<LoopValues> find_values(std::vector<StepCall> calls, const LoweredLoop& loop) {
  std::optional<LoopValues> out = Finder(std::move(calls), loop.steps).find();
  if (out) out->scratch = loop.scratch;
  return out;
}

}  // namespace reel::cuda
