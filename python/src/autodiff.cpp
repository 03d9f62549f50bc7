// Gradients of Python functions. A gradient inside another one, or inside a traced step, is recorded on the tape that
// is there, so that it can be differentiated again. The functions here take and return flat lists; reel/_autodiff.py
// has what users call.
#include <algorithm>
#include <memory>
#include <mutex>

#include "engine/autodiff/primitives.h"
#include "engine/autodiff/tape.h"
#include "ops/check_grads.h"
#include "python/src/python.h"

namespace reel::python {

using namespace nb::literals;

namespace {

/// New values on the current tape that equal xs, so that only what a function does to its arguments is differentiated,
/// and not what was computed from them before.
Tensors as_arguments(const Tensors& xs) {
  Tensors out;
  for (const Tensor& x : xs) out.push_back(primitive::reshape(x, x.shape()));
  return out;
}

/// y, or the same as a constant of the current tape if it was computed before that began: its gradients are zeros.
Tensor on_tape(const Tensor& y) {
  const Tape& tape = *Tape::current();
  return tape.mode() == Tape::Mode::eager && y.id() < tape.first_id() ? primitive::reshape(y, y.shape()) : y;
}

/// f(xs) returns a list whose first element is the value to differentiate. Returns that list and the gradients.
nb::tuple value_and_grad(const nb::callable& f, const Tensors& xs) {
  const Loc where = here();
  std::optional<Tape> tape;
  const bool nested = Tape::current() != nullptr;
  if (!nested) tape.emplace();
  const Tensors arguments = as_arguments(xs);
  const auto values = nb::cast<Tensors>(f(arguments));
  Tensors gradients;
  {
    const Interruptible released;
    gradients = grad({on_tape(values.at(0))}, arguments, {.create_graph = nested}, where);
  }
  return nb::make_tuple(values, gradients);
}

/// A tape that records only while it is resumed, by one thread at a time: others wait without the GIL.
class PausedTape {
 public:
  PausedTape() {
    const NoGrad restore;
    tape_.emplace();
    pause_.emplace();
  }
  ~PausedTape() {
    const NoGrad restore;
    pause_.reset();
    tape_.reset();
  }
  PausedTape(const PausedTape&) = delete;
  PausedTape& operator=(const PausedTape&) = delete;

  class Resumed {
   public:
    explicit Resumed(PausedTape& tape) : pause_(tape.pause_), lock_(tape.busy_, std::try_to_lock) {
      if (!lock_) {
        const GilRelease released;
        lock_.lock();
      }
      restore_.emplace();
      pause_.reset();
    }
    ~Resumed() {
      pause_.emplace();
      restore_.reset();
    }
    Resumed(const Resumed&) = delete;
    Resumed& operator=(const Resumed&) = delete;

   private:
    std::optional<NoGrad>& pause_;
    std::unique_lock<std::recursive_mutex> lock_;
    std::optional<NoGrad> restore_;
  };

 private:
  std::optional<Tape> tape_;
  std::optional<NoGrad> pause_;  // while it lives, tape_ records nothing
  std::recursive_mutex busy_;
};

using Cotangents = std::vector<std::optional<Tensor>>;  // those that are missing are zeros
using Wanted = std::optional<std::vector<std::size_t>>;

/// A recorded call, to compute gradients from cotangents any number of times.
class Pullback {
 public:
  Pullback(const nb::callable& f, const Tensors& xs) : where_(here()) {
    if (const Tape* const outer = Tape::current())
      outer_id_ = outer->first_id();
    else
      own_ = std::make_shared<PausedTape>();
    const std::optional<PausedTape::Resumed> resumed = resume();
    xs_ = as_arguments(xs);
    for (const Tensor& y : nb::cast<Tensors>(f(xs_))) ys_.push_back(on_tape(y));
  }
  /// The call that gives the gradients of `first`, recorded on the same tape. Its arguments are those of `first`, with
  /// the same values, and the cotangents.
  Pullback(const Pullback& first, const Cotangents& cotangents, const Wanted& wanted)
      : where_(here()), outer_id_(first.outer_id_), own_(first.own_), xs_(first.xs_) {
    const std::optional<PausedTape::Resumed> resumed = resume();
    Tensors seeds;
    for (const auto& c : cotangents) {
      seeds.push_back(c ? as_arguments({*c})[0] : Tensor());
      if (c) xs_.push_back(seeds.back());
    }
    for (const Tensor& dx : first.gradients(seeds, wanted, true)) ys_.push_back(on_tape(dx));
  }

  const Tensors& values() const { return ys_; }

  /// The gradients of the arguments, or of those at the indices `wanted`: the others cost nothing then.
  Tensors operator()(const Cotangents& cotangents, const Wanted& wanted) const {
    const std::optional<PausedTape::Resumed> resumed = resume();
    Tensors seeds;
    for (const auto& c : cotangents) seeds.push_back(c.value_or(Tensor()));
    return gradients(seeds, wanted, !own_);
  }

 private:
  /// Makes the tape of this call the current one.
  std::optional<PausedTape::Resumed> resume() const {
    const Tape* const current = Tape::current();
    if (!own_ && current && current->mode() == Tape::Mode::symbolic && current->first_id() != outer_id_)
      fail("vjp", where_, "this was recorded outside of the step that is now traced. Hint: call reel.vjp in the step");
    if (!own_ && (!current || current->first_id() != outer_id_))
      fail("vjp", where_, "the gradient within which this was recorded has ended, and its tape with it");
    if (own_ && current)
      fail(
          "vjp", where_,
          "this was recorded outside of the function that is now differentiated or traced. Hint: call reel.vjp inside");
    return own_ ? std::optional<PausedTape::Resumed>(std::in_place, *own_) : std::nullopt;
  }
  void check(const Tensors& seeds) const {
    if (seeds.size() != ys_.size()) fail("vjp", here(), "{} cotangents for {} results", seeds.size(), ys_.size());
    for (std::size_t i = 0; i < seeds.size(); ++i) {
      if (seeds[i].defined() && !(seeds[i].shape() == ys_[i].shape()))
        fail("vjp", here(), "cotangent {} is {} for a result {}", i, seeds[i].spec().str(), ys_[i].spec().str());
      if (seeds[i].defined() && real_of(seeds[i].dtype()) != real_of(ys_[i].dtype()))
        fail("vjp", here(), "cotangent {} is {} for a result {}", i, seeds[i].spec().str(), ys_[i].spec().str());
    }
  }
  Tensors gradients(const Tensors& seeds, const Wanted& wanted, bool create_graph) const {
    check(seeds);
    Tensors of = wanted ? Tensors() : xs_;
    if (wanted) {
      for (const std::size_t i : *wanted) of.push_back(xs_.at(i));
    }
    const Interruptible released;
    return grad(ys_, of, {create_graph, seeds}, where_);
  }

  Loc where_;
  std::uint64_t outer_id_ = 0;
  std::shared_ptr<PausedTape> own_;  // unless the call was recorded on another one
  Tensors xs_, ys_;
};

/// All elements of tensors as one vector, complex if one of them is; integers and booleans are left out.
Tensor joined(const Tensors& all, const Loc& where) {
  Tensors ys;
  std::copy_if(all.begin(), all.end(), std::back_inserter(ys),
               [](const Tensor& y) { return is_differentiable(y.dtype()); });
  if (ys.empty()) fail("check_grads", where, "f returns no tensor of f64 or c128");
  for (const Tensor& y : ys) {
    if (real_of(y.dtype()) != DType::f64)
      fail("check_grads", where, "f64 and c128 are precise enough for differences; the result is {}", y.spec().str());
  }
  const auto complex_one = [](const Tensor& y) { return is_complex(y.dtype()); };
  const bool to_complex = std::any_of(ys.begin(), ys.end(), complex_one);
  Tensors parts;
  for (const Tensor& y : ys) {
    const Tensor row = reshape(y, {y.numel()});
    parts.push_back(to_complex && !complex_one(y) ? cast(row, DType::c128) : row);
  }
  return parts.size() == 1 ? parts[0] : concat(parts, 0);
}

/// f(xs) returns a list of tensors.
void check_gradients(const nb::callable& f, const Tensors& xs, int order, double tolerance, Seed seed) {
  const Loc where = here();
  const auto one = [&](const Tensors& at) { return joined(nb::cast<Tensors>(f(at)), where); };
  check_grads(one, xs, {.order = order, .tolerance = tolerance, .seed = seed}, where);
}

}  // namespace

void bind_autodiff(nb::module_& m) {
  m.def("_value_and_grad", &value_and_grad);
  m.def("_check_grads", &check_gradients);
  m.def("_called", [](const nb::callable& f, const Tensors& xs) { return nb::cast<Tensors>(f(xs)); });
  nb::class_<Pullback>(m, "_Pullback")
      .def(nb::init<const nb::callable&, const Tensors&>())
      .def(nb::init<const Pullback&, const Cotangents&, const Wanted&>())
      .def_prop_ro("values", &Pullback::values)
      .def("__call__", &Pullback::operator(), nb::arg("cotangents"), nb::arg("wanted").none() = nb::none());
}

}  // namespace reel::python
