// Discrete Fourier transforms and what is made of them. Part of ops/ops.h.
#pragma once
#include <optional>

#include "ops/arg.h"

namespace reel {

// ---- fft.cpp: along any axis, any length ----------------------------------------------------------------------------

/// Which of a transform and its inverse is divided by n; ortho: both by sqrt(n), which makes them unitary.
enum class FftNorm { backward, ortho, forward };

struct FftOptions {
  std::optional<std::int64_t> n = {};  // the axis is cut to n elements, or gets zeros at its end, before the transform
  std::int64_t axis = -1;
  FftNorm norm = FftNorm::backward;
};

/// y[k] = sum over j of x[j] e^(-2 pi i j k / n) along an axis; x real or complex, y complex, of x's shape.
/// Throws Error when n < 1.
Tensor fft(Arg x, const FftOptions& options = {});
/// The inverse of fft: x[j] = 1 / n sum over k of y[k] e^(2 pi i j k / n).
Tensor ifft(Arg y, const FftOptions& options = {});
/// The first n / 2 + 1 elements of fft(x), x real; the others are conjugates of these, y[n - k] = conj(y[k]).
Tensor rfft(Arg x, const FftOptions& options = {});
/// The inverse of rfft, n real numbers; n is 2 (m - 1) for an axis of m elements unless it is given. Imaginary parts
/// of y[0] and, n even, y[n / 2] are not looked at.
Tensor irfft(Arg y, const FftOptions& options = {});
/// fft along the last two axes.
Tensor fft2(Arg x, FftNorm norm = FftNorm::backward);
/// ifft along the last two axes.
Tensor ifft2(Arg y, FftNorm norm = FftNorm::backward);

// ---- frames.cpp: overlapping pieces ---------------------------------------------------------------------------------

/// Pieces of `size` elements, each beginning `hop` elements after the one before: [..., n] -> [..., frames, size].
/// Elements behind the last whole piece are left out.
Tensor frame(Arg x, std::int64_t size, std::int64_t hop);
/// Pieces added up where frame() would take them from: [..., frames, size] -> [..., n], n = (frames - 1) hop + size.
Tensor overlap_add(Arg x, std::int64_t hop);

// ---- stft.cpp: short-time Fourier transforms ------------------------------------------------------------------------

/// sin(pi j / n)^2, j = 0..n-1; with n - 1 in place of n unless periodic; [n]. Throws Error when n < 0.
Tensor hann_window(std::int64_t n, bool periodic = true, DType dtype = DType::f32, Backend& backend = reel::backend(),
                   Where where = Where::current());

struct StftOptions {
  std::int64_t size = 0;                 // elements of a frame
  std::optional<std::int64_t> hop = {};  // from one frame to the next; a quarter of the size
  Tensor window = {};                    // [size], real; hann_window(size)
  bool centre = true;    // frame t has its middle at element t hop; x goes on at both ends as its mirror image
  bool onesided = true;  // rfft, not fft
  FftNorm norm = FftNorm::backward;
};

/// The spectrum of each frame of x times the window: real [..., n] -> complex [..., frames, size / 2 + 1] ([...,
/// frames, size] unless onesided). Throws Error when n < size or, centred, n <= size / 2.
Tensor stft(Arg x, const StftOptions& options);
/// The inverse of stft with the same options, and for spectra of no signal the nearest one (Griffin and Lim, 1984):
/// frames are added up times the window and divided by the sum of its squares; the result is 0 where that is 0. Of n,
/// which the spectra do not tell, `length` elements, zeros behind what the frames reach; without it all they reach.
Tensor istft(Arg y, const StftOptions& options, std::optional<std::int64_t> length = {});

}  // namespace reel
