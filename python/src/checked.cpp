#include "python/src/checked.h"

namespace reel::python {

std::optional<std::string> broken(const ElementRule& rule, const Tensor& x, bool in_loop) {
  std::optional<std::string> text;
  dispatch(x.dtype(), [&]<class T>(std::type_identity<T>) {
    if constexpr (std::is_arithmetic_v<T>) {
      const std::vector<T> values = x.values<T>();
      for (std::size_t i = 0; i < values.size() && !text; ++i) {
        if (rule.holds(static_cast<double>(values[i]))) continue;
        text = fmt::format("{}, got {}", rule.text, values[i]);
        if (!in_loop) *text += (x.rank() ? fmt::format(" at element {}", i) : "") + rule.hint;
      }
    }
  });
  return text;
}

}  // namespace reel::python
