// Discrete Fourier transforms and ops built on them. Part of ops/ops.h.
#pragma once
#include <optional>

#include "ops/arg.h"

namespace reel {

// ---- fft.cpp: along any axis, any length ----------------------------------------------------------------------------

/// Which direction is divided by n: the inverse (backward) or the transform (forward). ortho divides both by sqrt(n),
/// which makes them unitary.
enum class FftNorm { backward, ortho, forward };

struct FftOptions {
  std::optional<std::int64_t> n = {};  // before the transform the axis is cut or zero-padded to n elements
  std::int64_t axis = -1;
  FftNorm norm = FftNorm::backward;
};

/// y[k] = sum over j of x[j] e^(-2 pi i j k / n), k = 0..n-1, along an axis; x real or complex, y complex, of x's shape
/// except along that axis, which has n elements. Throws Error when n < 1.
Tensor fft(Arg x, const FftOptions& options = {});
/// The inverse of fft: x[j] = 1 / n sum over k of y[k] e^(2 pi i j k / n).
Tensor ifft(Arg y, const FftOptions& options = {});
/// The first n / 2 + 1 elements of fft(x), x real; the others are conjugates of these, y[n - k] = conj(y[k]).
Tensor rfft(Arg x, const FftOptions& options = {});
/// The inverse of rfft, with n real elements; the default n is 2 (m - 1) for an axis of m elements. Ignores the
/// imaginary parts of y[0] and, if n is even, y[n / 2].
Tensor irfft(Arg y, const FftOptions& options = {});
/// fft along the last two axes.
Tensor fft2(Arg x, FftNorm norm = FftNorm::backward);
/// ifft along the last two axes.
Tensor ifft2(Arg y, FftNorm norm = FftNorm::backward);

// ---- frames.cpp: overlapping frames ---------------------------------------------------------------------------------

/// Cuts the last axis into frames of `size` elements, `hop` elements apart: [..., n] -> [..., frames, size]. Elements
/// after the last complete frame are dropped.
Tensor frame(Arg x, std::int64_t size, std::int64_t hop);
/// Adds frames up at the positions where frame() takes them: [..., frames, size] -> [..., n], where
/// n = (frames - 1) hop + size.
Tensor overlap_add(Arg x, std::int64_t hop);

// ---- stft.cpp: short-time Fourier transforms ------------------------------------------------------------------------

/// sin(pi j / n)^2, j = 0..n-1; with n - 1 in place of n unless periodic; [n]. Throws Error when n < 0.
Tensor hann_window(std::int64_t n, bool periodic = true, DType dtype = DType::f32, Backend& backend = reel::backend(),
                   Loc where = Loc::current());

struct StftOptions {
  std::int64_t size = 0;                 // elements of a frame
  std::optional<std::int64_t> hop = {};  // from one frame to the next; a quarter of the size
  Tensor window = {};                    // [size], real; hann_window(size)
  bool centre = true;                    // frame t is centred at element t hop; x is padded by reflection at both ends
  bool onesided = true;                  // rfft, not fft
  FftNorm norm = FftNorm::backward;
};

/// The spectrum of each frame of x times the window: real [..., n] -> complex [..., frames, size / 2 + 1] ([...,
/// frames, size] unless onesided). Throws Error when n < size or, if centred, n <= size / 2.
Tensor stft(Arg x, const StftOptions& options);
/// The inverse of stft with the same options; spectra that belong to no signal give the nearest one (Griffin and Lim
/// 1984). Frames are multiplied by the window, added up, and divided by the sum of its squares; the result is 0 where
/// that is 0. The result has `length` elements, with zeros after the last frame; the default is all that the frames
/// cover.
Tensor istft(Arg y, const StftOptions& options, std::optional<std::int64_t> length = {});

}  // namespace reel
