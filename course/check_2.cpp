// Checks assignment 2 against worked numbers and Reel's own add and sum_to.
#include "course/check.h"
#include "ops/ops.h"
#include COURSE_ANSWER

using namespace course;
using arrays::Array;
using Sizes = std::vector<std::size_t>;  // a shape or strides

namespace {

std::string text(const Sizes& all) {
  std::string out;
  for (const std::size_t n : all) out += (out.empty() ? "" : ", ") + std::to_string(n);
  return "[" + out + "]";
}

/// A list that is wrong in a way that many have had before, and what to say of it.
struct Mistake {
  Sizes got;
  std::string sentence;
};

std::string judge(const std::string& which, const Sizes& expected, const Sizes& got,
                  const std::vector<Mistake>& known) {
  if (expected == got) return "";
  std::string why = which + ": expected " + text(expected) + ", got " + text(got);
  for (const Mistake& m : known)
    if (m.got == got) why += ". " + m.sentence;
  return why;
}

std::string first_of(std::initializer_list<std::function<std::string()>> all) {
  for (const auto& one : all)
    if (const std::string why = one(); !why.empty()) return why;
  return "";
}

std::string ask_shape(const Sizes& a, const Sizes& b, const Sizes& expected, const std::vector<Mistake>& known) {
  return judge(text(a) + " and " + text(b), expected, arrays::broadcast(a, b), known);
}

std::string ask_misfit(const Sizes& a, const Sizes& b, const std::string& hint) {
  try {
    return text(a) + " and " + text(b) + " do not broadcast, but the result is " + text(arrays::broadcast(a, b)) + hint;
  } catch (const std::invalid_argument&) {
    return "";
  }
}

std::string ask_strides(const Sizes& shape, const Sizes& out, const Sizes& expected,
                        const std::vector<Mistake>& known) {
  return judge(text(shape) + " as " + text(out), expected, arrays::strides(shape, out), known);
}

reel::Tensor tensor(const Array& x) {
  const std::vector<std::int64_t> dims(x.shape.begin(), x.shape.end());
  return reel::Tensor::from<double>(x.values, reel::Shape(dims));
}

Array numbers(const Sizes& shape, std::uint64_t seed) {
  const std::vector<std::int64_t> dims(shape.begin(), shape.end());
  return {shape, reel::uniform(reel::Shape(dims), -1, 1, seed, 0, reel::DType::f64).values<double>()};
}

/// Where the elements differ from Reel's; nothing if nowhere.
std::string against(const Array& got, const Sizes& shape, const reel::Tensor& expected) {
  if (got.shape != shape) return "the shape: expected " + text(shape) + ", got " + text(got.shape);
  const auto right = expected.values<double>();
  if (got.values.size() != right.size())
    return "expected " + std::to_string(right.size()) + " elements, got " + std::to_string(got.values.size());
  for (std::size_t i = 0; i < right.size(); ++i)
    if (!same(right[i], got.values[i])) return "element " + std::to_string(i) + ": " + differ(right[i], got.values[i]);
  return "";
}

std::string ask_add(const Sizes& a, const Sizes& b, const Sizes& out) {
  const Array x = numbers(a, 1), y = numbers(b, 2);
  const std::string why = against(arrays::add(x, y), out, tensor(x) + tensor(y));
  return why.empty() ? "" : text(a) + " + " + text(b) + ", " + why;
}

std::string ask_sum(const Sizes& from, const Sizes& to) {
  const Array x = numbers(from, 3);
  const std::vector<std::int64_t> dims(to.begin(), to.end());
  const reel::Tensor right = reel::sum_to(tensor(x), reel::Shape(dims));
  const Array got = arrays::sum_to(x, to);
  std::string why = against(got, to, right);
  if (why.empty()) return "";
  const auto repeats = static_cast<double>(arrays::count(from) / std::max<std::size_t>(1, arrays::count(to)));
  if (got.shape == to && against({to, got.values}, to, right / repeats).empty())
    why += ". That is the mean, not the sum";
  return text(from) + " to " + text(to) + ", " + why;
}

}  // namespace

int main() {
  Check check;
  check.ask("broadcast: shapes that fit", [] {
    return first_of({[] {
                       return ask_shape({2, 3}, {2, 3}, {2, 3}, {});
                     },
                     [] {
                       return ask_shape({2, 1}, {1, 3}, {2, 3}, {{{2, 1}, "Where one extent is 1, take the other"}});
                     },
                     [] {
                       return ask_shape({4, 2, 3}, {3}, {4, 2, 3}, {{{3}, "An absent axis counts as 1"}});
                     },
                     [] {
                       return ask_shape({3}, {4, 1}, {4, 3}, {});
                     },
                     [] { return ask_shape({}, {5}, {5}, {}); },
                     [] {
                       return ask_shape({1}, {0}, {0},
                                        {{{1},
                                          "Beside a 1, the result has the other extent, even if it is 0: the larger "
                                          "one is wrong"}});
                     }});
  });
  check.ask("broadcast: shapes that do not fit", [] {
    return first_of({[] {
                       return ask_misfit({2, 3}, {2}, ". Align at the last axis, not at the first");
                     },
                     [] {
                       return ask_misfit({2, 3}, {4, 3}, ". Throw when extents differ and neither is 1");
                     },
                     [] { return ask_misfit({0}, {2}, ". An extent of 0 is not 1: it is repeated by nothing"); }});
  });
  check.ask("strides", [] {
    return first_of(
        {[] {
           return ask_strides({2, 3}, {2, 3}, {3, 1},
                              {{{1, 2}, "That is column-major order: here the last axis is fastest"}});
         },
         [] {
           return ask_strides(
               {2, 1}, {2, 3}, {1, 0},
               {{{1, 1}, "Broadcasting is forgotten: the axis of extent 1 is repeated, so its stride is 0"}});
         },
         [] {
           return ask_strides({3}, {2, 3}, {0, 1}, {{{1, 0}, "Align at the last axis"}});
         },
         [] {
           return ask_strides({4, 1, 3}, {4, 2, 3}, {3, 0, 1}, {});
         },
         [] {
           return ask_strides({}, {2, 2}, {0, 0}, {});
         }});
  });
  check.ask("add", [] {
    return first_of({[] {
                       return ask_add({2, 3}, {2, 3}, {2, 3});
                     },
                     [] {
                       return ask_add({2, 1}, {3}, {2, 3});
                     },
                     [] {
                       return ask_add({4, 1, 3}, {2, 1}, {4, 2, 3});
                     },
                     [] {
                       return ask_add({}, {2, 2}, {2, 2});
                     },
                     [] {
                       return ask_add({0, 3}, {3}, {0, 3});
                     }});
  });
  check.ask("sum_to", [] {
    return first_of({[] {
                       return ask_sum({2, 3}, {2, 3});
                     },
                     [] {
                       return ask_sum({2, 3}, {3});
                     },
                     [] {
                       return ask_sum({2, 3}, {2, 1});
                     },
                     [] {
                       return ask_sum({4, 2, 3}, {2, 1});
                     },
                     [] {
                       return ask_sum({4, 2}, {});
                     }});
  });
  return check.done();
}
