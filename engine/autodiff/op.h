// How an op is defined. An op is a struct whose members are its attributes:
//
//   struct Roll {
//     std::int64_t shift;
//     bool operator==(const Roll&) const = default;
//     static constexpr Traits traits{.name = "roll", .kind = Kind::movement};
//     Spec infer(Inputs in) const;             // dtype and shape of the result, or rule_error(the rule and the values)
//     void run(Inputs in, Tensor& out) const;  // calls the backend, with data(), or computes on the host, with
//                                              // data_as(); the caller has allocated out
//     void vjp(Vjp& v) const;                  // gradients of the inputs, written in ops
//   };
//   REEL_OP(Roll)
//
// It is called with apply(Roll{1}, {&x}, where). Ops with several results define outputs(), infer(in, specs) and
// run(in, outs). The other members are optional and serve time loops:
//
//   Tensor vmap(Inputs in, Mapped mapped, std::int64_t steps) const;      all time steps in one call
//   Tensor vmap_sum(Inputs in, Mapped mapped, std::int64_t steps) const;  their sum over time in one call
//   bool shards_rows(Inputs in, Mapped sharded) const;                    can each thread run its shard of the batch?
//   bool reduces_rows(Inputs in, Mapped sharded) const;                   if not: is each shard's result a partial sum?
//   std::optional<FusedCall> fuse(Inputs in) const;                       the call in a fusion group, if it can be
//   bool memory_bound(Inputs in) const;                                   is hoisting this call not worth it?
//   bool is_gather(Inputs in) const;                                      does it gather rows of in[0] by in[1]?
//   double flops(Inputs in) const;                                        its operations, if not by Traits::cost
//   bool prepack(Inputs in, Mapped constant, Attrs& better, Tensors& replaced) const;
//                                                                         a faster call with the same result
#pragma once
#include <concepts>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <type_traits>
#include <vector>

#include "engine/core/tensor.h"

namespace reel {

/// The arguments of an op call, as pointers, so that no handle is copied.
class Inputs {
 public:
  Inputs(const Tensor* const* first, std::size_t size) : first_(first), size_(size) {}
  Inputs(const std::vector<const Tensor*>& list) : Inputs(list.data(), list.size()) {}
  Inputs(std::initializer_list<const Tensor*> list) : Inputs(list.begin(), list.size()) {}
  /// Throws RuleError if the call has fewer arguments.
  const Tensor& operator[](std::size_t i) const {
    return i < size_ ? *first_[i] : throw RuleError(fmt::format("argument {} is missing, the call has {}", i, size_));
  }
  std::size_t size() const { return size_; }

 private:
  const Tensor* const* first_;
  std::size_t size_;
};

/// The addresses of a list of tensors, for Inputs.
inline std::vector<const Tensor*> pointers(const Tensors& list) {
  std::vector<const Tensor*> out;
  out.reserve(list.size());
  for (const Tensor& t : list) out.push_back(&t);
  return out;
}

/// What recomputing a result costs, seen from a time loop.
enum class Kind : std::uint8_t {
  elementwise,  // each element depends on the input elements at its index
  movement,     // elements move to other indices
  compute,      // products, reductions, gathers: worth saving, and worth hoisting out of the loop
};

/// Which tensors the vjp reads; the tape keeps no storage of the others.
enum class Saves : std::uint8_t { nothing = 0, inputs = 1, output = 2, both = 3 };

struct Traits {
  const char* name;
  Kind kind = Kind::compute;
  double cost = 1;  // per element, in additions; not used for compute ops
  Saves saves = Saves::both;
  bool linear = false;         // jointly linear in all inputs, so it commutes with the sum over time steps
  bool allocates = false;      // run() allocates its results itself
  bool accumulates = false;    // run() fills its result with 0 and adds to it, so without the fill it adds to a sum
  bool differentiable = true;  // false: taking a gradient through this op is an error
  bool singular = false;       // for some numbers run() throws or a derivative is infinite
};

/// A type-erased op object. Small ones are stored in place.
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

/// Some inputs of a call, for example: does it have a leading axis of time steps [T, ...]?
class Mapped {
 public:
  void set(std::size_t i) { marked_.insert(i); }
  bool operator[](std::size_t i) const { return marked_.contains(i); }
  bool any() const { return !marked_.empty(); }

 private:
  std::set<std::size_t> marked_;
};

struct Op;

/// The argument of an op's vjp: the call's inputs and outputs, their gradients, and where the results go. An index that
/// the call does not have is an Error that names the op.
class Vjp {
 public:
  Vjp(const Op& op, const Loc& where, std::span<const Tensor> ins, std::span<const Tensor> outs,
      std::span<const std::uint32_t> versions, std::span<const Tensor> dy, std::span<const char> needs,
      std::span<Tensor> dx)
      : op_(op), where_(where), ins_(ins), outs_(outs), versions_(versions), dy_(dy), needs_(needs), dx_(dx) {}

  /// Input i; throws Error when it was changed in place since the call.
  const Tensor& in(std::size_t i) const { return checked(ins_, i, 0, "input"); }
  /// Output i; throws likewise.
  const Tensor& out(std::size_t i = 0) const { return checked(outs_, i, ins_.size(), "output"); }
  /// Shape, dtype and device of input i, whether its value was saved or not.
  const Spec& spec(std::size_t i) const { return ins_[known(i, ins_.size(), "input")].spec(); }
  std::size_t inputs() const { return ins_.size(); }
  /// Where the call was made.
  const Loc& where() const { return where_; }
  /// Gradient with respect to output i; undefined means zero.
  const Tensor& dy(std::size_t i = 0) const { return dy_[known(i, dy_.size(), "output")]; }
  /// Is the gradient of input i needed?
  bool needs(std::size_t i) const { return needs_[known(i, needs_.size(), "input")] != 0; }
  /// Sets the gradient of input i. It has the input's dtype; for a real input it may be complex, and the real part is
  /// used. Its shape may be any that the input broadcasts to. Throws Error for any other dtype or shape.
  void set(std::size_t i, const Tensor& gradient);

 private:
  /// The index, of `count` inputs or outputs.
  std::size_t known(std::size_t i, std::size_t count, const char* what) const;
  /// Element i of the inputs or outputs, whose versions begin at `first`.
  const Tensor& checked(std::span<const Tensor> of, std::size_t i, std::size_t first, const char* what) const;

  const Op& op_;
  const Loc& where_;
  std::span<const Tensor> ins_, outs_;
  std::span<const std::uint32_t> versions_;
  std::span<const Tensor> dy_;
  std::span<const char> needs_;
  std::span<Tensor> dx_;
};

#define REEL_LOOP_RULES(X) \
  X(vmap) X(vmap_sum) X(shards_rows) X(reduces_rows) X(fuse) X(memory_bound) X(is_gather) X(flops) X(prepack)
/// What the passes of a time loop can query from an op; null where the op does not define it.
struct LoopRules {
  /// All time steps in one call; the inputs in `mapped` are [T, ...].
  Tensor (*vmap)(const Attrs&, Inputs, Mapped mapped, std::int64_t steps) = nullptr;
  /// Their sum over time in one call. Returns an undefined tensor if that is no faster than vmap and sum.
  Tensor (*vmap_sum)(const Attrs&, Inputs, Mapped mapped, std::int64_t steps) = nullptr;
  /// The inputs in `sharded` have the batch as axis 0, the others are replicated. True if row r of the result depends
  /// only on rows r of the sharded inputs, so run() may be given any range of rows.
  bool (*shards_rows)(const Attrs&, Inputs, Mapped sharded) = nullptr;
  /// True if the result is a sum over the batch, so that the results of shards add up.
  bool (*reduces_rows)(const Attrs&, Inputs, Mapped sharded) = nullptr;
  /// An elementwise call as a member of a fusion group; its operands have no indices yet.
  std::optional<FusedCall> (*fuse)(const Attrs&, Inputs) = nullptr;
  /// True for a compute op whose call is memory-bound, so hoisting it would not pay off.
  bool (*memory_bound)(const Attrs&, Inputs) = nullptr;
  /// True if row i of the result [B, ...] is row in[1][i] of in[0], in[1] being [B].
  bool (*is_gather)(const Attrs&, Inputs) = nullptr;
  /// Operations of a call, in additions.
  double (*flops)(const Attrs&, Inputs) = nullptr;
  /// For a call that a loop makes many times: writes a faster call with the same result to `better` and `replaced`
  /// (undefined: the argument stays). `replaced` may hold tensors made from the constant inputs; `better` must follow
  /// from the specs alone, as later runs with other values take it, too. False: there is none.
  bool (*prepack)(const Attrs&, Inputs, Mapped constant, Attrs& better, Tensors& replaced) = nullptr;
};

/// The functions of a type-erased op; null where the op does not define one.
struct Op {
  Traits traits;
  std::size_t (*outputs)(const Attrs&) = nullptr;
  void (*infer)(const Attrs&, Inputs, std::span<Spec>) = nullptr;
  void (*run)(const Attrs&, Inputs, std::span<Tensor>) = nullptr;
  /// Replaces run for ops whose result is a view of in[0]: the offset of the view in elements.
  std::int64_t (*alias)(const Attrs&, Inputs) = nullptr;
  void (*vjp)(const Attrs&, Vjp&) = nullptr;
  /// Do two calls of the op have the same attributes?
  bool (*same)(const Attrs&, const Attrs&) = nullptr;
  LoopRules loop = {};
};

/// All registered ops of this build; the tests iterate over them.
std::vector<const Op*>& op_registry();

/// Throws what an op threw as a RuleError with the same text, if it is an error of the standard library.
void rethrow_as_rule(const std::exception& e);
/// Calls a function of an op.
template <class F>
auto guarded(F&& f) try {
  return f();
} catch (const std::exception& e) {
  rethrow_as_rule(e);
  throw;
}

/// Builds the Op from the functions that struct O defines.
template <class O>
Op make_op() {
  Op op{O::traits};
  static_assert(std::is_empty_v<O> || std::equality_comparable<O>,
                "an op with attributes compares them: bool operator==(const O&) const = default;");
  if constexpr (!std::is_empty_v<O> && requires { &O::operator==; })  // a base's would leave out what O adds
    static_assert(
        requires { static_cast<bool (O::*)(const O&) const>(&O::operator==); },
        "an op compares what it adds to a base: bool operator==(const O&) const = default;");
  if constexpr (std::is_empty_v<O>)
    op.same = [](const Attrs&, const Attrs&) { return true; };
  else
    op.same = [](const Attrs& a, const Attrs& b) { return a.as<O>() == b.as<O>(); };
  constexpr bool many = requires(const O& o) { o.outputs(); };
  if constexpr (many) {
    op.outputs = [](const Attrs& a) { return static_cast<std::size_t>(a.as<O>().outputs()); };
    op.infer = [](const Attrs& a, Inputs in, std::span<Spec> out) { guarded([&] { a.as<O>().infer(in, out); }); };
    op.run = [](const Attrs& a, Inputs in, std::span<Tensor> out) { guarded([&] { a.as<O>().run(in, out); }); };
  } else {
    op.outputs = [](const Attrs&) { return std::size_t{1}; };
    op.infer = [](const Attrs& a, Inputs in, std::span<Spec> out) { guarded([&] { out[0] = a.as<O>().infer(in); }); };
    if constexpr (requires(const O& o, Inputs in) { o.alias(in); })
      op.alias = [](const Attrs& a, Inputs in) { return guarded([&] { return a.as<O>().alias(in); }); };
    else
      op.run = [](const Attrs& a, Inputs in, std::span<Tensor> out) { guarded([&] { a.as<O>().run(in, out[0]); }); };
  }
  static_assert(
      !many || !requires { &O::vmap; }, "vmap is for ops with one result");
  constexpr bool has_vjp = requires(const O& o, Vjp& v) { o.vjp(v); };
  static_assert(has_vjp == O::traits.differentiable, "an op has a vjp or declares .differentiable = false");
  if constexpr (has_vjp) op.vjp = [](const Attrs& a, Vjp& v) { guarded([&] { a.as<O>().vjp(v); }); };
#define REEL_LOOP_RULE(rule)            \
  if constexpr (requires { &O::rule; }) \
    op.loop.rule = [](const Attrs& a, auto... x) { return guarded([&] { return a.as<O>().rule(x...); }); };
  REEL_LOOP_RULES(REEL_LOOP_RULE)
#undef REEL_LOOP_RULE
  return op;
}

/// The one Op of struct O.
template <class O>
const Op& op_of() {
  static const Op op = make_op<O>();
  return op;
}

#define REEL_OP_CONCAT(a, b) a##b
#define REEL_OP_NAME(number) REEL_OP_CONCAT(registered_op_, number)
/// Registers an op. Use it once per op, at namespace scope of its .cpp file.
#define REEL_OP(...) \
  [[maybe_unused]] static const bool REEL_OP_NAME(__COUNTER__) = (op_registry().push_back(&op_of<__VA_ARGS__>()), true);

/// The spec of an op's one result; none if the arguments break its rule.
std::optional<Spec> try_infer(const Op& op, const Attrs& attrs, Inputs in);

/// Calls an op's vjp. Errors name the op; one of an op that it calls in turn, which the user may not know, names both.
void pull_back(const Op& op, const Attrs& attrs, Vjp& v, Loc called);

/// Runs an op (or only infers shapes while a program is traced) and records it on the current tape, if there is one.
Tensor apply(const Op& op, const Attrs& attrs, Inputs in, const Loc& where);
/// The same for ops with several results.
Tensors apply_many(const Op& op, const Attrs& attrs, Inputs in, const Loc& where);

/// The same for an op given as its struct; Tensors if it has several results.
template <class O>
auto apply(const O& op, Inputs in, const Loc& where) {
  if constexpr (requires { op.outputs(); })
    return apply_many(op_of<O>(), Attrs(op), in, where);
  else
    return apply(op_of<O>(), Attrs(op), in, where);
}

}  // namespace reel
