#include "backends/cuda/linalg/matrices.h"

namespace reel::cuda {

bool finite(const Matrices& at, DType dtype, const void* x, std::int64_t n) {
  Verdict verdict(at, 0);
  at.kernels.find_not_finite(dtype, x, n, verdict.flag());
  return verdict.good();
}

void copy(const Matrices& at, DType dtype, std::int64_t n, const void* from, void* to) {
  StridedLoop<2> loop{};
  loop.push(n, {1, 1});
  at.device.copy({dtype, loop, from, to});
}

void transpose(const Matrices& at, DType dtype, std::int64_t rows, std::int64_t columns, const void* from, void* to) {
  StridedLoop<2> loop{};
  loop.push(columns, {1, rows});
  loop.push(rows, {columns, 1});
  at.device.copy({dtype, loop, from, to});
}

WorkRoom room_for_factors(const Matrices& at, DType dtype, std::int64_t m, std::int64_t n, const void* packed) {
  const Cusolver& lib = at.solver;
  const auto type = data_type(dtype);
  WorkRoom work;
  check(lib.cusolverDnXgetrf_bufferSize(lib.handle, lib.params, m, n, type, packed, m, type, &work.device_bytes,
                                        &work.host_bytes),
        "getrf");
  work.make(at);
  return work;
}

void factor(const Matrices& at, DType dtype, std::int64_t m, std::int64_t n, void* packed, std::int64_t* swaps,
            WorkRoom& work, int* info) {
  const Cusolver& lib = at.solver;
  const auto type = data_type(dtype);
  check(lib.cusolverDnXgetrf(lib.handle, lib.params, m, n, type, packed, m, swaps, type, work.device->data,
                             work.device_bytes, work.host.data(), work.host_bytes, info),
        "getrf");
}

}  // namespace reel::cuda
