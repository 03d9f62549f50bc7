// The small kernels, given something that calls a body for all indices below n: a launch, or on the host a loop.
#pragma once
#include "backends/cuda/linalg/matrix_bodies.h"
#include "backends/cuda/linalg/matrix_kernels.h"

namespace reel::cuda {

/// Calls f with the device type of a dtype's elements, if the dtype is floating point or complex; the others have no
/// such kernels.
template <class F>
void on_field(DType dtype, F&& f) {
  dispatch(dtype, [&]<class E>(std::type_identity<E>) {
    if constexpr (std::is_floating_point_v<E> || reel::is_complex_type<E>) f(std::type_identity<device_type<E>>{});
  });
}

template <class Each>
class MatrixKernelsBy final : public MatrixKernels {
 public:
  explicit MatrixKernelsBy(Each each) : each_(each) {}

  void find_not_finite(DType dtype, const void* x, std::int64_t n, int* flag) const override {
    const std::int64_t numbers = is_complex(dtype) ? 2 * n : n;
    if (real_of(dtype) == DType::f32)
      each_(numbers, FindNotFinite<float>{static_cast<const float*>(x), flag});
    else
      each_(numbers, FindNotFinite<double>{static_cast<const double*>(x), flag});
  }
  void find_bad_triangle(const TriangularSolveArgs& s, std::int64_t matrices, int* flag) const override {
    on_field(s.dtype, [&]<class T>(std::type_identity<T>) {
      const T* const a = static_cast<const T*>(s.a);
      each_(matrices * s.n * s.n, FindInTriangle<T>{s.n, s.stride_a, s.upper, !s.unit_diagonal, a, flag});
      if (!s.unit_diagonal) each_(matrices, FindSmallDiagonal<T>{s.n, s.stride_a, s.tolerance, a, flag});
    });
  }
  void note(const int* numbers, std::int64_t n, FaultSlot* fault) const override { each_(n, Note{numbers, fault}); }
  void keep_lower(DType dtype, void* x, std::int64_t batch, std::int64_t n) const override {
    on_field(dtype, [&]<class T>(std::type_identity<T>) { each_(batch * n * n, KeepLower<T>{n, static_cast<T*>(x)}); });
  }
  void split_factors(const LuArgs& a, const void* packed, const std::int64_t* swaps, void* p, void* l,
                     void* u) const override {
    on_field(a.dtype, [&]<class T>(std::type_identity<T>) {
      const std::int64_t r = std::min(a.m, a.n);
      each_(a.m, Permutation<T>{a.m, r, swaps, static_cast<T*>(p)});
      each_(a.m * a.n,
            SplitFactors<T>{a.m, a.n, r, static_cast<const T*>(packed), static_cast<T*>(l), static_cast<T*>(u)});
    });
  }
  void determinants(const DeterminantArgs& a, const void* packed, const std::int64_t* swaps, int* flag) const override {
    on_field(a.dtype, [&]<class T>(std::type_identity<T>) {
      each_(a.batch, Determinant<T>{a.n, static_cast<const T*>(packed), swaps, static_cast<T*>(a.det),
                                    static_cast<T*>(a.sign), static_cast<Real<T>*>(a.log_abs), flag});
    });
  }
  void take_r(DType dtype, std::int64_t m, std::int64_t n, const void* packed, void* r, void* phase) const override {
    on_field(dtype, [&]<class T>(std::type_identity<T>) {
      each_(std::min(m, n) * n,
            TakeR<T>{m, n, static_cast<const T*>(packed), static_cast<T*>(r), static_cast<T*>(phase)});
    });
  }
  void take_q(DType dtype, std::int64_t m, std::int64_t k, const void* packed, const void* phase,
              void* q) const override {
    on_field(dtype, [&]<class T>(std::type_identity<T>) {
      each_(m * k, TakeQ<T>{m, k, static_cast<const T*>(packed), static_cast<const T*>(phase), static_cast<T*>(q)});
    });
  }
  void take_hermitian_vectors(DType dtype, std::int64_t n, const void* packed, void* vectors,
                              std::int32_t* largest) const override {
    on_field(dtype, [&]<class T>(std::type_identity<T>) {
      each_(n, TakeHermitianVectors<T>{n, static_cast<const T*>(packed), static_cast<T*>(vectors), largest});
    });
  }
  void take_eigenvectors(DType dtype, std::int64_t n, const void* from, const void* packed, void* values, void* vectors,
                         std::int32_t* largest) const override {
    on_field(dtype, [&]<class T>(std::type_identity<T>) {
      using C = DeviceComplex<Real<T>>;
      each_(n, TakeEigenvectors<T, C>{n, static_cast<const C*>(from), static_cast<const T*>(packed),
                                      static_cast<C*>(values), static_cast<C*>(vectors), largest});
    });
  }
  void turn_singular(DType dtype, std::int64_t m, std::int64_t n, std::int64_t k, void* u, void* vh,
                     std::int32_t* largest) const override {
    on_field(dtype, [&]<class T>(std::type_identity<T>) {
      each_(k, TurnSingular<T>{m, n, k, static_cast<T*>(u), static_cast<T*>(vh), largest});
    });
  }
  void compare_condition(DType complex, std::int64_t n, const void* x, const void* inverse, double* room,
                         bool* independent) const override {
    on_field(complex, [&]<class T>(std::type_identity<T>) {
      const double limit = 1 / (10.0 * std::numeric_limits<Real<T>>::epsilon());
      each_(n, ColumnSum<T>{n, static_cast<const T*>(x), room});
      each_(n, ColumnSum<T>{n, static_cast<const T*>(inverse), room + n});
      each_(1, CompareCondition{n, limit, room, room + n, independent});
    });
  }
  void invert_singular(DType dtype, std::int64_t batch, std::int64_t k, std::int64_t n, double rcond, const void* s,
                       void* vh) const override {
    on_field(dtype, [&]<class T>(std::type_identity<T>) {
      each_(batch * k, InvertSingular<T>{k, n, rcond, static_cast<const Real<T>*>(s), static_cast<T*>(vh)});
    });
  }
  void find_rank_loss(DType real, std::int64_t batch, std::int64_t k, double part, const void* s,
                      int* flag) const override {
    if (real == DType::f32)
      each_(batch, FindRankLoss<float>{k, part, static_cast<const float*>(s), flag});
    else
      each_(batch, FindRankLoss<double>{k, part, static_cast<const double*>(s), flag});
  }

 private:
  Each each_;
};

}  // namespace reel::cuda
