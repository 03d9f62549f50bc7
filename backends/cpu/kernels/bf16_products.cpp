#include "backends/cpu/kernels/bf16_products.h"

#include "engine/core/error.h"

#ifdef REEL_ONEDNN
#include <omp.h>

#include <bit>
#include <cstring>
#include <map>
#include <oneapi/dnnl/dnnl.hpp>

namespace reel::cpu::bf16 {

namespace {

using dnnl::memory;

// What a call of oneDNN multiplies: so many rows of a, and so many terms of the sums, which go on in c from call to
// call. It has all columns of c: where rows of c are apart, oneDNN has slow kernels only.
constexpr std::int64_t block_rows = 64, block_terms = 1024;
// For fewer rows or columns oneDNN changes from AMX to AVX512-BF16, which adds in another order. Shards of a batch have
// any number of rows, so missing ones are added as zeros.
constexpr std::int64_t fewest_rows = 16;

/// To nearest, ties to even; NaN stays NaN.
std::uint16_t rounded(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t nearest = (bits + 0x7fff + (bits >> 16 & 1)) >> 16, quiet = bits >> 16 | 0x40;
  return static_cast<std::uint16_t>(x != x ? quiet : nearest);
}

/// Rounds rows of numbers that are `ld` apart. Where they are parts of longer ones, the processor does not foresee the
/// next; asked for ahead of time, they take half as long.
void round_rows(const float* from, std::int64_t ld, std::int64_t rows, std::int64_t columns, std::uint16_t* to) {
  constexpr std::int64_t ahead = 8, line = 64 / sizeof(float);
  for (std::int64_t i = 0; i < rows; ++i, from += ld, to += columns) {
    if (i + ahead < rows) {
      for (std::int64_t j = 0; j < columns; j += line) __builtin_prefetch(from + ahead * ld + j);
    }
    for (std::int64_t j = 0; j < columns; ++j) to[j] = rounded(from[j]);
  }
}

/// oneDNN divides a call among OpenMP's threads, but our calls are divided already. While this lives, the calling
/// thread has one for its parallel regions; other threads keep theirs.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  OneThread(const OneThread&) = delete;
  ~OneThread() { omp_set_num_threads(before_); }

 private:
  int before_;
};

const dnnl::engine& engine() {
  static const auto& cpu = *new dnnl::engine(dnnl::engine::kind::cpu, 0);  // leaked: threads may outlive static objects
  return cpu;
}

memory::desc half(std::int64_t rows, std::int64_t columns, memory::format_tag tag) {
  return {{rows, columns}, memory::data_type::bf16, tag};
}

/// The product of a block: a [m, k], c [m, n].
struct Call {
  std::int64_t m, k, n;
  bool transposed_a, add;
  auto operator<=>(const Call&) const = default;
};

dnnl::matmul::primitive_desc description(const Call& call, const memory::desc& b) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (call.add) {
    dnnl::post_ops sum;
    sum.append_sum();
    attributes.set_post_ops(sum);
  }
  using tag = memory::format_tag;
  const memory::desc a = half(call.m, call.k, call.transposed_a ? tag::ba : tag::ab),
                     c({call.m, call.n}, memory::data_type::f32, tag::ab);
  return {{a, b, c}, attributes, engine()};
}

/// The layout of b [k, n], the same for all numbers of rows.
memory::desc packed_desc(std::int64_t k, std::int64_t n) {
  return description({block_rows, k, n, false, false}, half(k, n, memory::format_tag::any)).weights_desc();
}

/// What oneDNN has made for one shape; the arrays change from call to call.
struct Product {
  explicit Product(const Call& call) : Product(description(call, packed_desc(call.k, call.n))) {}
  explicit Product(const dnnl::matmul::primitive_desc& d)
      : primitive(d),
        a(d.src_desc(), engine(), nullptr),
        b(d.weights_desc(), engine(), nullptr),
        c(d.dst_desc(), engine(), nullptr),
        scratch(d.scratchpad_desc(), engine(), nullptr) {}

  void run(const dnnl::stream& stream, void* from_a, void* from_b, void* to, void* free) {
    a.set_data_handle(from_a), b.set_data_handle(from_b), c.set_data_handle(to), scratch.set_data_handle(free);
    const dnnl_exec_arg_t arrays[] = {{DNNL_ARG_SRC, a.get()},
                                      {DNNL_ARG_WEIGHTS, b.get()},
                                      {DNNL_ARG_DST, c.get()},
                                      {DNNL_ARG_SCRATCHPAD, scratch.get()}};
    dnnl::error::wrap_c_api(dnnl_primitive_execute(primitive.get(), stream.get(), std::size(arrays), arrays),
                            "execute");
  }

  dnnl::matmul primitive;
  memory a, b, c, scratch;
};

/// What a thread has made so far: making a product takes longer than a small one itself.
struct OfThread {
  dnnl::stream stream{engine()};
  std::map<Call, Product> products;

  Product& product(const Call& call) {
    if (const auto found = products.find(call); found != products.end()) return found->second;
    return products.try_emplace(call, call).first->second;
  }
  void limit() {
    constexpr std::size_t most = 256;
    if (products.size() > most) products.clear();
  }
};
OfThread& of_thread() {
  thread_local OfThread own;
  return own;
}

/// Calls f with the errors of oneDNN as ours.
template <class F>
void with_onednn(F&& f) {
  try {
    const OneThread one;
    f();
  } catch (const dnnl::error& e) {
    if (e.status == dnnl_out_of_memory) throw OutOfMemory("cpu", "oneDNN had no memory for a product of bf16");
    throw Error("cpu", fmt::format("oneDNN failed in a product of bf16: {}", e.what()));
  }
}

/// n in parts of `size`; the last one is longer, not shorter.
struct Parts {
  std::int64_t n, size;
  std::int64_t count() const { return std::max<std::int64_t>(1, n / size); }
  std::int64_t first(std::int64_t i) const { return i * size; }
  std::int64_t length(std::int64_t i) const { return i + 1 == count() ? n - first(i) : size; }
  std::int64_t longest() const { return length(count() - 1); }
};

constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

std::string missing() {
  const auto has = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  constexpr auto needed = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_bf16);
  if ((has & needed) == needed) return "";
  return "this processor has neither AVX512-BF16 nor AMX, or DNNL_MAX_CPU_ISA rules them out. Hint: \"cpu\" multiplies "
         "in f32";
}

Packed::Packed(Backend& cpu, const Matrix& b, std::int64_t k, std::int64_t n) : k_(k), n_(n) {
  const Parts terms{k, block_terms};
  pieces_.resize(static_cast<std::size_t>(terms.count()));
  cpu.parallel(static_cast<int>(terms.count()), [&](int i) {
    const std::int64_t height = terms.length(i);
    const float* const from = b.at(terms.first(i), 0);
    const StoragePtr plain(cpu.allocate(sizeof(std::uint16_t) * static_cast<std::size_t>(height * n)));
    auto* const to = reinterpret_cast<std::uint16_t*>(plain->data);
    if (b.transposed)
      round_rows(from, b.ld, n, height, to);
    else
      round_rows(from, b.ld, height, n, to);
    with_onednn([&] {
      using tag = memory::format_tag;
      const memory::desc desc = packed_desc(height, n);
      StoragePtr& piece = pieces_[static_cast<std::size_t>(i)] = StoragePtr(cpu.allocate(desc.get_size()));
      memory in(half(height, n, b.transposed ? tag::ba : tag::ab), engine(), to), out(desc, engine(), piece->data);
      dnnl::reorder(in, out).execute(of_thread().stream, in, out);
    });
  });
}

void Packed::multiply(Backend& cpu, const Matrix& a, std::int64_t m, float* c, bool add) const {
  constexpr std::int64_t enough = std::int64_t{1} << 22;  // fewest products of two numbers that pay for a second thread
  const auto block = [&](std::int64_t i) {
    const std::int64_t first = i * block_rows;
    multiply_rows(cpu, {a.at(first, 0), a.ld, a.transposed}, std::min(block_rows, m - first), c + first * n_, add);
  };
  const std::int64_t blocks = (m + block_rows - 1) / block_rows;
  if (m * n_ * k_ >= enough) return cpu.parallel(static_cast<int>(blocks), block);
  for (std::int64_t i = 0; i < blocks; ++i) block(i);
}

void Packed::multiply_rows(Backend& cpu, const Matrix& a, std::int64_t rows, float* c, bool add) const {
  const Parts terms{k_, block_terms};
  const std::int64_t height = a.transposed ? rows : std::max(rows, fewest_rows);
  with_onednn([&] {
    OfThread& own = of_thread();
    own.limit();
    std::vector<Product*> products;
    std::size_t scratch_bytes = 0;
    for (std::int64_t i = 0; i < terms.count(); ++i) {
      products.push_back(&own.product({height, terms.length(i), n_, a.transposed, add || i > 0}));
      scratch_bytes = std::max(scratch_bytes, products.back()->scratch.get_desc().get_size());
    }
    const std::size_t a_bytes = aligned(sizeof(std::uint16_t) * static_cast<std::size_t>(height * terms.longest())),
                      row_bytes = sizeof(float) * static_cast<std::size_t>(n_),
                      c_bytes = height == rows ? 0 : aligned(row_bytes * static_cast<std::size_t>(height));
    const StoragePtr memory(cpu.allocate(a_bytes + c_bytes + scratch_bytes));
    auto* const half_a = reinterpret_cast<std::uint16_t*>(memory->data);
    std::byte* const scratch = memory->data + a_bytes + c_bytes;
    float* out = c;
    if (c_bytes > 0) {
      out = reinterpret_cast<float*>(memory->data + a_bytes);
      std::memset(out, 0, c_bytes);
      if (add) std::memcpy(out, c, row_bytes * static_cast<std::size_t>(rows));
    }
    for (std::int64_t i = 0; i < terms.count(); ++i) {
      const float* const from = a.at(0, terms.first(i));
      const std::int64_t length = terms.length(i);
      if (a.transposed) {
        round_rows(from, a.ld, length, rows, half_a);
      } else {
        round_rows(from, a.ld, rows, length, half_a);
        std::fill(half_a + rows * length, half_a + height * length, std::uint16_t{0});
      }
      const auto p = static_cast<std::size_t>(i);
      products[p]->run(own.stream, half_a, pieces_[p]->data, out, scratch);
    }
    if (c_bytes > 0) std::memcpy(c, out, row_bytes * static_cast<std::size_t>(rows));
  });
}

void multiply(Backend& cpu, const Matrix& a, const Matrix& b, std::int64_t m, std::int64_t k, std::int64_t n,
              float* c) {
  constexpr std::int64_t at_once = std::int64_t{1} << 21;  // elements of b
  const Parts parts{k, std::max<std::int64_t>(1, at_once / n / block_terms) * block_terms};
  for (std::int64_t i = 0; i < parts.count(); ++i) {
    const std::int64_t first = parts.first(i);
    const Packed part(cpu, {b.at(first, 0), b.ld, b.transposed}, parts.length(i), n);
    part.multiply(cpu, {a.at(0, first), a.ld, a.transposed}, m, c, i > 0);
  }
}

}  // namespace reel::cpu::bf16

#else

namespace reel::cpu::bf16 {

std::string missing() {
  return "this build is without oneDNN. Hint: install libdnnl-dev and build again, or take \"cpu\"";
}
Packed::Packed(Backend&, const Matrix&, std::int64_t k, std::int64_t n) : k_(k), n_(n) { REEL_ASSERT(false); }
void Packed::multiply(Backend&, const Matrix&, std::int64_t, float*, bool) const { REEL_ASSERT(false); }
void multiply(Backend&, const Matrix&, const Matrix&, std::int64_t, std::int64_t, std::int64_t, float*) {
  REEL_ASSERT(false);
}

}  // namespace reel::cpu::bf16

#endif
