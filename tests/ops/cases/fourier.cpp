// Fourier transforms against the sums that define them, and what is made of them against loops over samples.
#include <numbers>

#include "tests/ops/op_cases.h"

namespace reel::test {

namespace {

using Row = std::vector<Complex>;

std::size_t count(std::int64_t n) { return static_cast<std::size_t>(n); }

/// scale sum over j < n of x[j] e^(sign 2 pi i j k / n) for k < n; x ends in zeros.
Row direct_sum(const Row& x, std::size_t n, double sign, double scale) {
  Row y(n);
  for (std::size_t k = 0; k < n; ++k) {
    for (std::size_t j = 0; j < std::min(n, x.size()); ++j)
      y[k] += x[j] *
              std::polar(scale, sign * 2 * std::numbers::pi * static_cast<double>(j * k % n) / static_cast<double>(n));
  }
  return y;
}

/// The n real numbers that have these as the first n / 2 + 1 coefficients.
Row from_half(const Row& half, std::size_t n, double scale) {
  Row y(n);
  for (std::size_t k = 0; k < n; ++k) {
    const std::size_t mirror = std::min(k, n - k);
    const Complex c = mirror < half.size() ? half[mirror] : 0;
    y[k] = k == 0 || 2 * k == n ? c.real() : 2 * k < n ? c : std::conj(c);
  }
  return direct_sum(y, n, 1, scale);
}

/// f of each row of x along an axis, as elements of the result.
Row along(const Row& x, const Shape& shape, int axis, const std::function<Row(const Row&)>& f) {
  if (axis < 0) axis += shape.rank();
  const std::size_t outer = count(shape.product(0, axis)), inner = count(shape.product(axis + 1, shape.rank()));
  const std::size_t n = count(shape[axis]);
  Row y;
  for (std::size_t o = 0; o < outer; ++o) {
    std::vector<Row> rows;
    for (std::size_t i = 0; i < inner; ++i) {
      Row row;
      for (std::size_t j = 0; j < n; ++j) row.push_back(x[(o * n + j) * inner + i]);
      rows.push_back(f(row));
    }
    for (std::size_t k = 0; inner > 0 && k < rows[0].size(); ++k) {
      for (const Row& row : rows) y.push_back(row[k]);
    }
  }
  return y;
}

/// What an inverse transform, or one that is not, is multiplied by.
double scale(FftNorm norm, bool inverse, std::size_t n) {
  if (norm == FftNorm::ortho) return 1 / std::sqrt(static_cast<double>(n));
  return (norm == FftNorm::backward) == inverse ? 1 / static_cast<double>(n) : 1;
}

struct TransformRow {
  Shape shape;
  FftOptions options = {};
};

std::vector<TransformRow> transform_rows() {
  std::vector<TransformRow> rows{
      {{2, 3, 4}},
      {{2, 3, 4}, {.axis = 1}},
      {{2, 5, 2}, {.axis = -2, .norm = FftNorm::ortho}},
      {{3, 4}, {.axis = 0, .norm = FftNorm::forward}},
      {{0, 5}},
      {{5, 0}, {.axis = 0}},
      {{2, 5}, {.n = 3}},
      {{2, 5}, {.n = 8, .norm = FftNorm::ortho}},
      {{2, 3, 2}, {.n = 6, .axis = 1, .norm = FftNorm::forward}},
  };
  for (std::int64_t n : {1, 2, 3, 5, 8, 97, 100}) rows.push_back({{n}});
  return rows;
}

void transforms(Cases& cases) {
  for (const TransformRow& row : transform_rows()) {
    const FftOptions o = row.options;
    const Shape shape = row.shape;
    const auto rows_by = [=](const std::function<Row(const Row&)>& f) {
      return listed([=](const std::vector<Row>& in) { return along(in[0], shape, static_cast<int>(o.axis), f); });
    };
    const auto inputs = [=](DType d) { return Tensors{input(shape, 101, d)}; };
    const auto complex_sum = [=](bool inverse) {
      return rows_by([=](const Row& x) {
        const std::size_t n = count(o.n.value_or(static_cast<std::int64_t>(x.size())));
        return direct_sum(x, n, inverse ? 1 : -1, scale(o.norm, inverse, n));
      });
    };
    cases.push_back({"fft", [=](const Tensors& x) { return fft(x[0], o); }, inputs, complexes, complex_sum(false)});
    cases.push_back({"ifft", [=](const Tensors& x) { return ifft(x[0], o); }, inputs, fields, complex_sum(true)});
    cases.push_back({"rfft", [=](const Tensors& x) { return rfft(x[0], o); }, inputs, reals, rows_by([=](const Row& x) {
                       const std::size_t n = count(o.n.value_or(static_cast<std::int64_t>(x.size())));
                       Row y = direct_sum(x, n, -1, scale(o.norm, false, n));
                       y.resize(n / 2 + 1);
                       return y;
                     })});
    for (std::int64_t odd : {0, 1}) {  // both lengths that have this many coefficients
      FftOptions half = o;
      half.n = o.n.value_or(2 * (shape[checked_axis(o.axis, shape.rank())] - 1) + odd);
      if (*half.n < 1) continue;
      cases.push_back(
          {"irfft", [=](const Tensors& x) { return irfft(x[0], half); }, inputs, complexes, rows_by([=](const Row& x) {
             const std::size_t n = count(*half.n);
             return from_half(x, n, scale(o.norm, true, n));
           })});
    }
  }
  cases.push_back({"fft", [](const Tensors& x) { return fft(x[0]); },  // of real numbers
                   [](DType d) {
                     return Tensors{input({2, 5}, 102, real_of(d))};
                   },
                   complexes, listed([](const std::vector<Row>& in) {
                     return along(in[0], {2, 5}, -1, [](const Row& x) { return direct_sum(x, 5, -1, 1); });
                   })});
  for (const Shape& shape : {Shape{3, 4}, Shape{2, 5, 3}, Shape{1, 1}, Shape{0, 2, 2}}) {
    for (const bool inverse : {false, true}) {
      for (const FftNorm norm : {FftNorm::backward, FftNorm::ortho}) {
        cases.push_back({inverse ? "ifft2" : "fft2",
                         [=](const Tensors& x) { return inverse ? ifft2(x[0], norm) : fft2(x[0], norm); },
                         [=](DType d) { return Tensors{input(shape, 103, d)}; }, fields,
                         listed([=](const std::vector<Row>& in) {
                           const auto sum = [=](const Row& x) {
                             return direct_sum(x, x.size(), inverse ? 1 : -1, scale(norm, inverse, x.size()));
                           };
                           return along(along(in[0], shape, -1, sum), shape, -2, sum);
                         })});
      }
    }
  }
}

// ---- frames ---------------------------------------------------------------------------------------------------------

Row added_up(const Row& frames, std::size_t size, std::size_t hop) {
  const std::size_t n = frames.size() / size;
  Row y((n - 1) * hop + size);
  for (std::size_t k = 0; k < frames.size(); ++k) y[k / size * hop + k % size] += frames[k];
  return y;
}

Row framed(const Row& x, std::size_t size, std::size_t hop) {
  Row y;
  for (std::size_t first = 0; first + size <= x.size(); first += hop)
    y.insert(y.end(), x.begin() + static_cast<std::ptrdiff_t>(first),
             x.begin() + static_cast<std::ptrdiff_t>(first + size));
  return y;
}

void frames(Cases& cases) {
  struct Case {
    Shape shape;
    std::int64_t size, hop;
  };
  for (const Case& c : {Case{{2, 11}, 4, 2}, Case{{2, 11}, 4, 3}, Case{{9}, 2, 5}, Case{{3, 2, 5}, 5, 1},
                        Case{{1}, 1, 1}, Case{{0, 6}, 3, 2}})
    cases.push_back(
        {"frame", [=](const Tensors& x) { return frame(x[0], c.size, c.hop); },
         [=](DType d) { return Tensors{input(c.shape, 111, d)}; }, every, listed([=](const std::vector<Row>& in) {
           return along(in[0], c.shape, -1, [=](const Row& x) { return framed(x, count(c.size), count(c.hop)); });
         })});
  for (const Case& c : {Case{{2, 3, 4}, 4, 2}, Case{{2, 3, 4}, 4, 3}, Case{{3, 2}, 2, 5}, Case{{3, 2, 1, 5}, 5, 1},
                        Case{{1, 1}, 1, 1}, Case{{0, 2, 3}, 3, 2}})
    cases.push_back(
        {"overlap_add", [=](const Tensors& x) { return overlap_add(x[0], c.hop); },
         [=](DType d) { return Tensors{input(c.shape, 112, d)}; }, all_numbers, listed([=](const std::vector<Row>& in) {
           const int r = c.shape.rank();
           const Shape rows{c.shape.product(0, r - 2), c.shape[r - 2] * c.shape[r - 1]};
           return along(in[0], rows, -1, [=](const Row& x) { return added_up(x, count(c.size), count(c.hop)); });
         })});
}

// ---- short-time transforms ------------------------------------------------------------------------------------------

Row hann(std::size_t n, double period) {
  Row w;
  for (std::size_t j = 0; j < n; ++j)
    w.push_back(n == 1 ? 1 : 0.5 - 0.5 * std::cos(2 * std::numbers::pi * static_cast<double>(j) / period));
  return w;
}

/// Element j of x continued by its mirror image.
Complex mirrored(const Row& x, std::int64_t j) {
  const auto n = static_cast<std::int64_t>(x.size());
  return x[count(j < 0 ? -j : j >= n ? 2 * (n - 1) - j : j)];
}

struct Short {
  Shape shape;  // of x
  StftOptions options;
  std::int64_t hop() const { return options.hop.value_or(options.size / 4); }
  std::int64_t reach() const { return options.centre ? options.size / 2 : 0; }
  std::int64_t n() const { return shape[shape.rank() - 1]; }
  std::int64_t frames() const { return (n() + 2 * reach() - options.size) / hop() + 1; }
  std::int64_t bins() const { return options.onesided ? options.size / 2 + 1 : options.size; }
  Row window(const std::vector<Row>& in) const {
    const std::size_t size = count(options.size);
    return in.size() > 1 ? in[1] : hann(size, static_cast<double>(size));
  }
  StftOptions with(const Tensors& x) const {
    StftOptions o = options;
    if (x.size() > 1) o.window = x[1];
    return o;
  }
  Row forward(const Row& x, const Row& w) const {
    Row y;
    for (std::int64_t t = 0; t < frames(); ++t) {
      Row piece;
      for (std::int64_t j = 0; j < options.size; ++j)
        piece.push_back(mirrored(x, t * hop() - reach() + j) * w[count(j)]);
      piece = direct_sum(piece, piece.size(), -1, scale(options.norm, false, piece.size()));
      y.insert(y.end(), piece.begin(), piece.begin() + bins());
    }
    return y;
  }
  Row backward(const Row& y, const Row& w, std::int64_t length) const {
    const std::size_t size = count(options.size);
    Row pieces, squares;
    for (std::int64_t t = 0; t < frames(); ++t) {
      const Row spectrum(y.begin() + t * bins(), y.begin() + (t + 1) * bins());
      const double s = scale(options.norm, true, size);
      const Row piece = options.onesided ? from_half(spectrum, size, s) : direct_sum(spectrum, size, 1, s);
      for (std::size_t j = 0; j < size; ++j) {
        pieces.push_back(piece[j].real() * w[j]);
        squares.push_back(w[j] * w[j]);
      }
    }
    Row x = added_up(pieces, size, count(hop()));
    const Row sum = added_up(squares, size, count(hop()));
    for (std::size_t j = 0; j < x.size(); ++j) x[j] = std::abs(sum[j]) > 1e-11 ? x[j] / sum[j] : 0;
    x.erase(x.begin(), x.begin() + reach());
    x.resize(count(length));
    return x;
  }
};

void short_time(Cases& cases) {
  for (const Short& s :
       {Short{{2, 21}, {.size = 8}}, Short{{20}, {.size = 8, .hop = 4, .centre = false, .norm = FftNorm::ortho}},
        Short{{1, 2, 17}, {.size = 7, .hop = 3, .onesided = false}}, Short{{6}, {.size = 5, .hop = 5}},
        Short{{0, 9}, {.size = 4}}}) {
    for (const bool own_window : {false, true}) {
      const auto with_window = [=](const Tensor& x) {
        return own_window ? Tensors{x, input({s.options.size}, 122, real_of(x.dtype()), 0.5, 1)} : Tensors{x};
      };
      cases.push_back({"stft", [=](const Tensors& x) { return stft(x[0], s.with(x)); },
                       [=](DType d) { return with_window(input(s.shape, 121, d)); }, reals,
                       listed([=](const std::vector<Row>& in) {
                         return along(in[0], s.shape, -1, [&](const Row& x) { return s.forward(x, s.window(in)); });
                       })});
      const int last = s.shape.rank() - 1;
      Shape spectra = s.shape;
      spectra.set(last, s.bins());
      spectra = spectra.insert(last, s.frames());
      const Shape rows{s.shape.product(0, last), s.frames() * s.bins()};
      for (const std::int64_t length : {s.n(), s.n() + 9}) {
        cases.push_back({"istft", [=](const Tensors& y) { return istft(y[0], s.with(y), length); },
                         [=](DType d) { return with_window(input(spectra, 123, d)); }, complexes,
                         listed([=](const std::vector<Row>& in) {
                           return along(in[0], rows, -1,
                                        [&](const Row& y) { return s.backward(y, s.window(in), length); });
                         })});
      }
    }
  }
  for (const std::int64_t n : {0, 1, 2, 9}) {
    for (const bool periodic : {false, true})
      cases.push_back({"hann_window", [=](const Tensors& x) { return hann_window(n, periodic, x[0].dtype()); },
                       [](DType d) { return Tensors{input({}, 124, d)}; }, reals, listed([=](const std::vector<Row>&) {
                         return hann(count(n), static_cast<double>(periodic ? n : n - 1));
                       })});
  }
}

[[maybe_unused]] const bool added = add_cases([](Cases& cases) {
  transforms(cases);
  frames(cases);
  short_time(cases);
});

}  // namespace

}  // namespace reel::test
