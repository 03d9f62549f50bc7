#include "backends/cuda/codegen/loop_layout.h"

#include <algorithm>

#include "backends/cuda/codegen/loop_reads.h"
#include "backends/cuda/codegen/product_groups.h"

namespace reel::cuda {

namespace {

using Kind = StepCall::Kind;
constexpr std::int64_t most_threads = 1024, most_lanes = 8;

std::int64_t up(std::int64_t n, std::int64_t by) { return (n + by - 1) / by * by; }
std::int64_t bytes_of(DType d) { return static_cast<std::int64_t>(size_of(d)); }
std::int64_t per_vector(DType d) { return 16 / bytes_of(d); }

class Planner {
 public:
  Planner(const LoopValues& loop, const LoopLimits& limits) : loop_(loop), limits_(limits) {}

  std::optional<LoopLayout> plan() {
    out_.storage.resize(loop_.values.size());
    if (!find_rooms()) return std::nullopt;
    find_stages();
    if (std::max(loop_.rows * widest_, farthest_) >= std::int64_t{1} << 31) return std::nullopt;  // offsets are int
    if (products_ ? !share_products() : !share_elements()) return std::nullopt;
    for (const StepCall& call : loop_.calls) {
      if (out_.lanes(call.columns()) > most_lanes) return std::nullopt;
    }
    place_waits();
    if (products_ && !limits_.always && kernel_step(loop_, out_, limits_) >= call_step(loop_, limits_))
      return std::nullopt;
    return std::move(out_);
  }

 private:
  ValueStorage& storage(int value) { return out_.storage[value]; }
  const LoopValue& value(int v) const { return loop_.values[v]; }

  bool find_rooms() {
    for (std::size_t c = 0; c < loop_.calls.size(); ++c) {
      const StepCall& call = loop_.calls[c];
      const std::vector<char> moved = moved_operands(call);
      if (call.kind == Kind::transform) {  // all of one size
        const bool same = !transform_ || (transform_->columns() == call.columns() &&
                                          transform_->operands[0].dtype == call.operands[0].dtype);
        if (!same) return false;
        transform_ = &call;
      }
      std::vector<ReadPath>& read_paths = out_.read_paths.emplace_back(call.operands.size(), ReadPath::memory);
      for (std::size_t k = 0; k < call.operands.size(); ++k) {
        if (call.operands[k].local) continue;
        read_paths[k] = read_path(loop_, c, k, moved[k] != 0);
        const Source& s = loop_.source(c, k);
        if (!s.made()) {
          if (k == 0 && (call.kind == Kind::product || reads_shared(call))) return false;
          if (call.kind == Kind::product && call.operands[k].walk.stride != 0) return false;
          continue;
        }
        if (k == 2 && (call.has_index() || call.kind == Kind::dot)) return false;  // the index, the vector
        ValueStorage& r = storage(s.value);
        if (loop_.writes(c, k)) {
          r.tile = r.tile || call.kind == Kind::product;
          if (call.kind == Kind::product && value(s.value).writers.size() > 1) return false;
          continue;
        }
        if (call.kind == Kind::product && k == 1) return false;  // no support for a product of two values
        if (call.kind == Kind::product && s.offset != 0) return false;
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
      for (const Access& a : call.operands) farthest_ = std::max(farthest_, (loop_.rows - 1) * a.row + a.span());
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
      out_.threads = static_cast<int>(std::min<std::int64_t>(up(widest_, warp_lanes), most_threads));
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

  /// With products: the fewest slices whose weights fit in registers, and more if SMs would stay idle; or no slices and
  /// weights in shared memory, too; or by tensor cores, which work on 16 rows at a time, in any number of slices. Of
  /// several ways, the one of the least cost.
  bool share_products() {
    out_.threads = static_cast<int>(product_warps * warp_lanes);
    const std::int64_t processors = limits_.processors;
    std::int64_t columns = 0;
    for (const StepCall& call : loop_.calls) {
      if (call.kind == Kind::product) columns = std::max(columns, call.columns());
    }
    const bool one_width = std::all_of(loop_.calls.begin(), loop_.calls.end(),
                                       [&](const StepCall& call) { return call.columns() == columns; });
    const std::vector<LoopStage> found = out_.stages;
    std::optional<LoopLayout> best;
    double least = 0;
    const auto try_all = [&](std::int64_t slices, int tensor_products) {
      bool fits = false;
      for (const Grouping how : {Grouping::by_factor, Grouping::halved, Grouping::merged, Grouping::apart}) {
        out_.stages = found;
        for (LoopStage& stage : out_.stages) stage.groups = regroup(loop_, stage.groups, how);
        if (!share(slices, columns, tensor_products)) continue;
        place_waits();
        fits = fits || out_.slices > 1 || !has_shared_weights();
        const double cost = kernel_step(loop_, out_, limits_);
        if (best && cost >= least) continue;
        least = cost;
        best = out_;
      }
      return fits;
    };
    bool fits = false;
    for (std::int64_t slices = 1; slices <= std::min(processors, columns);) {
      if (slices > 1 && (!one_width || moves_)) break;
      fits = fits || try_all(slices, 0);  // no further slices then
      if (limits_.tensor_products > 0)
        try_all(slices, limits_.tensor_products);
      else if (fits)
        break;
      const std::int64_t now = (columns + slices - 1) / slices;  // the next number that shrinks the slices
      slices = now == 1 ? columns + 1 : (columns + now - 2) / (now - 1);
    }
    if (best) out_ = std::move(*best);
    return best.has_value();
  }
  bool has_shared_weights() const {
    return std::any_of(out_.stages.begin(), out_.stages.end(), [](const LoopStage& stage) {
      return std::any_of(stage.groups.begin(), stage.groups.end(),
                         [](const ProductGroup& g) { return g.weights_at >= 0; });
    });
  }

  bool share(std::int64_t slices, std::int64_t columns, int tensor_products) {
    if (slices > 1) {
      const std::int64_t groups = std::min(loop_.rows, limits_.processors / slices);
      const std::int64_t width = (columns + limits_.processors / groups - 1) / (limits_.processors / groups);
      slices = (columns + width - 1) / width;
    }
    out_.slices = slices;
    out_.rows = (loop_.rows + limits_.processors / slices - 1) / (limits_.processors / slices);
    out_.groups = (loop_.rows + out_.rows - 1) / out_.rows;
    // Of registers, of which products by tensor cores need fewer besides; of shared memory.
    std::int64_t left = limits_.weights * (tensor_products > 0 ? 4 : 3) / 3, in_shared = 0;
    for (LoopStage& stage : out_.stages) {
      for (ProductGroup& g : stage.groups) {
        if (share_group(g, left, false, tensor_products)) {
          left -= g.weight_bytes();
        } else {
          if (slices > 1 || !share_group(g, limits_.shared_weights / out_.threads, true, tensor_products)) return false;
          g.weights_at = in_shared;
          in_shared += g.weight_bytes() * out_.threads;
        }
      }
    }
    // Tensor cores are fast enough to wait for inputs where there are no registers for them: some 12 for each element.
    out_.reads_ahead = tensor_products == 0 || out_.kept_bytes() / 4 + 12 * out_.lanes(columns) <= 176;
    // All rows at a time if they fit in shared memory, else fewer.
    for (out_.chunk = up(out_.rows, most_at_a_time()); out_.chunk > 0; out_.chunk -= most_at_a_time()) {
      place_values(in_shared + place_arena());  // one of both is nothing
      if (out_.bytes <= limits_.shared) {
        // As many times, but evenly.
        const std::int64_t times = (out_.rows + out_.chunk - 1) / out_.chunk;
        out_.chunk = up((out_.rows + times - 1) / times, most_at_a_time());
        place_values(in_shared + place_arena());
        return true;
      }
      if (slices == 1) return false;
    }
    return false;
  }

  bool share_group(ProductGroup& g, std::int64_t weights, bool in_shared, int tensor_products) const {
    const bool whole = std::any_of(g.calls.begin(), g.calls.end(), [&](int c) {
      const int v = loop_.source(c, 2).value;
      return out_.storage[v].shared || is_slab(value(v).walk);
    });
    const StepCall& call = loop_.calls[g.calls[0]];
    return share_out(call, {out_.slice(call.columns()), out_.rows, whole, in_shared, weights, tensor_products}, g);
  }

  int most_at_a_time() const {
    int out = 1;
    for (const LoopStage& stage : out_.stages) {
      for (const ProductGroup& g : stage.groups) out = std::max(out, g.rows);
    }
    return out;
  }

  /// Places the arena for values of other blocks that products read, shared by all stages; returns its bytes.
  std::int64_t place_arena() {
    if (out_.slices == 1) return 0;
    std::int64_t most = 0;
    for (LoopStage& stage : out_.stages) {
      std::int64_t at = 0;
      for (ProductGroup& g : stage.groups) {
        g.arena_at = at;
        at += g.factors * out_.chunk * g.pitch * bytes_of(loop_.calls[g.calls[0]].operands[0].dtype);
      }
      most = std::max(most, at);
    }
    return most;
  }

  void place_values(std::int64_t at) {
    const std::int64_t rows = out_.rows_in_shared = up(out_.rows, most_at_a_time());
    if (transform_) {
      out_.transform_at = at;
      at += up((2 * out_.rows + 1) * transform_->columns() / 2 * bytes_of(transform_->operands[0].dtype), 16);
    }
    out_.scratch = 0;
    for (std::size_t v = 0; v < out_.storage.size(); ++v) {
      ValueStorage& r = out_.storage[v];
      const LoopValue& value = loop_.values[v];
      if (r.shared && out_.slices == 1) {
        r.pitch = up(value.width, per_vector(value.dtype));
        for (const LoopStage& stage : out_.stages) {
          for (const ProductGroup& g : stage.groups) {
            for (int f = 0; f < g.factors; ++f) {
              if (loop_.source(g.first(f), 0).value == static_cast<int>(v)) r.pitch = std::max(r.pitch, g.pitch);
            }
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
            for (int f = 0; f < g.factors; ++f) {
              if (changed[loop_.source(g.first(f), 0).value]) stage.wait = LoopStage::Wait::group;
            }
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
    out_.barriers = 0;
    for (const LoopStage& stage : out_.stages) out_.barriers += stage.wait == LoopStage::Wait::group;
  }

  const LoopValues& loop_;
  const LoopLimits& limits_;
  LoopLayout out_;
  bool products_ = false, moves_ = false;  // moves_: some call reads other columns
  const StepCall* transform_ = nullptr;
  std::int64_t widest_ = 1, farthest_ = 0;  // farthest_: from the first element that a call reads or writes
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
