#include "tasks/app/expect.h"

#include <fmt/core.h>

#include <cmath>
#include <iterator>
#include <sstream>

#include "engine/core/error.h"
#include "engine/core/parse.h"

namespace reel {

namespace {

bool is_sign(const std::string& word) { return word == "<" || word == ">"; }

/// The term that begins at `at`, which is moved behind it.
Term parse_term(const std::vector<std::string>& words, std::size_t& at) {
  if (at == words.size() || is_sign(words[at])) throw Error("a name is expected before and after each < or >");
  Term term{words[at++]};
  while (at < words.size() && !is_sign(words[at])) {
    const std::string sign = words[at++];
    if (sign != "*" && sign != "+" && sign != "-") throw Error(fmt::format("<, >, *, + or - expected, got {}", sign));
    const auto number = at < words.size() ? parse<double>(words[at]) : std::nullopt;
    if (!number || !std::isfinite(*number)) throw Error(fmt::format("a number is expected after {}", sign));
    ++at;
    if (sign == "*")
      term.factor *= *number, term.offset *= *number;
    else
      term.offset += sign == "+" ? *number : -*number;
  }
  return term;
}

}  // namespace

std::vector<Order> parse_order(const std::string& text) {
  std::istringstream in(text);
  const std::vector<std::string> words(std::istream_iterator<std::string>(in), {});
  std::size_t at = 0;
  std::vector<Order> orders;
  Term left = parse_term(words, at);
  while (at < words.size()) {
    const bool less = words[at++] == "<";
    if (!orders.empty() && orders.back().less != less) throw Error("one of < and > expected, not both");
    Term right = parse_term(words, at);
    orders.push_back({left, right, less});
    left = std::move(right);
  }
  if (orders.empty()) throw Error("two names with < or > between them expected");
  return orders;
}

}  // namespace reel
