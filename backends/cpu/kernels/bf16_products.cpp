#include "backends/cpu/kernels/bf16_products.h"

#include "engine/core/error.h"

#ifdef REEL_ONEDNN
#include <algorithm>
#include <bit>
#include <cstring>
#include <map>

#include "backends/cpu/kernels/onednn.h"

namespace reel::cpu::bf16 {

namespace {

using namespace onednn;

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

dnnl_memory_desc_t matrix(std::int64_t rows, std::int64_t columns, dnnl_data_type_t type, dnnl_format_tag_t tag) {
  dnnl_memory_desc_t out;
  const dnnl_dims_t extents{rows, columns};
  check(functions().dnnl_memory_desc_init_by_tag(&out, 2, extents, type, tag));
  return out;
}
dnnl_memory_desc_t half(std::int64_t rows, std::int64_t columns, bool transposed) {
  return matrix(rows, columns, dnnl_bf16, transposed ? dnnl_ba : dnnl_ab);
}

Memory array(const dnnl_memory_desc_t& desc, void* data = nullptr) {
  return made<Memory>(functions().dnnl_memory_create, &desc, engine(), data);
}

void execute(const Primitive& primitive, const Stream& stream, std::initializer_list<dnnl_exec_arg_t> arrays) {
  check(functions().dnnl_primitive_execute(primitive.get(), stream.get(), static_cast<int>(arrays.size()),
                                           arrays.begin()));
}

/// The product of a block: a [m, k], c [m, n].
struct Call {
  std::int64_t m, k, n;
  bool transposed_a, add;
  auto operator<=>(const Call&) const = default;
};

Description description(const Call& call, const dnnl_memory_desc_t& b) {
  const Functions& f = functions();
  const auto attributes = made<Attributes>(f.dnnl_primitive_attr_create);
  check(f.dnnl_primitive_attr_set_scratchpad_mode(attributes.get(), dnnl_scratchpad_mode_user));
  const auto sum = made<PostOps>(f.dnnl_post_ops_create);
  if (call.add) check(f.dnnl_post_ops_append_sum(sum.get(), 1));
  check(f.dnnl_primitive_attr_set_post_ops(attributes.get(), sum.get()));
  const dnnl_memory_desc_t a = half(call.m, call.k, call.transposed_a), c = matrix(call.m, call.n, dnnl_f32, dnnl_ab);
  dnnl_matmul_desc_t product;
  check(f.dnnl_matmul_desc_init(&product, &a, &b, nullptr, &c));
  return made<Description>(f.dnnl_primitive_desc_create, &product, attributes.get(), engine(), nullptr);
}

const dnnl_memory_desc_t& part(const Description& d, dnnl_query_t which) {
  return *functions().dnnl_primitive_desc_query_md(d.get(), which, 0);
}

/// The layout of b [k, n], the same for all numbers of rows.
dnnl_memory_desc_t packed_desc(std::int64_t k, std::int64_t n) {
  const Description d = description({block_rows, k, n, false, false}, matrix(k, n, dnnl_bf16, dnnl_format_tag_any));
  return part(d, dnnl_query_weights_md);
}

/// What oneDNN has made for one shape; the arrays change from call to call.
struct Product {
  explicit Product(const Call& call) : Product(description(call, packed_desc(call.k, call.n))) {}
  explicit Product(const Description& d)
      : primitive(made<Primitive>(functions().dnnl_primitive_create, d.get())),
        a(array(part(d, dnnl_query_src_md))),
        b(array(part(d, dnnl_query_weights_md))),
        c(array(part(d, dnnl_query_dst_md))),
        scratch(array(part(d, dnnl_query_scratchpad_md))),
        scratch_bytes(functions().dnnl_memory_desc_get_size(&part(d, dnnl_query_scratchpad_md))) {}

  void run(const Stream& stream, void* from_a, void* from_b, void* to, void* free) {
    for (const auto& [memory, data] : {std::pair{&a, from_a}, {&b, from_b}, {&c, to}, {&scratch, free}})
      check(functions().dnnl_memory_set_data_handle(memory->get(), data));
    execute(primitive, stream,
            {{DNNL_ARG_SRC, a.get()},
             {DNNL_ARG_WEIGHTS, b.get()},
             {DNNL_ARG_DST, c.get()},
             {DNNL_ARG_SCRATCHPAD, scratch.get()}});
  }

  Primitive primitive;
  Memory a, b, c, scratch;
  std::size_t scratch_bytes;
};

/// What a thread has made so far: making a product takes longer than a small one itself.
struct OfThread {
  Stream stream = made<Stream>(functions().dnnl_stream_create, engine(), dnnl_stream_default_flags);
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

std::string missing() { return functions().missing; }

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
    const OneThread one;
    const dnnl_memory_desc_t from_desc = half(height, n, b.transposed), desc = packed_desc(height, n);
    StoragePtr& piece = pieces_[static_cast<std::size_t>(i)] =
        StoragePtr(cpu.allocate(functions().dnnl_memory_desc_get_size(&desc)));
    const Memory in = array(from_desc, to), out = array(desc, piece->data);
    const auto reorder = made<Description>(functions().dnnl_reorder_primitive_desc_create, &from_desc, engine(), &desc,
                                           engine(), nullptr);
    execute(made<Primitive>(functions().dnnl_primitive_create, reorder.get()), of_thread().stream,
            {{DNNL_ARG_FROM, in.get()}, {DNNL_ARG_TO, out.get()}});
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
  const OneThread one;
  OfThread& own = of_thread();
  own.limit();
  std::vector<Product*> products;
  std::size_t scratch_bytes = 0;
  for (std::int64_t i = 0; i < terms.count(); ++i) {
    products.push_back(&own.product({height, terms.length(i), n_, a.transposed, add || i > 0}));
    scratch_bytes = std::max(scratch_bytes, products.back()->scratch_bytes);
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
