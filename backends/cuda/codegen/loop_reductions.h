// The part of a loop kernel's source that combines columns of a row: sums, norms, standardized rows.
#pragma once
#include "backends/cuda/codegen/loop_products.h"

namespace reel::cuda {

class ReductionText : protected ProductText {
 protected:
  using ProductText::ProductText;

  /// Adds a call that reduces to the kernel. Some neighbouring lanes share the terms of a result.
  void reduction(int c);
  /// Code that stores column `column` of a call's result.
  std::string put(int c, const std::string& x, const char* indent);

  bool reduces_ = false;

 private:
  /// How many lanes share the terms of each of `results` sums.
  int lanes_for(std::int64_t terms, std::int64_t results) const;
  /// Element `j` of the vector that a dot multiplies by; one that no step changes waits in registers.
  std::string factor(int c, std::int64_t terms, int lanes);
};

}  // namespace reel::cuda
