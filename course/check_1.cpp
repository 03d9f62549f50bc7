// Checks assignment 1. COURSE_ANSWER is the file with the answers: a student's, the blanks, or the solution.
#include "course/check.h"
#include COURSE_ANSWER

using namespace course;
using toy::Number;
using toy::Tape;

namespace {

/// A slope that is wrong in a way that many have had before, and what to say of it.
struct Mistake {
  double slope;
  std::string sentence;
};

/// Why a value or a slope is wrong; nothing if both are right.
std::string judge(const std::string& which, double expected, double got, const std::vector<Mistake>& mistakes) {
  if (same(expected, got)) return "";
  const std::string start = which + ": " + differ(expected, got) + ". ";
  if (same(-expected, got)) return start + "The sign is wrong";
  for (const Mistake& m : mistakes)
    if (same(m.slope, got)) return start + m.sentence;
  return start + "Write the derivative on paper first, then put these numbers in";
}

using Unary = Number (*)(const Number&);

std::string ask_unary(Unary f, double x, double value, double slope, const std::vector<Mistake>& mistakes) {
  Tape tape;
  const Number y = f(toy::input(tape, x));
  const std::string at = " at x = " + text(x);
  if (const std::string why = judge("the value" + at, value, y.value, {}); !why.empty()) return why;
  return judge("the slope" + at, slope, toy::gradient(y)[0], mistakes);
}

std::string first_of(const std::vector<std::string>& all) {
  for (const std::string& why : all)
    if (!why.empty()) return why;
  return "";
}

using Binary = Number (*)(const Number&, const Number&);

std::string ask_binary(Binary f, double value, double by_a, double by_b, const std::vector<Mistake>& of_b) {
  Tape tape;
  const Number a = toy::input(tape, 3), b = toy::input(tape, 0.5), y = f(a, b);
  const auto d = toy::gradient(y);
  if (same(by_b, d[a.at]) && same(by_a, d[b.at]) && !same(by_a, by_b))
    return "the slopes of a and b are swapped: that of a comes first";
  return first_of({judge("the value at a = 3, b = 0.5", value, y.value, {}),
                   judge("the slope with respect to a at a = 3, b = 0.5", by_a, d[a.at], {}),
                   judge("the slope with respect to b at a = 3, b = 0.5", by_b, d[b.at], of_b)});
}

std::string ask_difference() {
  const auto cube = [](double x) { return x * x * x; };
  // ((x + h)^3 - (x - h)^3) / (2 h) = 3 x^2 + h^2, at x = 2 and h = 0.1: 12.01
  return judge("the difference of x^3 at x = 2 with h = 0.1", 12.01, toy::difference(cube, 2, 0.1),
               {{24.02, "The two points are 2 h apart, so divide by 2 h"},
                {12.61, "That is one-sided, from x to x + h: its error is as large as h, that of both sides as h^2"},
                {11.41, "That is one-sided, from x - h to x: its error is as large as h, that of both sides as h^2"},
                {2.402, "Divide by the distance of the two points, 2 h"}});
}

/// A small network, w tanh(v x) - t, squared: everything at once, against differences that are the check's own.
std::string ask_network() {
  const auto loss = [](double v, double w) {
    const double e = w * std::tanh(v * 0.7) - 0.3;
    return e * e;
  };
  Tape tape;
  const Number v = toy::input(tape, 0.8), w = toy::input(tape, -1.2), x = toy::input(tape, 0.7),
               t = toy::input(tape, 0.3);
  const Number e = w * tanh(v * x) - t, L = e * e;
  const auto d = toy::gradient(L);
  constexpr double h = 1e-5;
  const double by_v = (loss(0.8 + h, -1.2) - loss(0.8 - h, -1.2)) / (2 * h),
               by_w = (loss(0.8, -1.2 + h) - loss(0.8, -1.2 - h)) / (2 * h);
  if (!same(by_v, d[v.at], 1e-7)) return "the gradient with respect to v: " + differ(by_v, d[v.at]);
  return same(by_w, d[w.at], 1e-7) ? "" : "the gradient with respect to w: " + differ(by_w, d[w.at]);
}

}  // namespace

int main() {
  Check check;
  check.ask("a - b", [] { return ask_binary([](const Number& a, const Number& b) { return a - b; }, 2.5, 1, -1, {}); });
  check.ask("a / b", [] {
    return ask_binary([](const Number& a, const Number& b) { return a / b; }, 6, 2, -12,
                      {{-4, "The factor a is missing: the derivative of a / b with respect to b is -a / b^2"},
                       {-6, "That divides by b once; the derivative of 1 / b is -1 / b^2"},
                       {2, "That is the slope with respect to a"}});
  });
  check.ask("exp", [] {
    const double y = std::exp(0.5);
    return ask_unary([](const Number& x) { return exp(x); }, 0.5, y, y,
                     {{0.5 * std::exp(-0.5), "That is the rule of powers, n x^(n-1); in e^x the x is the exponent"},
                      {0.5 * y, "The factor x does not belong there: e^x is its own derivative"},
                      {0.5, "That is x; the slope is the value of the function, e^x"}});
  });
  check.ask("tanh", [] {
    const double y = std::tanh(0.5);
    return ask_unary([](const Number& x) { return tanh(x); }, 0.5, y, 1 - y * y,
                     {{1 - 0.25, "The square is that of the result: 1 - y^2 with y = tanh(x), not 1 - x^2"},
                      {1 - y, "The result must be squared: 1 - y^2"},
                      {y * (1 - y), "That is the slope of the sigmoid, y (1 - y)"},
                      {1 + y * y, "That is the slope of tan; tanh has a minus"}});
  });
  check.ask("relu", [] {
    const auto f = [](const Number& x) { return relu(x); };
    return first_of({ask_unary(f, 2, 2, 1, {{2, "That is the value; a line through 0 with y = x has the slope 1"}}),
                     ask_unary(f, -2, 0, 0, {{1, "To the left of 0 the function is constant"}}),
                     ask_unary(f, 0, 0, 0, {{1, "At 0 itself take 0"}, {0.5, "At 0 itself take 0"}})});
  });
  check.ask("central differences", ask_difference);
  check.ask("the gradient of (w tanh(v x) - t)^2", ask_network);
  return check.done();
}
