// What a run of elementwise calls computes for one element, as lines of C++ for generated kernels; how arguments get
// there is for the kernel to say.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/kernels.h"

namespace reel::cuda {

/// The dtype of a call's result.
DType result_of_call(const FusedCall& call);
/// The dtypes of a run's operands.
std::vector<DType> dtypes_of(const FusedArgs& args);
/// The name of a dtype in generated kernels.
const char* type_name(DType d);
/// The call that makes an operand, or -1.
std::vector<int> makers_of(std::span<const FusedCall> calls, std::size_t operands);

bool is_power(const FusedCall& call);
/// Numbers that a call's functor takes from the kernel's argument, so that another value needs no other kernel. But an
/// exponent is in the text: it decides what is computed.
int numbers_of(const FusedCall& call);
void put_numbers(std::span<const FusedCall> calls, std::vector<std::uint64_t>& out);
/// Does a call move elements along their row?
bool has_rolls(std::span<const FusedCall> calls);

/// Values are asked for at a shift: that of the element so many columns before, as rolls have it. A value that is made
/// in the run is then computed there once more, from arguments read there: no thread waits for another.
class RunText {
 public:
  /// Gives the name of an argument's value so many columns before.
  using Load = std::function<std::string(int operand, std::int64_t shift)>;
  /// `flat`: by operand, is it the same along a row? `numbers`: of the kernel's argument, how many are others'. Lines
  /// start with `indent`.
  RunText(std::span<const FusedCall> calls, std::vector<DType> dtypes, std::vector<char> flat, std::int64_t columns,
          int numbers, Load load, std::string indent);

  /// The name of an operand's value so many columns before; what it takes is added to lines().
  std::string value(int operand, std::int64_t shift = 0);
  const std::string& lines() const { return lines_; }
  bool made(int operand) const { return maker_[static_cast<std::size_t>(operand)] >= 0; }
  DType dtype(int operand) const { return dtypes_[static_cast<std::size_t>(operand)]; }
  static std::string name(int operand, std::int64_t shift);

 private:
  std::string compute(int operand, std::int64_t shift);

  std::span<const FusedCall> calls_;
  std::vector<DType> dtypes_;
  std::vector<char> flat_;
  std::vector<int> maker_, number_;  // by operand; by call: its first number
  std::int64_t columns_;
  Load load_;
  std::string indent_, lines_;
  std::map<std::pair<int, std::int64_t>, std::string> names_;
};

}  // namespace reel::cuda
