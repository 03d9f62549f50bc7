// EUNN's product of plane rotations as a building block of cells; its angles are the parameters.
#pragma once
#include "cells/cell.h"
#include "ops/rotation.h"

namespace reel {

struct RotationAngles {
  Rotations pairs;
  Tensor theta, theta_B, phi, phi_B, omega;  // the tunable style keeps the angles of even and odd layers apart

  /// W h for rows h [..., n]: all layers, then diag(e^(i omega)) if complex. Inside scan, the tables of angles are
  /// hoisted.
  Tensor operator()(const Tensor& h) const {
    if (!phi.defined()) return pairs(h, pairs.tables(joined(theta, theta_B)));
    return polar(1.0, omega) * pairs(h, pairs.tables(joined(theta, theta_B), joined(phi, phi_B)));
  }

 private:
  /// The angles in the order of the layers: one tensor [L, .], or even and odd layers interleaved.
  static Tensor joined(const Tensor& a, const Tensor& b) { return reshape(b.defined() ? concat({a, b}, 1) : a, {-1}); }
};

/// Makes the rotations for the settings style ("fft", otherwise tunable) and capacity, with all angles uniform in
/// +-3.14, as in EUNN's code.
inline RotationAngles rotation_angles(const Settings& s, std::int64_t n, bool is_complex, Init& init,
                                      const std::function<Tensor(const std::string&, const Tensor&)>& name) {
  const bool fft = s.choice("style") == "fft";
  const std::int64_t capacity = s.integer("capacity", 2);
  if (fft && (n < 2 || (n & (n - 1)) != 0))
    throw SettingError("hidden", fmt::format("the fft style needs 2, 4, 8, ... units, a power of two, got {}", n),
                       {s.path("style"), "tunable"});
  if (!fft && n % 2 != 0)
    throw SettingError("hidden", fmt::format("the tunable style needs an even number of units, got {}", n));
  if (!fft && capacity % 2 != 0)
    throw SettingError(s.path("capacity"), fmt::format("an even number of layers expected, got {}", capacity));
  RotationAngles W{fft ? Rotations::fft(n) : Rotations::tunable(n, capacity), {}, {}, {}, {}, {}};
  const auto layers = static_cast<std::int64_t>(W.pairs.layers().size());
  const auto angles = [&](const std::string& symbol, Tensor& first, Tensor& second) {
    first = name(fft ? symbol : symbol + "_A", init.uniform({fft ? layers : layers / 2, n / 2}, 3.14));
    if (!fft) second = name(symbol + "_B", init.uniform({layers / 2, n / 2 - 1}, 3.14));
  };
  angles("theta", W.theta, W.theta_B);
  if (is_complex) {
    angles("phi", W.phi, W.phi_B);
    W.omega = name("omega", init.uniform({n}, 3.14));
  }
  return W;
}

}  // namespace reel
