// Products of plane rotations (Givens rotations): the orthogonal and unitary matrices of EUNN and GORU, in O(n) work a
// layer. A layer rotates disjoint pairs of coordinates; in every layer used here the partner of p is p + distance.
#pragma once
#include "ops/arg.h"

namespace reel {

/// The pairs of one layer: after the first `offset` coordinates, each block of 2 distance coordinates pairs its first
/// half with its second. Coordinates left over at the end are unpaired.
struct RotationLayer {
  std::int64_t offset = 0, distance = 1;
  bool operator==(const RotationLayer&) const = default;
  /// The coordinate paired with j of n; j itself when it is unpaired.
  std::int64_t partner(std::int64_t j, std::int64_t n) const;
};

/// Swaps the elements of each pair along the last axis; an unpaired coordinate keeps its own.
Tensor exchange(Arg x, RotationLayer layer);

/// C x + S exchange(x): one layer of rotations of rows x [..., n], given C and S [n]; x, C and S have one dtype.
Tensor rotate(Arg x, Arg C, Arg S, RotationLayer layer);

/// A product of layers of rotations, with an angle for each pair.
class Rotations {
 public:
  /// log2(n) layers with distances n/2, n/4, ..., 1 (EUNN, "FFT style"); n is a power of two.
  static Rotations fft(std::int64_t n);
  /// `capacity` layers that pair (0,1), (2,3), ... and (1,2), (3,4), ... alternately (EUNN, "tunable"); n and capacity
  /// are even.
  static Rotations tunable(std::int64_t n, std::int64_t capacity);

  /// The number of angles of all layers.
  std::int64_t angles() const { return angles_; }
  std::int64_t size() const { return n_; }
  const std::vector<RotationLayer>& layers() const { return layers_; }

  /// C and S of rotate for each layer, [layers, n]. A pair (p, q) becomes
  ///   c h_p - s e h_q,  s h_p + c e h_q,  c = cos theta, s = sin theta, e = e^(i phi) or 1,
  /// with theta and phi [angles()]; complex when phi is given. They depend only on the angles, so computing them once
  /// per update is enough.
  struct Tables {
    Tensor C, S;
  };
  Tables tables(Arg theta) const;
  Tables tables(Arg theta, Arg phi) const;

  /// All layers in order on rows x [..., n].
  Tensor operator()(Arg x, const Tables& tables) const;

 private:
  Rotations(std::int64_t n, std::vector<RotationLayer> layers) : n_(n), layers_(std::move(layers)) {}
  /// i32 [layers, n]: the index of the angle of each coordinate's pair, or angles() for an unpaired coordinate. With
  /// `only` 0 or 1 it is angles() also for all but the first or the second members of pairs.
  Tensor angle_index(Backend& backend, int only = -1) const;
  /// -1 for the first member of a pair, 1 for the second, 0 for an unpaired coordinate: [layers, n].
  Tensor signs(DType dtype, Backend& backend) const;

  std::int64_t n_, angles_ = 0;
  std::vector<RotationLayer> layers_;
  std::vector<std::int32_t> angle_of_;  // [layers, n]; angles_ for an unpaired coordinate
};

}  // namespace reel
