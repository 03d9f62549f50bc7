// Evaluates CellType::count: + - / ^, implied multiplication, [a=b] and [a!=b], "or", functions, and definitions after
// commas.
#pragma once
#include <cctype>
#include <cmath>

#include "cells/cell.h"
#include "engine/core/parse.h"

namespace reel {

/// The values of names: a number, or a word (a choice setting, a cell).
using Names = std::map<std::string, std::string>;

class Formula {
 public:
  static double value(const std::string& text, const Names& names) { return Formula(text, names, 0, 0).part(); }

 private:
  Formula(const std::string& text, const Names& names, std::size_t at, int depth)
      : text_(text), names_(names), at_(at), depth_(depth) {}

  double part() {  // up to the end or the next definition
    const double v = sum();
    if (at_ < text_.size() && text_[at_] != ',')
      throw Error("formula", fmt::format("cannot read {}{}", text_.substr(at_),
                                         ahead("*") ? ". Hint: a product has a space between its factors: n i" : ""));
    if (take(",")) word(), expect("=");
    return v;
  }
  double sum() {
    for (double v = product();;) {
      if (take("+"))
        v += product();
      else if (take("-"))
        v -= product();
      else if (const double left = v; take("or "))
        v = product(), v = left == 0 ? v : left;
      else
        return v;
    }
  }
  double product() {
    for (double v = power();;) {
      if (take("/"))
        v /= power();
      else if (ahead("(") || ahead("[") || (letter(at_) && !ahead("or ")))
        v *= power();
      else
        return v;
    }
  }
  double power() {
    const double v = atom();
    return take("^") ? std::pow(v, atom()) : v;
  }
  double atom() {
    double v = 0;
    if (++depth_ > 100) throw Error("formula", "a definition needs itself, or more than 100 parentheses are nested");
    if (take("(")) {
      v = sum();
      expect(")");
    } else if (take("[")) {
      const std::string left = word();
      if (!names_.contains(left))
        throw Error("formula", fmt::format("[{}...] compares n, i or a setting, and {} is none of them", left, left));
      const bool differs = take("!");
      expect("=");
      v = (names_.at(left) == meaning(word())) != differs ? 1 : 0;
      expect("]");
    } else if (const std::string name = word(); functions().contains(name)) {
      expect("(");
      const double a = sum(), b = take(",") ? sum() : 0;
      expect(")");
      v = functions().at(name)(a, b);
    } else {
      v = of_name(name);
    }
    --depth_;
    return v;
  }
  double of_name(const std::string& given) const {
    const std::string name = meaning(given);
    if (const std::optional<double> number = parse<double>(name)) return *number;  // also of a setting: -1
    const std::string definition = ", " + name + " = ";
    if (const std::size_t at = text_.find(definition); at != std::string::npos)
      return Formula(text_, names_, at + definition.size(), depth_).part();
    if (const CellType* type = find_cell(name)) {
      Names inside{{"n", names_.at("n")}, {"i", names_.at("n")}};  // its input is as wide as its state
      for (const Setting& s : type->settings) inside[s.name] = s.fallback;
      return Formula(type->count, inside, 0, depth_).part();
    }
    if (given != name) throw Error("formula", fmt::format("{} is \"{}\", which is no number", given, name));
    throw unknown(name);
  }
  static const std::map<std::string, double (*)(double, double)>& functions() {
    static const std::map<std::string, double (*)(double, double)> all{
        {"log2", [](double a, double) { return std::log2(a); }},
        {"sqrt", [](double a, double) { return std::sqrt(a); }},
        {"floor", [](double a, double) { return std::floor(a); }},
        {"min", [](double a, double b) { return std::min(a, b); }},
        {"max", [](double a, double b) { return std::max(a, b); }}};
    return all;
  }

  std::string meaning(const std::string& name) const { return names_.contains(name) ? names_.at(name) : name; }
  bool letter(std::size_t at) const { return at < text_.size() && (std::isalnum(text_[at]) != 0 || text_[at] == '_'); }
  bool ahead(const std::string& token) const { return text_.compare(at_, token.size(), token) == 0; }
  bool take(const std::string& token) {
    if (!ahead(token)) return false;
    at_ += token.size();
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return true;
  }
  void expect(const std::string& token) {
    if (!take(token)) throw Error("formula", fmt::format("\"{}\" is missing at {} of {}", token, at_, text_));
  }
  static Error unknown(const std::string& name) {
    const bool product = std::isdigit(static_cast<unsigned char>(name[0])) != 0;
    return {"formula", fmt::format("{} is neither n, i, a setting, a definition nor a cell{}", name,
                                   product ? ". Hint: a product has a space between its factors: 4 n" : "")};
  }
  std::string word() {
    std::size_t last = at_;
    while (letter(last)) ++last;
    const std::string name = text_.substr(at_, last - at_);
    if (name.empty()) throw Error("formula", fmt::format("a name is missing at {} of {}", at_, text_));
    take(name);
    return name;
  }

  const std::string& text_;
  const Names& names_;
  std::size_t at_;
  int depth_;  // of parentheses and definitions
};

/// The number of values that a cell with these settings trains, computed from its type's formula before the cell
/// exists; 0 if the type has no formula. Throws Error that names the cell for a formula that cannot be read.
inline double trained_numbers(const CellType& type, std::int64_t input, std::int64_t hidden,
                              const std::map<std::string, std::string>& settings) {
  if (type.count.empty()) return 0;
  Names names{{"n", std::to_string(hidden)}, {"i", std::to_string(input)}};
  for (const Setting& s : type.settings) names[s.name] = s.fallback;
  for (const auto& [name, value] : settings) names[name] = value;
  try {
    return Formula::value(type.count, names);
  } catch (const Error& e) {
    throw Error("cell", fmt::format("\"{}\" ({}): its count \"{}\": {}", type.name, type.file, type.count, e.what()));
  }
}

}  // namespace reel
