// What a fusion group of elementwise calls computes, as lines of C++ for generated kernels: for one element, or for a
// SIMD batch of them. The kernel supplies the loads.
#pragma once
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "engine/device/kernels.h"

namespace reel {

/// The dtype of a call's result.
DType result_of_call(const FusedCall& call);
/// The dtypes of a fusion group's operands.
std::vector<DType> dtypes_of(const FusedArgs& args);
/// The name of a dtype in generated kernels.
const char* type_name(DType d);
/// A number as an expression of generated kernels, exactly; also if it is infinite or NaN.
std::string number_text(double x);
/// The index of the call that produces each operand, or -1.
std::vector<int> makers_of(std::span<const FusedCall> calls, std::size_t operands);

bool is_power(const FusedCall& call);
/// The number of functor parameters that a call takes from the kernel's argument, so that other values need no other
/// kernel. Exponents are part of the source instead: they decide what is computed.
int numbers_of(const FusedCall& call);
void put_numbers(std::span<const FusedCall> calls, std::vector<std::uint64_t>& out);
/// Does a call move elements along their row?
bool has_rolls(std::span<const FusedCall> calls);

/// Values are requested at a shift: shift s means the element s columns before, as rolls need. A value computed in
/// the group is then recomputed at that shift from shifted arguments: no thread waits for another.
class RunText {
 public:
  /// Returns the name of an argument's value `shift` columns before.
  using Load = std::function<std::string(int operand, std::int64_t shift)>;
  /// `flat`: for each operand, is it constant along a row? `first_number`: how many parameters in the kernel's argument
  /// come first and belong to others. Lines start with `indent`.
  RunText(std::span<const FusedCall> calls, std::vector<DType> dtypes, std::vector<char> flat, std::int64_t columns,
          int first_number, Load load, std::string indent);
  /// Values are SIMD batches from here on, and the functor of call i is f<i>.
  void use_batches() { batches_ = true; }
  /// Gives up when so many values have names: value() is then empty. A value that is rolled is computed for each shift.
  void stop_at(std::size_t values) { most_ = values; }
  bool gave_up() const { return names_.size() >= most_; }

  /// The name of an operand's value `shift` columns before; appends the lines that compute it to lines().
  std::string value(int operand, std::int64_t shift = 0);
  const std::string& lines() const { return lines_; }
  bool made(int operand) const { return maker_[static_cast<std::size_t>(operand)] >= 0; }
  DType dtype(int operand) const { return dtypes_[static_cast<std::size_t>(operand)]; }
  static std::string name(int operand, std::int64_t shift);

 private:
  /// Its arguments have names.
  std::string compute(int operand, std::int64_t shift);

  std::span<const FusedCall> calls_;
  std::vector<DType> dtypes_;
  std::vector<char> flat_;
  std::vector<int> maker_, number_;  // by operand; by call: index of its first parameter
  std::int64_t columns_;
  Load load_;
  std::string indent_, lines_;
  bool batches_ = false;
  std::size_t most_ = std::numeric_limits<std::size_t>::max();
  std::map<std::pair<int, std::int64_t>, std::string> names_;
};

}  // namespace reel
