// What the code blocks of the book share: print(), and the check that what is printed is what the page shows.
#pragma once
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "cells/cell.h"
#include "ops/check_grads.h"
#include "ops/elementwise.h"

namespace book {

/// What the running block has printed so far.
inline std::string& printed() {
  static std::string text;
  return text;
}

/// Prints with fmt: print("{:.4f}\n", x). A tensor takes the format of its elements: print("{:.2f}\n", tensor).
template <class... Args>
void print(fmt::format_string<Args...> format, Args&&... args) {
  const std::string text = fmt::format(format, std::forward<Args>(args)...);
  std::fputs(text.c_str(), stdout);
  printed() += text;
}

/// Runs f, which must throw Error, and prints its text, with N for the line of the call: pages are edited.
template <class F>
void print_error(F&& f) {
  std::string text = "no error\n";
  try {
    f();
  } catch (const reel::Error& e) {
    text = std::string(e.what()) + "\n";
  }
  if (const std::size_t at = text.rfind(".md:"); at != std::string::npos) {
    const std::size_t first = at + 4, last = text.find_first_not_of("0123456789", first);
    text.replace(first, last - first, "N");
  }
  print("{}", text);
}

/// Ends the program when the text printed since the last call is not `text`, which the page shows at `where`.
inline void expect(const char* text, const char* where) {
  const std::string got = std::exchange(printed(), {}), wanted = text;
  if (got == wanted) return;
  std::fprintf(stderr, "%s: the block prints something else\n", where);
  const auto show = [](char mark, const std::string& all) {
    for (std::size_t i = 0; i < all.size();) {
      const std::size_t end = std::min(all.find('\n', i), all.size());
      std::fprintf(stderr, "%c %s\n", mark, all.substr(i, end - i).c_str());
      i = end + 1;
    }
  };
  show('-', wanted);
  show('+', got);
  std::exit(1);
}

template <class F>
int run_chapter(F&& chapter) {
  try {
    chapter();
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}

}  // namespace book

/// "{}" is Tensor::str(); with a format, each element of a real tensor by it: [[1.00, 2.00], [3.00, 4.00]].
template <>
struct fmt::formatter<reel::Tensor> {
  constexpr auto parse(fmt::format_parse_context& context) {
    const auto* end = context.begin();
    while (end != context.end() && *end != '}') ++end;
    element = std::string_view(context.begin(), static_cast<std::size_t>(end - context.begin()));
    return end;
  }
  auto format(const reel::Tensor& x, fmt::format_context& context) const {
    return fmt::format_to(context.out(), "{}", element.empty() ? x.str() : text(x));
  }

 private:
  std::string text(const reel::Tensor& x) const {
    if (x.rank() == 0) return fmt::format(fmt::runtime(fmt::format("{{:{}}}", element)), x.item());
    std::string all;
    for (std::int64_t i = 0; i < x.dim(0); ++i) all += (i ? ", " : "") + text(x.at(i));
    return "[" + all + "]";
  }
  std::string_view element;
};

using namespace reel;
using book::expect, book::print, book::print_error, book::run_chapter;
