// How an op is defined. An op is a struct: its members are its attributes, and it says
//
//   struct Roll {
//     std::int64_t shift;
//     static constexpr Traits traits{.name = "roll", .kind = Kind::movement};
//     Spec infer(Inputs in) const;             // dtype and shape of the result, or broken("the rule and the values")
//     void run(Inputs in, Tensor& out) const;  // asks the backend; out is allocated by the caller
//     void vjp(Vjp& v) const;                  // gradients of the inputs, written in ops
//   };
//   REEL_OP(Roll)
//
// and is called with apply(Roll{1}, {&x}, where). Ops with several results say outputs(), infer(in, specs), run(in,
// outs). What else an op may say serves time loops:
//
//     Tensor batch(Inputs in, Varying varying, std::int64_t steps) const;
//                                                      all time steps at once
//     bool rows(Inputs in, Varying split) const;       may the batch be shared among threads?
//     bool sums_rows(Inputs in, Varying split) const;  or does each give a part of a sum?
//     std::optional<FusedCall> fuse(Inputs in) const;  how it is a part of a fused run, if it is
//     bool thin(Inputs in) const;                      as fast step by step as for all times at once?
//     bool looks_up(Inputs in) const;                  are the result's rows rows of in[0], by the numbers in[1]?
//     bool prepare(Inputs in, Varying constant, Attrs& better, Tensors& replaced) const;
//                                                      the same call, made ready for a whole loop
#pragma once
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "engine/tensor.h"

namespace reel {

/// The arguments of an op call, without copying their handles.
class Inputs {
 public:
  Inputs(const Tensor* const* first, std::size_t size) : first_(first), size_(size) {}
  Inputs(const std::vector<const Tensor*>& list) : Inputs(list.data(), list.size()) {}
  Inputs(std::initializer_list<const Tensor*> list) : Inputs(list.begin(), list.size()) {}
  const Tensor& operator[](std::size_t i) const { return *first_[i]; }
  std::size_t size() const { return size_; }

 private:
  const Tensor* const* first_;
  std::size_t size_;
};

/// The addresses of a list of tensors, to pass it as Inputs.
inline std::vector<const Tensor*> pointers(const Tensors& list) {
  std::vector<const Tensor*> out;
  out.reserve(list.size());
  for (const Tensor& t : list) out.push_back(&t);
  return out;
}

/// What recomputing a result costs, seen from a time loop.
enum class Kind : std::uint8_t {
  elementwise,  // each element from the elements at its place
  movement,     // elements change place
  heavy,        // products, reductions, lookups: worth keeping, and worth doing once for all time steps
};

/// Which tensors the derivative looks at; the tape lets go of the others.
enum class Reads : std::uint8_t { nothing = 0, inputs = 1, output = 2, both = 3 };

struct Traits {
  const char* name;
  Kind kind = Kind::heavy;
  double effort = 1;  // of making an element, compared with an addition; of heavy ops it is not asked
  Reads reads = Reads::both;
  bool linear = false;         // jointly linear in all inputs: the sum over time steps may be taken of the inputs
  bool allocates = false;      // run() is given undefined results, and makes them
  bool differentiable = true;  // false: a declared end of derivatives, asking for one is an error
};

/// An op object with its type forgotten.
class Attrs {
 public:
  Attrs() = default;
  template <class O>
  explicit Attrs(const O& op) {
    if constexpr (fits<O>)
      std::memcpy(small_, &op, sizeof op);
    else
      big_ = std::make_shared<const O>(op);
  }
  template <class O>
  const O& as() const {
    if constexpr (fits<O>)
      return *reinterpret_cast<const O*>(small_);
    else
      return *static_cast<const O*>(big_.get());
  }

 private:
  template <class O>
  static constexpr bool fits = sizeof(O) <= 24 && alignof(O) <= 8 && std::is_trivially_copyable_v<O>;
  alignas(8) std::byte small_[24];
  std::shared_ptr<const void> big_;
};

/// For each input of a call inside a time loop: does it differ from step to step (and so has a leading axis of steps)?
class Varying {
 public:
  void set(std::size_t i) { bits_ |= std::uint64_t{1} << i; }
  bool operator[](std::size_t i) const { return (bits_ >> i & 1) != 0; }
  bool any() const { return bits_ != 0; }

 private:
  std::uint64_t bits_ = 0;
};

struct Op;

/// What a derivative sees of the call, and where it leaves its results.
class Vjp {
 public:
  Vjp(const Op& op, const Where& where, std::span<const Tensor> ins, std::span<const Tensor> outs,
      std::span<const std::uint32_t> versions, std::span<const Tensor> dy, std::span<const char> needs,
      std::span<Tensor> dx)
      : op_(op), where_(where), ins_(ins), outs_(outs), versions_(versions), dy_(dy), needs_(needs), dx_(dx) {}

  /// Input i with its value; throws Error when it was changed in place since.
  const Tensor& in(std::size_t i) const { return checked(ins_[i], versions_[i], "input", i); }
  /// Output i with its value, likewise.
  const Tensor& out(std::size_t i = 0) const { return checked(outs_[i], versions_[ins_.size() + i], "output", i); }
  /// Shape, dtype and device of input i, whether its value was kept or not.
  const Spec& spec(std::size_t i) const { return ins_[i].spec(); }
  std::size_t inputs() const { return ins_.size(); }
  /// Gradient with respect to output i; undefined stands for zero.
  const Tensor& dy(std::size_t i = 0) const { return dy_[i]; }
  /// Is the gradient of input i wanted?
  bool needs(std::size_t i) const { return needs_[i] != 0; }
  void set(std::size_t i, const Tensor& gradient) { dx_[i] = gradient; }

 private:
  const Tensor& checked(const Tensor& t, std::uint32_t version, const char* what, std::size_t i) const;

  const Op& op_;
  const Where& where_;
  std::span<const Tensor> ins_, outs_;
  std::span<const std::uint32_t> versions_;
  std::span<const Tensor> dy_;
  std::span<const char> needs_;
  std::span<Tensor> dx_;
};

/// The functions of an op with its type forgotten; null where it has none.
struct Op {
  Traits traits;
  std::size_t (*outputs)(const Attrs&);
  void (*infer)(const Attrs&, Inputs, std::span<Spec>);
  void (*run)(const Attrs&, Inputs, std::span<Tensor>);
  /// Instead of run, for ops whose result is elements of in[0] where they are: how many elements to skip.
  std::int64_t (*alias)(const Attrs&, Inputs);
  void (*vjp)(const Attrs&, Vjp&);
  Tensor (*batch)(const Attrs&, Inputs, Varying, std::int64_t steps);
  Tensor (*batch_sum)(const Attrs&, Inputs, Varying, std::int64_t steps);  // undefined where it has no short cut
  /// The inputs in `split` have B places along axis 0, others are whole. True if result r along axis 0 comes from
  /// places r alone, so that run() may be given any of them.
  bool (*rows)(const Attrs&, Inputs, Varying split);
  /// True if the result is a sum over those places, so that the results of parts of them add up.
  bool (*sums_rows)(const Attrs&, Inputs, Varying split);
  /// An elementwise call as a part of a run of such; its parameters are those of the Attrs, which must stay where it
  /// is.
  std::optional<FusedCall> (*fuse)(const Attrs&, Inputs);
  /// Heavy by its kind, but this call has so little to read or to make that it is as fast step by step, and spares a
  /// slab.
  bool (*thin)(const Attrs&, Inputs);
  /// True if row i of the result [B, ...] is row in[1][i] of in[0], in[1] being [B].
  bool (*looks_up)(const Attrs&, Inputs);
  /// For a call that a loop makes many times: puts a call of the same result that is done faster into `better` and
  /// `replaced` (undefined: as it was), which may hold something made from the constant inputs. False: there is none.
  bool (*prepare)(const Attrs&, Inputs, Varying constant, Attrs& better, Tensors& replaced);
};

/// All ops of this build, by registration; the tests go through them.
std::vector<const Op*>& op_registry();

template <class O>
Op make_op() {
  Op op{.traits = O::traits,
        .outputs = nullptr,
        .infer = nullptr,
        .run = nullptr,
        .alias = nullptr,
        .vjp = nullptr,
        .batch = nullptr,
        .batch_sum = nullptr,
        .rows = nullptr,
        .sums_rows = nullptr,
        .fuse = nullptr,
        .thin = nullptr,
        .looks_up = nullptr,
        .prepare = nullptr};
  constexpr bool many = requires(const O& o) { o.outputs(); };
  if constexpr (many) {
    op.outputs = [](const Attrs& a) { return static_cast<std::size_t>(a.as<O>().outputs()); };
    op.infer = [](const Attrs& a, Inputs in, std::span<Spec> out) { a.as<O>().infer(in, out); };
    op.run = [](const Attrs& a, Inputs in, std::span<Tensor> out) { a.as<O>().run(in, out); };
  } else {
    op.outputs = [](const Attrs&) { return std::size_t{1}; };
    op.infer = [](const Attrs& a, Inputs in, std::span<Spec> out) { out[0] = a.as<O>().infer(in); };
    if constexpr (requires(const O& o, Inputs in) { o.alias(in); })
      op.alias = [](const Attrs& a, Inputs in) { return a.as<O>().alias(in); };
    else
      op.run = [](const Attrs& a, Inputs in, std::span<Tensor> out) { a.as<O>().run(in, out[0]); };
  }
  constexpr bool has_vjp = requires(const O& o, Vjp& v) { o.vjp(v); };
  static_assert(has_vjp == O::traits.differentiable, "an op has a vjp or declares .differentiable = false");
  if constexpr (has_vjp) op.vjp = [](const Attrs& a, Vjp& v) { a.as<O>().vjp(v); };
  if constexpr (requires(const O& o, Inputs in, Varying v) { o.batch(in, v, std::int64_t{}); })
    op.batch = [](const Attrs& a, Inputs in, Varying v, std::int64_t t) { return a.as<O>().batch(in, v, t); };
  if constexpr (requires(const O& o, Inputs in, Varying v) { o.batch_sum(in, v, std::int64_t{}); })
    op.batch_sum = [](const Attrs& a, Inputs in, Varying v, std::int64_t t) { return a.as<O>().batch_sum(in, v, t); };
  if constexpr (requires(const O& o, Inputs in, Varying v) { o.rows(in, v); })
    op.rows = [](const Attrs& a, Inputs in, Varying v) { return a.as<O>().rows(in, v); };
  if constexpr (requires(const O& o, Inputs in, Varying v) { o.sums_rows(in, v); })
    op.sums_rows = [](const Attrs& a, Inputs in, Varying v) { return a.as<O>().sums_rows(in, v); };
  if constexpr (requires(const O& o, Inputs in) { o.fuse(in); })
    op.fuse = [](const Attrs& a, Inputs in) { return a.as<O>().fuse(in); };
  if constexpr (requires(const O& o, Inputs in) { o.thin(in); })
    op.thin = [](const Attrs& a, Inputs in) { return a.as<O>().thin(in); };
  if constexpr (requires(const O& o, Inputs in) { o.looks_up(in); })
    op.looks_up = [](const Attrs& a, Inputs in) { return a.as<O>().looks_up(in); };
  if constexpr (requires(const O& o, Inputs in, Varying v, Attrs& b, Tensors& r) { o.prepare(in, v, b, r); })
    op.prepare = [](const Attrs& a, Inputs in, Varying v, Attrs& b, Tensors& r) {
      return a.as<O>().prepare(in, v, b, r);
    };
  return op;
}

/// The one Op of struct O.
template <class O>
const Op& op_of() {
  static const Op op = make_op<O>();
  return op;
}

#define REEL_OP_CONCAT(a, b) a##b
#define REEL_OP_NAME(line) REEL_OP_CONCAT(registered_op_, line)
/// Puts the op into the registry; once an op, at namespace scope of its .cpp file.
#define REEL_OP(...) \
  [[maybe_unused]] static const bool REEL_OP_NAME(__LINE__) = (op_registry().push_back(&op_of<__VA_ARGS__>()), true);

/// Runs an op (or records it for later while a program is traced) and notes it on the current tape, if there is one.
Tensor apply(const Op& op, const Attrs& attrs, Inputs in, const Where& where);
/// The same for ops with several results.
Tensors apply_many(const Op& op, const Attrs& attrs, Inputs in, const Where& where);

template <class O>
Tensor apply(const O& op, Inputs in, const Where& where) {
  return apply(op_of<O>(), Attrs(op), in, where);
}

}  // namespace reel
