// Which kernels OpenBLAS uses: those of the processor's vector instructions, though it may not know the model.
#include "backends/cpu/kernels/openblas_kernels.h"

#include <cblas.h>

#include <cmath>
#include <cstdlib>

#include "backends/cpu/product_libraries.h"
#include "tests/support/check.h"

using namespace reel;
using namespace reel::cpu;
using namespace reel::test;

namespace {

/// The largest error of a product [61, 67] = [61, 300] [300, 67] of OpenBLAS, relative to the largest element.
double error_of_product() {
  constexpr int m = 61, k = 300, n = 67;
  std::vector<double> a(m * k), b(k * n), c(m * n);
  for (int i = 0; i < m * k; ++i) a[i] = std::sin(i);
  for (int i = 0; i < k * n; ++i) b[i] = std::cos(3 * i);
  cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1, a.data(), k, b.data(), n, 0, c.data(), n);
  double error = 0, largest = 0;
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      double sum = 0;
      for (int l = 0; l < k; ++l) sum += a[i * k + l] * b[l * n + j];
      error = std::max(error, std::abs(sum - c[i * n + j]));
      largest = std::max(largest, std::abs(sum));
    }
  }
  return error / largest;
}

}  // namespace

TEST_CASE("kernels for SSE or AVX are replaced where the processor has more; all others stay") {
  const VectorInstructions none, avx2{.avx2 = true}, avx512{.avx2 = true, .avx512 = true},
      bf16{.avx2 = true, .avx512 = true, .avx512_bf16 = true};
  CHECK(better_kernels("Prescott", none) == "");
  CHECK(better_kernels("Prescott", avx2) == "Haswell");
  CHECK(better_kernels("Nehalem", avx512) == "SkylakeX");
  CHECK(better_kernels("Barcelona", bf16) == "Cooperlake");
  for (const char* name : {"Haswell", "Zen", "Excavator", "SkylakeX", "Cooperlake", "SapphireRapids", "armv8"})
    CHECK(better_kernels(name, bf16) == "");
}

TEST_CASE("the CPU backend runs on kernels that suit this processor, and says which") {
  backend("cpu");
  if (std::getenv("OPENBLAS_CORETYPE") || !use_kernels(openblas_get_corename())) {
    MESSAGE("skipped: the kernels are not Reel's choice");
    return;
  }
  CHECK(better_kernels(openblas_get_corename(), vector_instructions()) == "");
  CHECK(contains(product_libraries(), openblas_get_corename()));
}

TEST_CASE("kernels that are replaced compute the same to rounding") {
  const std::string own = openblas_get_corename();
  const bool named = std::getenv("OPENBLAS_CORETYPE");
  if (!vector_instructions().avx2 || !use_kernels("Prescott")) {
    MESSAGE("skipped: this processor or this OpenBLAS has no choice");
    return;
  }
  CHECK(std::string(openblas_get_corename()) == "Prescott");
  CHECK(!better_kernels(openblas_get_corename(), vector_instructions()).empty());
  CHECK(error_of_product() < 1e-14);
  REQUIRE(use_kernels("Haswell"));
  CHECK(std::string(openblas_get_corename()) == "Haswell");
  CHECK(error_of_product() < 1e-14);
  use_kernels(own);
  CHECK(named == static_cast<bool>(std::getenv("OPENBLAS_CORETYPE")));
  CHECK(openblas_get_corename() == own);
}
