// An op's argument: a tensor or a plain scalar, and the line of the call for error messages.
#pragma once
#include <complex>
#include <concepts>
#include <initializer_list>

#include "engine/autodiff/op.h"

namespace reel {

class Arg {
 public:
  Arg(const Tensor& tensor, Loc place = Loc::current()) : where(place), tensor_(&tensor) {}
  Arg(double number, Loc place = Loc::current()) : where(place), number_(number) {}
  /// One that must be complex, whatever its value: arithmetic and where() take it.
  Arg(std::complex<double> number, Loc place = Loc::current()) : where(place), number_(number), complex_(true) {}

  bool is_number() const { return !tensor_ && !complex_; }
  bool is_complex_number() const { return complex_; }
  double number() const { return number_.real(); }
  std::complex<double> complex_number() const { return number_; }
  /// The tensor; throws Error, which names the op, when the argument is a plain scalar or an undefined tensor.
  const Tensor& tensor(const char* op = "op") const {
    if (!tensor_) fail(op, where, "a tensor is expected here, not a number");
    if (!tensor_->defined()) fail(op, where, "this argument is an undefined tensor");
    return *tensor_;
  }
  operator const Tensor&() const { return tensor(); }
  const Tensor* operator->() const { return &tensor(); }

  Loc where;

 private:
  const Tensor* tensor_ = nullptr;
  std::complex<double> number_ = 0;
  bool complex_ = false;
};

/// Throws Error if an argument of the op called `name`, which takes only tensors, is a plain scalar.
inline void need_tensors(const char* name, std::initializer_list<const Arg*> arguments) {
  for (const Arg* x : arguments) x->tensor(name);
}

/// Runs f as part of the op called `name`: a RuleError gets the op's name, the argument, a tensor, and the caller's
/// line.
template <class F>
auto named(const char* name, const Arg& x, F&& f) {
  const Tensor& tensor = x.tensor(name);
  try {
    return f();
  } catch (const RuleError& e) {
    fail(name, x.where, "{}; got {}", e.rule, tensor.spec().str());
  }
}

/// Runs an op on its arguments, which are tensors, as if at the line of the first.
template <class O, std::same_as<Arg>... More>
auto apply(const O& op, const Arg& x, const More&... more) {
  return apply(op, {&x.tensor(O::traits.name), &more.tensor(O::traits.name)...}, x.where);
}

}  // namespace reel
