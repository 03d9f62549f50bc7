// Fourier transforms beyond one call: against sums in long double, identities that hold them together, rows that lie
// anywhere in memory, several threads, time loops, error texts.
#include <cmath>
#include <numbers>
#include <thread>

#include "tests/support/check.h"

using namespace reel;
using namespace reel::test;

namespace {

using Wide = std::complex<long double>;

/// The error of y as the transform of x, relative to the root of the sum of squares.
double transform_error(const Tensor& x, const Tensor& y, long double sign, long double scale) {
  const auto in = elements(x), out = elements(y);
  const std::size_t n = in.size();
  long double error = 0, size = 0;
  for (std::size_t k = 0; k < n; ++k) {
    Wide sum = 0;
    for (std::size_t j = 0; j < n; ++j) {
      const long double angle = sign * 2 * std::numbers::pi_v<long double> * static_cast<long double>(j * k % n) /
                                static_cast<long double>(n);
      sum += Wide(in[j].real(), in[j].imag()) * Wide(std::cos(angle), std::sin(angle));
    }
    sum *= scale;
    error += std::norm(sum - Wide(out[k].real(), out[k].imag()));
    size += std::norm(sum);
  }
  return static_cast<double>(std::sqrt(error / size));
}

double squares(const Tensor& x) { return sum(square(abs(x))).item(); }

}  // namespace

TEST_CASE("fft and ifft are the sums that define them") {
  double worst = 0, worst_single = 0;
  for (const std::int64_t n : {1, 2, 3, 4, 97, 128, 1000, 1009, 2310}) {
    CAPTURE(n);
    const Tensor x = random({n}, 1, DType::c128), single = cast(x, DType::c64);
    const auto size = static_cast<long double>(n);
    worst = std::max({worst, transform_error(x, fft(x), -1, 1), transform_error(x, ifft(x), 1, 1 / size),
                      transform_error(x, fft(x, {.norm = FftNorm::ortho}), -1, 1 / std::sqrt(size))});
    worst_single = std::max({worst_single, transform_error(single, fft(single), -1, 1),
                             transform_error(single, ifft(single), 1, 1 / size)});
    const GradErrors e = grad_errors([](const Tensors& in) { return fft(in[0]); }, {x}, 5);
    CHECK(e.first < 1e-9);
    CHECK(e.second < 1e-9);
  }
  CHECK(worst < 2e-15);
  CHECK(worst_single < 1e-6);
  fmt::print("fft of up to 2310 elements: worst relative error {:.1e} in double, {:.1e} in single precision\n", worst,
             worst_single);
}

TEST_CASE("transforms undo each other, keep the sum of squares, and the real ones are the complex one") {
  for (const std::int64_t n : {1, 2, 3, 97, 128, 1000}) {
    CAPTURE(n);
    const Tensor x = random({3, n}, 2), z = random({3, n}, 3, DType::c128);
    for (const FftNorm norm : {FftNorm::backward, FftNorm::ortho, FftNorm::forward}) {
      CHECK(difference(ifft(fft(z, {.norm = norm}), {.norm = norm}), z) < 1e-14);
      CHECK(difference(irfft(rfft(x, {.norm = norm}), {.n = n, .norm = norm}), x) < 1e-14);
    }
    CHECK(squares(fft(z, {.norm = FftNorm::ortho})) == doctest::Approx(squares(z)).epsilon(1e-13));
    CHECK(squares(fft(z)) == doctest::Approx(squares(z) * static_cast<double>(n)).epsilon(1e-13));
    const Tensor whole = fft(x);
    CHECK(whole.dtype() == DType::c128);
    CHECK(difference(rfft(x), slice(whole, -1, 0, n / 2 + 1)) < 1e-13);
  }
  const Tensor image = random({2, 6, 5}, 4, DType::c128);
  CHECK(difference(ifft2(fft2(image)), image) < 1e-14);
  CHECK(difference(ifft2(fft2(image, FftNorm::forward), FftNorm::forward), image) < 1e-14);
}

TEST_CASE("the length of irfft, even or odd, is not in the coefficients") {
  const Tensor y = random({2, 5}, 1, DType::c128);
  CHECK(irfft(y).shape() == Shape{2, 8});
  CHECK(irfft(y, {.n = 9}).shape() == Shape{2, 9});
  CHECK(irfft(y, {.n = 5}).shape() == Shape{2, 5});
  CHECK(difference(irfft(real(y)), irfft(cast(real(y), DType::c128))) == 0);
  // imaginary parts where a real signal has none do not count
  std::vector<std::complex<double>> ends = elements(y);
  for (const std::size_t k : {0, 4, 5, 9}) ends[k] = {ends[k].real(), 7};
  CHECK(difference(irfft(y), irfft(Tensor::from<std::complex<double>>(ends, {2, 5}))) == 0);
}

TEST_CASE("a row's transform depends on the row alone, wherever it lies in memory") {
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const std::int64_t n : {1, 5, 8, 31}) {
      const Tensor x = random({7, n}, 1, dtype), z = random({7, n}, 2, complex_of(dtype));
      const Tensor all = fft(z), forward = rfft(x), backward = irfft(z, {.n = 2 * n - 1});
      for (std::int64_t i = 0; i < 7; ++i) {
        CHECK(difference(fft(reel::at(z, i)), reel::at(all, i)) == 0);
        CHECK(difference(rfft(reel::at(x, i)), reel::at(forward, i)) == 0);
        CHECK(difference(irfft(reel::at(z, i), {.n = 2 * n - 1}), reel::at(backward, i)) == 0);
      }
      CHECK(difference(fft(z), all) == 0);
    }
  }
}

TEST_CASE("several threads may plan and transform at once") {
  std::vector<double> errors(4, 1);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < errors.size(); ++t)
    threads.emplace_back([&errors, t] {
      double worst = 0;
      for (std::int64_t n = 1; n < 200; ++n) {
        const Tensor z = random({n}, t, DType::c128);
        worst = std::max({worst, difference(ifft(fft(z)), z), difference(irfft(rfft(real(z)), {.n = n}), real(z))});
      }
      errors[t] = worst;
    });
  for (std::thread& t : threads) t.join();
  for (const double e : errors) CHECK(e < 1e-14);
}

TEST_CASE("more lengths than plans are kept for") {
  for (std::int64_t n = 1; n < 1500; ++n) fft(Tensor::zeros({n}, DType::c64));
  for (const std::int64_t n : {5, 1511, 1512}) {  // the last two are met nowhere else
    const Tensor z = random({n}, 1, DType::c128);
    CHECK(difference(ifft(fft(z)), z) < 1e-14);
    CHECK(fft(z).at(0).values<std::complex<double>>()[0].real() == doctest::Approx(sum(real(z)).item()));
  }
}

TEST_CASE("transforms within a time loop") {
  const Tensor state = random({2, 6}, 1), xs = random({4, 2, 6}, 2);
  const auto step = [](const Tensors& s, const Tensors& x) {
    const Tensor filtered = irfft(rfft(s[0] + x[0]) * rfft(x[0]), {.n = 6});
    return Next{{tanh(filtered)}, {abs(fft(x[0], {.axis = 0}))}};
  };
  std::vector<Tensors> gradients;
  for (const bool unrolled : {false, true}) {
    Tape tape;
    const ScanResult r = unrolled ? unroll(step, {state}, {xs}) : scan(step, {state}, {xs});
    const auto g = grad(sum(r.last[0]) + sum(r.ys[0]), {state, xs});
    gradients.push_back({r.last[0], r.ys[0], g[0], g[1]});
  }
  for (std::size_t i = 0; i < 4; ++i) CHECK(difference(gradients[0][i], gradients[1][i]) < 1e-13);
}

TEST_CASE("istft undoes stft") {
  for (const std::int64_t size : {1, 2, 7, 8, 64}) {
    for (const std::int64_t n : {64, 100, 131}) {
      CAPTURE(size);
      CAPTURE(n);
      const Tensor x = random({2, n}, 1);
      for (const bool onesided : {false, true}) {
        const StftOptions o{.size = size, .onesided = onesided, .norm = FftNorm::ortho};
        CHECK(difference(istft(stft(x, o), o, n), x) < 1e-13);
      }
      const StftOptions own{.size = size, .hop = (size + 1) / 2, .window = random({size}, 2, DType::f64, 0.5, 1)};
      CHECK(difference(istft(stft(x, own), own, n), x) < 1e-13);
    }
  }
  // Without the centring nothing but zeros meets sample 0 under a Hann window, and it is lost.
  const Tensor x = random({40}, 3);
  const StftOptions o{.size = 8, .centre = false};
  const Tensor y = istft(stft(x, o), o);
  CHECK(y.shape() == x.shape());
  CHECK(elements(y)[0] == 0.0);
  CHECK(difference(slice(y, 0, 1, 40), slice(x, 0, 1, 40)) < 1e-12);
  CHECK(stft(cast(x, DType::f32), o).dtype() == DType::c64);
  // A tone has its energy where it should: 4 periods a frame.
  std::vector<double> tone;
  for (int i = 0; i < 512; ++i) tone.push_back(std::sin(2 * std::numbers::pi * i / 16));
  const Tensor s = abs(stft(Tensor::from<double>(tone, {512}), {.size = 64, .centre = false}));
  CHECK(s.shape() == Shape{29, 33});
  for (const std::int32_t peak : argmax(s).values<std::int32_t>()) CHECK(peak == 4);
}

TEST_CASE("errors of transforms name the function, the rule and the line") {
  const Tensor x = random({3, 8}, 1), z = random({3, 1}, 2, DType::c128);
  const auto says = [](const std::function<void()>& f, const std::string& part) {
    const std::string text = error_of(f);
    CHECK_MESSAGE(contains(text, part), text);
    CHECK_MESSAGE(contains(text, "(tests/ops/fourier_test.cpp:"), text);
  };
  says([&] { fft(x, {.n = 0}); }, "[fft] a transform has 1 to 2147483647 elements, got 0; got f64 (3, 8)");
  says([&] { ifft(x, {.n = -3}); }, "[ifft] a transform has 1 to 2147483647 elements, got -3");
  says([&] { rfft(x, {.n = std::int64_t{1} << 40}); }, "[rfft] a transform has 1 to 2147483647 elements");
  says([&] { fft(Tensor::zeros({4, 0})); }, "[fft] a transform has 1 to 2147483647 elements, got 0; got f32 (4, 0)");
  says([&] { irfft(z); }, "[irfft] a transform has 1 to 2147483647 elements, got 0; got c128 (3, 1)");
  says([&] { fft(x, {.axis = 2}); }, "[fft] axis 2 is out of range for a tensor of rank 2");
  says([&] { fft(Tensor::zeros({})); }, "[fft] axis -1 is out of range");
  says([&] { fft2(Tensor::zeros({3})); }, "[fft2] axis -2 is out of range");
  says([&] { ifft2(cast(x, DType::i32)); }, "[ifft2] i32 elements are not supported");
  says([&] { rfft(z); }, "[rfft] c128 elements are not supported. Hint: use fft");
  for (const DType d : {DType::i32, DType::boolean}) {
    const std::string name(name_of(d));
    says([&] { fft(cast(x, d)); }, "[fft] " + name + " elements are not supported. Hint: cast");
    says([&] { ifft(cast(x, d)); }, "[ifft] " + name + " elements are not supported. Hint: cast");
    says([&] { irfft(cast(x, d)); }, "[irfft] " + name + " elements are not supported. Hint: cast");
    says([&] { stft(cast(x, d), {.size = 4}); }, "[stft] " + name + " elements are not supported");
    says([&] { istft(cast(x, d), {.size = 4}); }, "[istft] " + name + " elements are not supported");
  }
  says([&] { frame(x, 9, 1); }, "[frame] a frame of 9 does not fit into 8 elements");
  says([&] { frame(x, 3, 0); }, "[frame] size and hop are 1 or more, got 3 and 0");
  says([&] { overlap_add(x, 0); }, "[overlap_add] the hop is 1 or more, got 0");
  says([&] { overlap_add(Tensor::zeros({3}), 1); }, "[overlap_add] two axes or more are needed");
  says([&] { stft(x, {}); }, "[stft] the size is 1 or more, got 0");
  says([&] { stft(x, {.size = 4, .hop = 0}); }, "[stft] the hop is 1 or more, got 0");
  says([&] { stft(x, {.size = 16}); }, "[stft] a mirror image of 8 elements needs more than 8. Hint: a smaller size");
  says([&] { stft(x, {.size = 9, .centre = false}); }, "[stft] a frame of 9 does not fit into 8 elements");
  const std::int64_t more = std::int64_t{1} << 57;  // than a window could have
  says([&] { stft(x, {.size = more}); }, "[stft] a mirror image of ");
  says([&] { stft(x, {.size = more, .centre = false}); }, "[stft] a frame of 144115188075855872 does not fit into 8");
  says([&] { stft(x, {.size = 4, .window = x}); }, "[stft] the window must be 4 real numbers, not f64 (3, 8)");
  const Tensor y = stft(x, {.size = 4});
  says([&] { istft(y, {.size = 6}); }, "[istft] a frame or more of 4 coefficients are needed; got c128 (3, 9, 3)");
  says([&] { istft(y, {.size = 4, .hop = 5}); }, "[istft] a hop of 5 leaves gaps between frames of 4");
  says([&] { istft(y, {.size = 4}, -1); }, "[istft] the length is 0 or more, got -1");
  says([&] { hann_window(-1); }, "[hann_window] there are 0 elements or more, got -1");
  says([&] { hann_window(4, true, DType::i32); }, "[hann_window] f32 or f64 expected, got i32");
  says([&] { flip(x, 5); }, "[flip] axis 5 is out of range");
}
