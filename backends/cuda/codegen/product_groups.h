// How the products of a stage are grouped, and how a block's warps share out a group's columns and sums.
#pragma once
#include "backends/cuda/codegen/loop_layout.h"

namespace reel::cuda {

constexpr std::int64_t warp_lanes = 32, product_warps = 8;

enum class Grouping {
  by_factor,  // products of one factor together
  halved,     // the same in two groups, of which one may have its weights in shared memory
  merged,     // groups alike, of different factors, at the same time in different warps: each reads its factor once
  apart       // every product alone
};
/// The same products in other groups; `found` are grouped by factor.
std::vector<ProductGroup> regroup(const LoopValues& loop, const std::vector<ProductGroup>& found, Grouping how);

/// Divides the columns and sums of a group among a block's warps, by the least cost in multiplications, shared memory
/// reads and what becomes of the sums. False if it does not fit into that many bytes of weights per thread.
struct BlockShare {
  std::int64_t columns = 0, rows = 0;  // of a product, per block
  bool whole = false;                  // no partial sums
  bool in_shared = false;              // weights in shared memory
  std::int64_t weights = 0;            // bytes per thread at most
  int tensor_products = 0;             // as LoopLimits
};
bool share_out(const StepCall& call, const BlockShare& share, ProductGroup& group);

}  // namespace reel::cuda
