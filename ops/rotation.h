// Products of plane rotations (Givens rotations): the orthogonal and unitary matrices of EUNN and GORU, in O(n) work a
// layer. A layer turns disjoint pairs of coordinates; in every layer used here the partner of p is p + distance.
#pragma once
#include "ops/arg.h"

namespace reel {

/// The pairs of one layer: behind the first `offset` coordinates, each block of 2 distance coordinates pairs its first
/// half with its second; what is left over at the end stays alone.
struct RotationLayer {
  std::int64_t offset = 0, distance = 1;
  /// The coordinate paired with j of n; j itself when it is alone.
  std::int64_t partner(std::int64_t j, std::int64_t n) const;
};

/// The element of each coordinate's partner, along the last axis; a coordinate that is alone keeps its own.
Tensor exchange(Arg x, RotationLayer layer);

/// C x + S exchange(x): one layer of rotations of rows x [..., n], given C and S [n]; x, C and S have one dtype.
Tensor rotate(Arg x, Arg C, Arg S, RotationLayer layer);

/// Which pairs a product of rotations turns, and which angle turns each.
class Rotations {
 public:
  /// log2(n) layers with distances n/2, n/4, ..., 1 (EUNN, "FFT style"); n is a power of two.
  static Rotations fft(std::int64_t n);
  /// `capacity` layers that pair (0,1), (2,3), ... and (1,2), (3,4), ... in turn (EUNN, "tunable"); both numbers are
  /// even.
  static Rotations tunable(std::int64_t n, std::int64_t capacity);

  /// How many angles there are in all.
  std::int64_t angles() const { return angles_; }
  std::int64_t size() const { return n_; }
  const std::vector<RotationLayer>& layers() const { return layers_; }

  /// C and S of rotate for each layer, [layers, n]. A pair (p, q) becomes
  ///   c h_p - s e h_q,  s h_p + c e h_q,  c = cos theta, s = sin theta, e = e^(i phi) or 1,
  /// with theta and phi [angles()]; complex when phi is given. What depends on angles alone: once per update.
  struct Tables {
    Tensor C, S;
  };
  Tables tables(Arg theta) const;
  Tables tables(Arg theta, Arg phi) const;

  /// All layers in order on rows x [..., n].
  Tensor operator()(Arg x, const Tables& tables) const;

 private:
  Rotations(std::int64_t n, std::vector<RotationLayer> layers) : n_(n), layers_(std::move(layers)) {}
  /// i32 [layers, n]: the angle of each coordinate's pair, or angles() for one alone; with `only` 0 or 1 also for the
  /// others than first or second members.
  Tensor angle_index(Backend& backend, int only = -1) const;
  /// -1 for first members of a pair, 1 for second, 0 for one alone: [layers, n].
  Tensor signs(DType dtype, Backend& backend) const;

  std::int64_t n_, angles_ = 0;
  std::vector<RotationLayer> layers_;
  std::vector<std::int32_t> angle_of_;  // [layers, n]; angles_ for a coordinate that is alone
};

}  // namespace reel
