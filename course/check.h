// What the checks of all assignments share: a line for each question, saying what is right, what is wrong and why.
#pragma once
#include <cmath>
#include <cstdio>
#include <exception>
#include <functional>
#include <string>

namespace course {

/// What a blank throws until it is filled.
struct Blank : std::exception {
  const char* what() const noexcept override { return "not written yet"; }
};

/// Stands where a student writes code.
#define BLANK throw course::Blank()

class Check {
 public:
  /// Asks a question. `wrong` runs the student's code; it returns nothing if the answer is right, else the reason why
  /// not.
  void ask(const std::string& question, const std::function<std::string()>& wrong) {
    std::string why, verdict = "wrong";
    try {
      why = wrong();
    } catch (const Blank& e) {
      verdict = "blank";
      why = e.what();
    } catch (const std::exception& e) {
      why = e.what();
    }
    ++asked_;
    if (why.empty()) ++right_;
    std::printf("%-5s  %s%s%s\n", why.empty() ? "right" : verdict.c_str(), question.c_str(), why.empty() ? "" : ": ",
                why.c_str());
  }
  /// Prints the result; 0 if all answers are right, else 1.
  int done() const {
    std::printf("%d of %d right\n", right_, asked_);
    return right_ == asked_ ? 0 : 1;
  }

 private:
  int asked_ = 0, right_ = 0;
};

/// True if both are finite and the same up to rounding and small errors of differences.
inline bool same(double expected, double got, double tolerance = 1e-9) {
  const double error = std::abs(expected - got);
  return std::isfinite(error) && error <= tolerance * std::max(1.0, std::abs(expected));
}

/// A number for a reader.
inline std::string text(double x) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.4g", x);
  return buffer;
}

/// "expected 2, got 3"
inline std::string differ(double expected, double got) { return "expected " + text(expected) + ", got " + text(got); }

}  // namespace course
