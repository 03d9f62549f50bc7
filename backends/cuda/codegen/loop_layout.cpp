#include "backends/cuda/codegen/loop_layout.h"

#include <algorithm>

#include "backends/cuda/kernels/plan.h"
#include "backends/shared/run_text.h"

namespace reel::cuda {

namespace {

using Kind = StepCall::Kind;
constexpr std::int64_t warp = 32, product_warps = 8, most_threads = 1024, most_lanes = 8;

std::int64_t up(std::int64_t n, std::int64_t by) { return (n + by - 1) / by * by; }
std::int64_t bytes_of(DType d) { return static_cast<std::int64_t>(size_of(d)); }
std::int64_t per_vector(DType d) { return 16 / bytes_of(d); }

/// For each operand of a call: is it read at another column than the result's?
std::vector<char> moved_operands(const StepCall& call) {
  std::vector<char> moved(call.operands.size(), 0);
  if (call.kind == Kind::product || call.kind == Kind::rotation) moved[0] = 1;
  if (call.kind != Kind::run || !has_rolls(call.calls)) return moved;
  // A roll shifts everything that its argument is computed from.
  for (std::size_t i = call.calls.size(); i-- > 0;) {
    const FusedCall& f = call.calls[i];
    const bool all = f.kind == FusedCall::Kind::roll || moved[f.out];
    for (int k = 0; k < 3; ++k) {
      if (f.in[k] >= 0 && all) moved[f.in[k]] = 1;
    }
  }
  return moved;
}

/// How a call reads an operand; `moved`: at other columns.
ReadPath read_path(const LoopValues& loop, std::size_t c, std::size_t operand, bool moved) {
  const StepCall& call = loop.calls[c];
  const Source& s = loop.source(c, operand);
  if (!s.made()) return ReadPath::memory;
  const LoopValue& v = loop.values[s.value];
  if (moved || s.offset != 0 || v.width != call.columns() || v.writers.size() > 1) return ReadPath::shared;
  return loop.from_product(s.value) ? ReadPath::tile : ReadPath::register_;
}

class Planner {
 public:
  Planner(const LoopValues& loop, const LoopLimits& limits) : loop_(loop), limits_(limits) {}

  std::optional<LoopLayout> plan() {
    out_.storage.resize(loop_.values.size());
    if (!find_rooms()) return std::nullopt;
    find_stages();
    if (loop_.rows * widest_ >= std::int64_t{1} << 31) return std::nullopt;
    if (products_ ? !share_products() : !share_elements()) return std::nullopt;
    for (const StepCall& call : loop_.calls) {
      if (out_.lanes(call.columns()) > most_lanes) return std::nullopt;
    }
    place_waits();
    if (products_ && !is_profitable()) return std::nullopt;
    return std::move(out_);
  }

 private:
  ValueStorage& storage(int value) { return out_.storage[value]; }
  const LoopValue& value(int v) const { return loop_.values[v]; }

  bool find_rooms() {
    for (std::size_t c = 0; c < loop_.calls.size(); ++c) {
      const StepCall& call = loop_.calls[c];
      const std::vector<char> moved = moved_operands(call);
      std::vector<ReadPath>& read_paths = out_.read_paths.emplace_back(call.operands.size(), ReadPath::memory);
      for (std::size_t k = 0; k < call.operands.size(); ++k) {
        if (call.operands[k].local) continue;
        read_paths[k] = read_path(loop_, c, k, moved[k] != 0);
        const Source& s = loop_.source(c, k);
        if (!s.made()) {
          if (call.kind == Kind::product && (k == 0 || call.operands[k].walk.stride != 0)) return false;
          continue;
        }
        ValueStorage& r = storage(s.value);
        if (loop_.writes(c, k)) {
          r.tile = r.tile || call.kind == Kind::product;
          if (call.kind == Kind::product && value(s.value).writers.size() > 1) return false;
          continue;
        }
        if (call.kind == Kind::product && k == 1) return false;  // no support for a product of two values
        r.before = r.before || s.before;
        if (read_paths[k] == ReadPath::register_) r.in_register = true;
        if (read_paths[k] == ReadPath::shared) {
          r.shared = true;
          if (s.before && call.kind != Kind::product) r.versions = 2;
          moves_ = moves_ || call.kind != Kind::product;
          widest_ = std::max(widest_, value(s.value).width);
        }
      }
    }
    return true;
  }

  /// Groups independent products into one stage.
  void find_stages() {
    for (int c = 0; c < static_cast<int>(loop_.calls.size()); ++c) {
      const StepCall& call = loop_.calls[c];
      widest_ = std::max(widest_, call.columns());
      if (call.kind != Kind::product) {
        out_.stages.push_back({.call = c});
        continue;
      }
      products_ = true;
      const bool joins = !out_.stages.empty() && out_.stages.back().is_products() && !waits_for(out_.stages.back(), c);
      if (!joins) out_.stages.emplace_back();
      std::vector<ProductGroup>& groups = out_.stages.back().groups;
      const auto same = std::find_if(groups.begin(), groups.end(), [&](const ProductGroup& g) {
        const StepCall& other = loop_.calls[g.calls[0]];
        return other.operands[0].walk == call.operands[0].walk && other.columns() == call.columns() &&
               other.sums == call.sums && other.transposed == call.transposed;
      });
      if (same != groups.end())
        same->calls.push_back(c);
      else
        groups.push_back({.calls = {c}});
    }
  }
  /// Does a product need a barrier after a stage: does it read the stage's results, or overwrite what the stage reads
  /// from the previous step?
  bool waits_for(const LoopStage& stage, std::size_t product) const {
    const Source &x = loop_.source(product, 0), &out = loop_.source(product, 2);
    const std::vector<int> calls = stage.calls();
    return std::any_of(calls.begin(), calls.end(), [&](int c) {
      const Source &other = loop_.source(c, 0), &made = loop_.source(c, 2);
      return (!x.before && x.value == made.value) || (other.before && other.value == out.value);
    });
  }

  /// Without products: one row per block if elements move along rows, else one element per thread.
  bool share_elements() {
    const bool any_shared =
        std::any_of(out_.storage.begin(), out_.storage.end(), [](const ValueStorage& r) { return r.shared; });
    constexpr std::int64_t usual = 128;
    if (any_shared) {
      out_.threads = static_cast<int>(std::min<std::int64_t>(up(widest_, warp), most_threads));
      if (widest_ > 4 * most_threads) return false;
    } else {
      out_.threads = usual;
      out_.slices = (widest_ + usual - 1) / usual;
      out_.rows = std::max<std::int64_t>(1, usual / widest_);
    }
    out_.groups = (loop_.rows + out_.rows - 1) / out_.rows;
    place_values(0);
    return out_.bytes <= limits_.shared;
  }

  /// With products: the fewest slices whose weights fit in registers, and more if SMs would stay idle.
  bool share_products() {
    out_.threads = static_cast<int>(product_warps * warp);
    const std::int64_t processors = limits_.processors;
    std::int64_t columns = 0;
    for (const StepCall& call : loop_.calls) {
      if (call.kind == Kind::product) columns = std::max(columns, call.columns());
    }
    const bool one_width = std::all_of(loop_.calls.begin(), loop_.calls.end(),
                                       [&](const StepCall& call) { return call.columns() == columns; });
    for (std::int64_t slices = 1; slices <= std::min(processors, columns);) {
      if (slices > 1 && (!one_width || moves_)) return false;
      if (share(slices, columns)) return true;
      const std::int64_t now = (columns + slices - 1) / slices;  // the next number that shrinks the slices
      slices = now == 1 ? columns + 1 : (columns + now - 2) / (now - 1);
    }
    return false;
  }

  bool share(std::int64_t slices, std::int64_t columns) {
    if (slices > 1) {
      const std::int64_t groups = std::min(loop_.rows, limits_.processors / slices);
      const std::int64_t width = (columns + limits_.processors / groups - 1) / (limits_.processors / groups);
      slices = (columns + width - 1) / width;
    }
    out_.slices = slices;
    out_.rows = (loop_.rows + limits_.processors / slices - 1) / (limits_.processors / slices);
    out_.groups = (loop_.rows + out_.rows - 1) / out_.rows;
    std::int64_t weights = 0;
    for (LoopStage& stage : out_.stages) {
      for (ProductGroup& g : stage.groups) {
        if (!share_group(g)) return false;
        weights += std::int64_t{16} * g.columns * g.vectors;
      }
    }
    if (weights > limits_.weights) return false;
    // All rows at a time if they fit in shared memory, else fewer.
    for (out_.chunk = up(out_.rows, most_at_a_time()); out_.chunk > 0; out_.chunk -= most_at_a_time()) {
      place_values(place_arena());
      if (out_.bytes <= limits_.shared) return true;
      if (slices == 1) return false;
    }
    return false;
  }

  int most_at_a_time() const {
    int out = 1;
    for (const LoopStage& stage : out_.stages) {
      for (const ProductGroup& g : stage.groups) out = std::max(out, g.rows);
    }
    return out;
  }

  /// Divides the columns and sums of products among a block's warps, by the least cost in multiplications, shared
  /// memory reads and lane exchanges, in SM cycles per row.
  bool share_group(ProductGroup& g) {
    const StepCall& call = loop_.calls[g.calls[0]];
    const std::int64_t v = per_vector(call.operands[0].dtype), all = out_.slice(call.columns()) * std::ssize(g.calls);
    const bool whole = std::any_of(g.calls.begin(), g.calls.end(), [&](int c) {  // no partial sums
      const int v = loop_.source(c, 2).value;
      return storage(v).shared || is_slab(value(v).walk);
    });
    double best = 0;
    bool found = false;
    for (std::int64_t along = 1; along <= (whole ? 1 : product_warps); along *= 2) {
      const std::int64_t columns = (all + product_warps / along - 1) / (product_warps / along);
      const std::int64_t vectors = (call.sums + along * warp * v - 1) / (along * warp * v);
      if (columns > warp || 16 * columns * vectors > limits_.weights) continue;
      std::int64_t rows = std::min<std::int64_t>(warp / power_of_two(columns, warp), 8);
      while (rows > 1 && rows / 2 >= out_.rows) rows /= 2;
      const std::int64_t sums = power_of_two(columns * rows, warp);
      std::int64_t exchanges = sums - 1;  // then those of a single sum, at the remaining distances
      for (std::int64_t lanes = sums; lanes < warp; lanes *= 2) ++exchanges;
      const auto multiply = static_cast<double>(product_warps * columns * vectors * v) / 4,
                 read = static_cast<double>(product_warps * vectors * 4),
                 exchange = static_cast<double>(product_warps * exchanges) / static_cast<double>(rows);
      const double cost = std::max(multiply, read + exchange) + std::min(multiply, read + exchange) / 4;
      if (found && cost >= best) continue;
      found = true;
      best = cost;
      g.warps_along = static_cast<int>(along);
      g.columns = static_cast<int>(columns);
      g.vectors = static_cast<int>(vectors);
      g.rows = static_cast<int>(rows);
      g.pitch = along * warp * v * vectors;
    }
    return found;
  }

  /// Places the arena for values of other blocks that products read, shared by all stages; returns its bytes.
  std::int64_t place_arena() {
    if (out_.slices == 1) return 0;
    std::int64_t most = 0;
    for (LoopStage& stage : out_.stages) {
      std::int64_t at = 0;
      for (ProductGroup& g : stage.groups) {
        g.arena_at = at;
        at += up(out_.chunk * g.pitch * bytes_of(loop_.calls[g.calls[0]].operands[0].dtype), 16);
      }
      most = std::max(most, at);
    }
    return most;
  }

  void place_values(std::int64_t at) {
    const std::int64_t rows = out_.rows_in_shared = up(out_.rows, most_at_a_time());
    out_.scratch = 0;
    for (std::size_t v = 0; v < out_.storage.size(); ++v) {
      ValueStorage& r = out_.storage[v];
      const LoopValue& value = loop_.values[v];
      if (r.shared && out_.slices == 1) {
        r.pitch = up(value.width, per_vector(value.dtype));
        for (const LoopStage& stage : out_.stages) {
          for (const ProductGroup& g : stage.groups) {
            if (loop_.source(g.calls[0], 0).value == static_cast<int>(v)) r.pitch = std::max(r.pitch, g.pitch);
          }
        }
        r.shared_at = at;
        at += up(r.versions * rows * r.pitch * bytes_of(value.dtype), 16);
      }
      const bool others_read = r.shared && out_.slices > 1 && value.walk.stride == 0;  // while the next is made
      r.scratch_at = others_read ? out_.scratch : -1;
      if (others_read) out_.scratch += up(2 * loop_.rows * value.width * bytes_of(value.dtype), 256);
      if (!r.tile) continue;
      for (const LoopStage& stage : out_.stages) {
        for (const ProductGroup& g : stage.groups) {
          if (std::find(g.calls.begin(), g.calls.end(), value.writers[0]) != g.calls.end()) r.planes = g.warps_along;
        }
      }
      r.tile_at = at;
      at += up(r.planes * rows * out_.slice(value.width) * bytes_of(value.dtype), 16);
    }
    out_.bytes = at;
  }

  /// A stage's access to shared memory. A double-buffered value alternates between versions 0 and 1.
  struct Touch {
    int value;
    bool tile, writes;
    int version;
    bool clashes(const Touch& o) const {
      return value == o.value && tile == o.tile && version == o.version && (writes || o.writes);
    }
  };
  std::vector<Touch> touches(const LoopStage& stage, int step) const {
    std::vector<Touch> out;
    for (const int c : stage.calls()) {
      for (std::size_t k = 0; k < loop_.calls[c].operands.size(); ++k) {
        const Source& s = loop_.source(c, k);
        if (!s.made()) continue;
        const ValueStorage& r = out_.storage[s.value];
        const ReadPath how = out_.read_paths[c][k];
        const bool writes = loop_.writes(c, k);
        const int version = r.versions == 1 ? 0 : (step + (s.before ? 0 : 1)) % 2;
        if (r.shared && out_.slices == 1 && (writes || how == ReadPath::shared))
          out.push_back({s.value, false, writes, version});
        if (r.tile && (writes || how == ReadPath::tile)) out.push_back({s.value, true, writes, 0});
      }
    }
    return out;
  }

  /// Places barriers by simulating a few steps: a barrier that any step needs is there in all of them.
  void place_waits() {
    std::vector<Touch> since;
    std::vector<char> changed(loop_.values.size(), 0);  // in global memory, since the last group barrier
    for (int step = 0; step < 4; ++step) {
      for (LoopStage& stage : out_.stages) {
        const std::vector<Touch> now = touches(stage, step);
        for (const Touch& a : now) {
          for (const Touch& b : since) {
            if (a.clashes(b) && stage.wait == LoopStage::Wait::none) stage.wait = LoopStage::Wait::block;
          }
        }
        if (stage.is_products() && out_.slices > 1) {  // other blocks' results come through global memory
          if (stage.wait == LoopStage::Wait::none) stage.wait = LoopStage::Wait::block;
          for (const ProductGroup& g : stage.groups) {
            if (changed[loop_.source(g.calls[0], 0).value]) stage.wait = LoopStage::Wait::group;
          }
        }
        if (stage.wait != LoopStage::Wait::none) since.clear();
        if (stage.wait == LoopStage::Wait::group) changed.assign(changed.size(), 0);
        since.insert(since.end(), now.begin(), now.end());
        for (const int c : stage.calls()) {
          for (std::size_t k = 0; k < loop_.calls[c].operands.size(); ++k) {
            if (loop_.source(c, k).made() && loop_.writes(c, k)) changed[loop_.source(c, k).value] = 1;
          }
        }
      }
    }
    for (const LoopStage& stage : out_.stages) out_.barriers += stage.wait == LoopStage::Wait::group;
  }

  /// Is one kernel faster than one for each call? Estimates microseconds per step from the multiply rates of one SM and
  /// of the whole GPU, the cost of a launch in a captured graph, and the cost of a barrier.
  bool is_profitable() const {
    constexpr double one = 1.0e5, all = 4.0e7, launch = 2.2, group_wait = 1.2, step = 0.4;
    double mine = 0, of_all = 0;
    for (const StepCall& call : loop_.calls) {
      if (call.kind != Kind::product) continue;
      mine += static_cast<double>(out_.rows * out_.slice(call.columns()) * call.sums);
      of_all += 2 * static_cast<double>(loop_.rows * call.columns() * call.sums);
    }
    const double scale = loop_.values[0].dtype == DType::f64 ? 2 : 1;
    return step + scale * mine / one + group_wait * out_.barriers <
           scale * of_all / all * 132 / limits_.processors + launch * static_cast<double>(loop_.calls.size());
  }

  const LoopValues& loop_;
  const LoopLimits& limits_;
  LoopLayout out_;
  bool products_ = false, moves_ = false;  // moves_: some call reads other columns
  std::int64_t widest_ = 1;
};

}  // namespace

std::vector<int> LoopStage::calls() const {
  std::vector<int> out;
  if (!is_products()) out.push_back(call);
  for (const ProductGroup& g : groups) out.insert(out.end(), g.calls.begin(), g.calls.end());
  return out;
}

std::optional<LoopLayout> lay_out_loop(const LoopValues& loop, const LoopLimits& limits) {
  return Planner(loop, limits).plan();
}

}  // namespace reel::cuda
