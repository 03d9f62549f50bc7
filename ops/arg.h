// What an op takes where it takes a tensor: a tensor or a plain number, and the line of the call, for error messages.
#pragma once
#include "engine/op.h"

namespace reel {

class Arg {
 public:
  Arg(const Tensor& tensor, Where where = Where::current()) : where(where), tensor_(&tensor) {}
  Arg(double number, Where where = Where::current()) : where(where), number_(number) {}

  bool is_number() const { return tensor_ == nullptr; }
  double number() const { return number_; }
  /// The tensor; throws Error when a plain number was given.
  const Tensor& tensor() const {
    if (!tensor_) fail("op", where, "a tensor is wanted here, not a number");
    return *tensor_;
  }
  operator const Tensor&() const { return tensor(); }
  const Tensor* operator->() const { return &tensor(); }

  Where where;

 private:
  const Tensor* tensor_ = nullptr;
  double number_ = 0;
};

/// Runs f, which may break a rule while it looks at the arguments, as part of the op called `name`.
template <class F>
auto named(const char* name, const Arg& x, F&& f) {
  try {
    return f();
  } catch (const RuleError& e) {
    fail(name, x.where, "{}; got {}", e.rule, x->spec().str());
  }
}

}  // namespace reel
