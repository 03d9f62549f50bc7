// The part of a loop kernel's source that multiplies: weights, rows that are fetched from other blocks, and what is
// done with the sums.
#pragma once
#include "backends/cuda/codegen/loop_text.h"

namespace reel::cuda {

class ProductText : protected LoopText {
 protected:
  /// `aligned`, by buffer: does it begin at 16 bytes?
  ProductText(const LoopValues& loop, const LoopLayout& layout, const std::vector<char>& aligned)
      : LoopText(loop, layout), aligned_(aligned) {}

  /// Adds a stage of products to the kernel.
  void products(const LoopStage& stage);

  bool uses_warps_ = false;
  std::string declared_, start_, step_;  // sections of the kernel

 private:
  std::string multiplication(const ProductGroup& g);
  std::string fetches_of(const ProductGroup& g);
  std::string sums(const ProductGroup& g);
  std::string is_column_of(const ProductGroup& g, std::size_t q) const;
  void weights(const ProductGroup& g);
  bool fetches() const { return layout_.slices > 1; }

  const std::vector<char>& aligned_;
};

}  // namespace reel::cuda
