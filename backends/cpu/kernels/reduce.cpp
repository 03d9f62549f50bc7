// reduce, argmax, argcummax, sums_of_squares. Long sums of f32 and c64 add eight elements in their precision, and
// what comes of these in double, so that they stay accurate.
#include "backends/cpu/cpu.h"
#include "backends/cpu/kernels/reduce_ops.h"

namespace reel::cpu {

namespace {

constexpr std::int64_t tile = 2048;  // columns per pass: their totals stay in the L1 cache

/// Reduces `count` rows of n <= tile elements, `apart` elements apart, to one row of totals.
template <template <class> class Rule, class T>
void fold_rows(const T* x, std::int64_t count, std::int64_t apart, std::int64_t n, typename Rule<T>::Wide* total) {
  using R = Rule<T>;
  using Wide = typename R::Wide;
  std::fill_n(total, n, Wide(R::neutral));
  std::int64_t r = 0;
  for (; r + 8 <= count; r += 8) {
    const T* row = x + r * apart;
    for (std::int64_t i = 0; i < n; ++i) {
      T eight = row[i];
      for (std::int64_t k = 1; k < 8; ++k) eight = R::combine(eight, row[k * apart + i]);
      total[i] = R::combine(total[i], Wide(eight));
    }
  }
  for (; r < count; ++r) {
    for (std::int64_t i = 0; i < n; ++i) total[i] = R::combine(total[i], Wide(x[r * apart + i]));
  }
}

/// out[i] = out[i] combined with in[r, i] for all r < count.
template <template <class> class Rule, class T, class Out>
void reduce_rows(const T* x, std::int64_t count, std::int64_t apart, std::int64_t n, Out* out) {
  using R = Rule<T>;
  using Wide = typename R::Wide;
  Wide total[tile];
  const auto put = [&](Out& o, Wide t) { o = static_cast<Out>(R::combine(Wide(o), t)); };
  if constexpr (sums_doubles<Rule, T>) {
    constexpr std::int64_t width = lanes<double>, near = 4096;
    if (n >= width && count * n <= near) {  // columns that fit in the L1 cache: accumulate in vectors
      std::int64_t i = 0;
      const auto add_columns = [&]<std::int64_t vectors>(Constant<vectors>) {
        for (; i + vectors * width <= n; i += vectors * width) {
          Doubles sums[vectors];
          for (std::int64_t k = 0; k < vectors; ++k) sums[k] = load_doubles(out + i + k * width);
          for (std::int64_t r = 0; r < count; ++r) {
            for (std::int64_t k = 0; k < vectors; ++k) sums[k] += load_doubles(x + r * apart + i + k * width);
          }
          for (std::int64_t k = 0; k < vectors; ++k)
            store(out + i + k * width, __builtin_convertvector(sums[k], Vector<Out, width>));
        }
      };
      add_columns(Constant<4>{});  // one vector would wait for its last sum
      add_columns(Constant<1>{});
      for (; i < n; ++i) {
        double sum = 0;
        for (std::int64_t r = 0; r < count; ++r) sum += x[r * apart + i];
        put(out[i], sum);
      }
      return;
    }
  }
  constexpr std::int64_t narrow = 1024;
  const std::int64_t joined = n > 0 && apart == n ? std::min(narrow / n, count / 8) : 0;
  if (joined > 1) {  // short rows: several are joined into one long row
    Wide rest[narrow];
    const std::int64_t done = count / joined * joined;
    fold_rows<Rule>(x, count / joined, joined * n, joined * n, total);
    fold_rows<Rule>(x + done * n, count - done, n, n, rest);
    for (std::int64_t left = joined; left > 1;) {  // combine one half with the other
      const std::int64_t half = left / 2;
      left -= half;
      for (std::int64_t i = 0; i < half * n; ++i) total[i] = R::combine(total[i], total[left * n + i]);
    }
    for (std::int64_t i = 0; i < n; ++i) put(out[i], R::combine(total[i], rest[i]));
    return;
  }
  for (std::int64_t first = 0; first < n; first += tile) {
    const std::int64_t width = std::min(tile, n - first);
    fold_rows<Rule>(x + first, count, apart, width, total);
    for (std::int64_t i = 0; i < width; ++i) put(out[first + i], total[i]);
  }
}

/// Adds the sum of n elements of `parts` components each to *out; for short runs.
template <std::int64_t parts, class T, class Out>
void add_run(const T* x, std::int64_t n, Out* out) {
  double total[parts];
  sum_of_doubles<parts>(
      x, parts * n, [](Doubles v) { return v; }, total);
  for (std::int64_t k = 0; k < parts; ++k) out[k] = static_cast<Out>(out[k] + total[k]);
}

/// Adds the sums of short rows to out, as many rows at a time as a vector has lanes; returns how many rows it has done.
template <class T, class Out>
std::int64_t add_short_rows(const T* x, std::int64_t rows, std::int64_t apart, std::int64_t n, Out* out) {
  constexpr std::int64_t width = lanes<double>;
  const auto add = [](auto a, auto b) { return a + b; };
  const bool few_elements = with_few<double>(n, [&](auto count) {
    for (std::int64_t r = 0; r < rows; ++r, x += apart)
      out[r] = static_cast<Out>(out[r] + fold_few<double, count>(x, add));
  });
  if (few_elements) return rows;
  std::int64_t r = 0;
  for (; r + width <= rows; r += width) {
    std::array<Doubles, static_cast<std::size_t>(width)> sums;
    for (Doubles& sum : sums) {
      sum = lanes_of_doubles(x, n, [](Doubles v) { return v; });
      x += apart;
    }
    const Doubles total = load_doubles(out + r) + fold_lanes_of_each<double>(sums, add);
    store(out + r, __builtin_convertvector(total, Vector<Out, width>));
  }
  return r;
}

/// Likewise for the largest or smallest of each row.
template <template <class> class Rule, class T>
std::int64_t best_of_short_rows(const T* x, std::int64_t rows, std::int64_t apart, std::int64_t n, T* out) {
  constexpr std::int64_t width = lanes<T>;
  const auto better = [](Vector<T> a, Vector<T> b) { return Rule<T>::combine_lanes(a, b); };
  const bool few_elements = with_few<T>(n, [&](auto count) {
    REEL_INDEPENDENT
    for (std::int64_t r = 0; r < rows; ++r, x += apart)
      out[r] = Rule<T>::combine(out[r], fold_few<T, count>(x, Rule<T>::combine));
  });
  if (few_elements) return rows;
  std::int64_t r = 0;
  for (; r + width <= rows; r += width) {
    std::array<Vector<T>, static_cast<std::size_t>(width)> best;
    for (Vector<T>& b : best) {
      b = lanes_of_best<Rule>(x, n);
      x += apart;
    }
    store(out + r, better(load(out + r), fold_lanes_of_each<T>(best, better)));
  }
  return r;
}

/// Reduces in into out: the two innermost axes of the loop at once, then the others. An element has `parts` components
/// of type T: 2 for complex numbers.
template <template <class> class Rule, std::int64_t parts, class T, class Out>
void reduce_into(StridedLoop<2> loop, const T* in, Out* out) {
  using Wide = typename Rule<T>::Wide;
  const std::int64_t n = loop.inner_dim();
  if (loop.rank > 0 && loop.inner_stride()[1] == 0) {  // [..., n] -> [...]
    constexpr bool best = picks_one<Rule, T> && sizeof(T) >= 4;
    if constexpr (parts == 1 && (sums_doubles<Rule, T> || best)) {
      if (loop.rank == 2 && loop.strides[0][1] == 1 && n <= few) {
        const std::int64_t apart = loop.strides[0][0];
        std::int64_t done = 0;
        if constexpr (best)
          done = best_of_short_rows<Rule>(in, loop.dims[0], apart, n, out);
        else
          done = add_short_rows(in, loop.dims[0], apart, n, out);
        loop.dims[0] -= done;
        in += done * apart;
        out += done;
      }
    }
    loop.for_each_run([&](const StridedLoop<2>::Offsets& at) {
      Out& o = out[parts * at[1]];
      if constexpr (parts == 1)
        o = static_cast<Out>(Rule<T>::combine(Wide(o), reduce_run<Rule>(in + at[0], n)));
      else if (sums_doubles<Rule, T> && parts * n <= few)
        add_run<parts>(in + parts * at[0], n, &o);
      else
        reduce_rows<Rule>(in + parts * at[0], n, parts, parts, &o);
    });
    return;
  }
  std::int64_t count = 1, apart = n;  // [..., count, n] -> [..., n]
  if (loop.rank >= 2) {
    const auto above = static_cast<std::size_t>(loop.rank - 2);
    if (loop.strides[above][1] == 0) {
      count = loop.dims[above];
      apart = loop.strides[above][0];
      loop.dims[above] = loop.dims[above + 1];  // the callee iterates over this axis
      loop.strides[above] = loop.strides[above + 1];
      --loop.rank;
    }
  }
  loop.for_each_run([&](const StridedLoop<2>::Offsets& at) {
    reduce_rows<Rule>(in + parts * at[0], count, parts * apart, parts * n, out + parts * at[1]);
  });
}

template <template <class> class Rule, class T, std::int64_t parts = 1>
void reduce_all(const ReduceArgs& a) {
  using Wide = typename Rule<T>::Wide;
  const T* const in = static_cast<const T*>(a.in);
  T* const out = static_cast<T*>(a.out);
  const std::int64_t n = parts * a.out_numel;
  int reduced = 0;
  for (int i = 0; i < a.loop.rank; ++i) reduced += a.loop.strides[static_cast<std::size_t>(i)][1] == 0 ? 1 : 0;
  if (reduced > 1 && !std::is_same_v<T, Wide>) {  // out accumulates: it must be as precise as Wide
    std::vector<Wide> total(static_cast<std::size_t>(n), Wide(Rule<T>::neutral));
    reduce_into<Rule, parts>(a.loop, in, total.data());
    std::transform(total.begin(), total.end(), out, [](Wide t) { return static_cast<T>(t); });
  } else {
    std::fill_n(out, n, Rule<T>::neutral);
    reduce_into<Rule, parts>(a.loop, in, out);
  }
}

/// Compares rows j to j + count - 1 with the best so far, column by column.
template <template <class> class Rule, int count, class T>
void contest(const T* x, std::int64_t apart, std::int64_t n, std::int64_t j, T* best, std::int32_t* place) {
  for (std::int64_t i = 0; i < n; ++i) {
    T b = best[i];
    std::int32_t p = place[i];
    for (int k = 0; k < count; ++k) {
      const T v = x[(j + k) * apart + i];
      const bool better = Rule<T>::beats(v, b);
      b = better ? v : b;
      p = better ? static_cast<std::int32_t>(j + k) : p;
    }
    best[i] = b;
    place[i] = p;
  }
}

/// The best of each of n <= tile columns, and its row index.
template <template <class> class Rule, class T>
void best_of_rows(const T* x, std::int64_t rows, std::int64_t apart, std::int64_t n, T* best, std::int32_t* place) {
  std::copy_n(x, n, best);
  std::fill_n(place, n, 0);
  std::int64_t j = 1;
  for (; j + 8 <= rows; j += 8) contest<Rule, 8>(x, apart, n, j, best, place);
  for (; j < rows; ++j) contest<Rule, 1>(x, apart, n, j, best, place);
}

/// The index of the best of n contiguous elements: first for each of `lanes` columns, then among these.
template <template <class> class Rule, class T>
std::int32_t place_of_best(const T* x, std::int64_t n) {
  constexpr std::int64_t lanes = 32;
  T best = x[0];
  std::int64_t place = 0;
  const std::int64_t rows = n / lanes;
  if (rows > 1) {
    T column[lanes];
    std::int32_t row[lanes];
    best_of_rows<Rule>(x, rows, lanes, lanes, column, row);
    for (std::int64_t k = 0; k < lanes; ++k) {
      const std::int64_t here = row[k] * lanes + k;
      const bool better = Rule<T>::beats(column[k], best), worse = Rule<T>::beats(best, column[k]);
      if (worse || (!better && here > place)) continue;
      best = column[k];
      place = here;
    }
  }
  for (std::int64_t i = rows > 1 ? rows * lanes : 1; i < n; ++i) {
    if (!Rule<T>::beats(x[i], best)) continue;
    best = x[i];
    place = i;
  }
  return static_cast<std::int32_t>(place);
}

template <template <class> class Rule, class T>
void places(const PlacesArgs& a) {
  const T* in = static_cast<const T*>(a.in);
  std::int32_t* out = a.out;
  T best[tile];
  for (std::int64_t o = 0; o < a.outer; ++o, in += a.n * a.inner, out += a.inner) {
    if (a.inner == 1) {
      *out = place_of_best<Rule>(in, a.n);
      continue;
    }
    for (std::int64_t first = 0; first < a.inner; first += tile)
      best_of_rows<Rule>(in + first, a.n, a.inner, std::min(tile, a.inner - first), best, out + first);
  }
}

/// The last of the best among rows 0 to j, for each j.
template <template <class> class Rule, class T>
void places_so_far(const PlacesArgs& a) {
  const T* in = static_cast<const T*>(a.in);
  std::int32_t* out = a.out;
  T best[tile];
  std::int32_t place[tile];
  for (std::int64_t o = 0; o < a.outer; ++o, in += a.n * a.inner, out += a.n * a.inner) {
    for (std::int64_t first = 0; first < a.inner; first += tile) {
      const std::int64_t width = std::min(tile, a.inner - first);
      for (std::int64_t j = 0, at = first; j < a.n; ++j, at += a.inner) {
        for (std::int64_t i = 0; i < width; ++i) {
          const T v = in[at + i];
          const bool stays = j > 0 && Rule<T>::beats(best[i], v);
          best[i] = stays ? best[i] : v;
          place[i] = stays ? place[i] : static_cast<std::int32_t>(j);
          out[at + i] = place[i];
        }
      }
    }
  }
}

}  // namespace

void Cpu::reduce(const ReduceArgs& a) {
  const bool sum = a.kind == Reduction::sum;
  const auto extreme = [&]<class T>(std::type_identity<T>) {
    a.kind == Reduction::max ? reduce_all<MaxOp, T>(a) : reduce_all<MinOp, T>(a);
  };
  dispatch(a.dtype, [&]<class T>(std::type_identity<T>) {
    if constexpr (is_complex_type<T>) {
      if (!sum) unsupported("max and min of complex numbers");
      reduce_all<SumOp, typename T::value_type, 2>(a);
    } else if constexpr (std::is_same_v<T, bool>) {
      if (sum) unsupported("sum of bool");
      if (a.loop.numel() == 0)  // that of bytes is no bool
        return fill({a.dtype, a.out_numel, a.kind == Reduction::min ? 1.0 : 0.0, a.out});
      extreme(std::type_identity<std::uint8_t>{});
    } else if (!sum) {
      extreme(std::type_identity<T>{});
    } else {
      reduce_all<SumOp, summand<T>>(a);
    }
  });
}

void Cpu::argmax(const PlacesArgs& a) {
  dispatch(a.dtype, [&]<class T>(std::type_identity<T>) {
    if constexpr (is_complex_type<T> || std::is_same_v<T, bool>)
      unsupported("argmax of complex numbers or bool");
    else
      a.largest ? places<MaxOp, T>(a) : places<MinOp, T>(a);
  });
}

void Cpu::argcummax(const PlacesArgs& a) {
  dispatch(a.dtype, [&]<class T>(std::type_identity<T>) {
    if constexpr (is_complex_type<T> || std::is_same_v<T, bool>)
      unsupported("argcummax of complex numbers or bool");
    else
      a.largest ? places_so_far<MaxOp, T>(a) : places_so_far<MinOp, T>(a);
  });
}

namespace {

template <class T>
double sum_of_squares(std::int64_t n, const T* x) {
  constexpr std::int64_t lanes = 8;
  double lane[lanes] = {};
  const auto square = [](T v) { return static_cast<double>(v) * static_cast<double>(v); };
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    for (std::int64_t k = 0; k < lanes; ++k) lane[k] += square(x[i + k]);
  }
  for (; i < n; ++i) lane[0] += square(x[i]);
  double total = 0;
  for (double l : lane) total += l;
  return total;
}

}  // namespace

void Cpu::sums_of_squares(const SquaresArgs& args) {
  if (!is_floating(args.dtype)) unsupported("sums_of_squares of complex numbers or integers");
  for (const SquaresOf& a : args.of)
    *a.out = dispatch_floating(
        args.dtype, [&]<class T>(std::type_identity<T>) { return sum_of_squares(a.n, static_cast<const T*>(a.x)); });
}

}  // namespace reel::cpu
