#include "backends/cuda/codegen/loop_transforms.h"

#include "backends/shared/run_text.h"
#include "engine/core/error.h"

namespace reel::cuda {

void TransformText::transform(int c, bool after_barrier) {
  const StepCall& f = call(c);
  const char* const t = type_name(f.operands[0].dtype);
  const char* const part = f.operands[0].dtype == DType::c64 ? "float" : "double";
  const std::int64_t n = f.columns();
  if (!transforms_) {
    declared_ += fmt::format("  {0}* const spare = reinterpret_cast<{0}*>(shared + {1});\n", t, layout_.transform_at);
    declared_ += fmt::format("  {}* const roots = spare + {};\n", t, layout_.rows * n);
    start_ += fmt::format("  roots_of_one(roots, {}, threadIdx.x, {});\n", n / 2, layout_.threads);
    transforms_ = true;
  }
  const Source &x = loop_.source(static_cast<std::size_t>(c), 0), &y = loop_.source(static_cast<std::size_t>(c), 1);
  if (!after_barrier) step_ += "    __syncthreads();\n";  // the spare rows may still be read
  step_ += fmt::format("    transform<{}, {}, {}, {}>(&{}, {}, &{}, {}, spare, roots, threadIdx.x, ", n, f.inverse,
                       layout_.rows, layout_.threads, in_shared(x, "0", ""), storage(x.value).pitch,
                       in_shared(y.value, true, "0", "0"), storage(y.value).pitch);
  step_ += fmt::format("[&](int mine, int column, {} z) {{\n", t);
  step_ += fmt::format("      const int row = group * {} + mine;\n", layout_.rows);
  if (loop_.rows % layout_.rows != 0) step_ += fmt::format("      if (row >= {}) return;\n", loop_.rows);
  step_ += fmt::format("      const {0} y(static_cast<{1}>({2}) * z.real(), static_cast<{1}>({2}) * z.imag());\n", t,
                       part, number_text(f.parameter));
  step_ += put(c, "y", "      ") + "    });\n";
}

}  // namespace reel::cuda
