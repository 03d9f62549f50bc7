#include "backends/cpu/codegen/group_source.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/shared/run_text.h"
#include "ops/functors/binary.h"
#include "ops/functors/unary.h"

namespace reel::cpu {

namespace {

using Kind = FusedCall::Kind;

std::size_t at(int i) { return static_cast<std::size_t>(i); }

/// The real dtype of the first number that a call takes or makes.
DType real_of_all(const FusedArgs& args, const std::vector<DType>& dtypes) {
  for (const FusedCall& c : args.calls) {
    for (const int o : {c.in[0], c.in[1], c.in[2], c.out}) {
      if (o >= 0 && dtypes[at(o)] != DType::boolean) return real_of(dtypes[at(o)]);
    }
  }
  return DType::boolean;
}

template <class... F>
bool among(int functor, const auto& list, TypeList<F...>) {
  return ((functor == index_of<F, std::remove_cvref_t<decltype(list)>>) || ...);
}
using ComplexUnary = TypeList<Neg, Abs, Sign, Square, Reciprocal, Conj, Imag, Affine, ScaleGradient>;
using ComplexBinary = TypeList<Add, Sub, Mul, Div, Equal, NotEqual>;

/// Does a call's function take batches? Of complex numbers not all do.
bool has_batches(const FusedCall& call) {
  if (call.kind == Kind::map && is_complex(call.dtype)) return among(call.functor, UnaryFunctors{}, ComplexUnary{});
  if (call.kind == Kind::zip && is_complex(call.dtype)) return among(call.functor, BinaryFunctors{}, ComplexBinary{});
  return call.functor >= 0;
}

class Writer {
 public:
  /// `address`: where the row r of an operand starts, in bytes; null: where args.operands says. `saved`: where else a
  /// result's row goes; null: nowhere.
  explicit Writer(const FusedArgs& args, RowAddress address = {}, RowAddress saved = {})
      : args_(args),
        address_(std::move(address)),
        saved_(std::move(saved)),
        dtypes_(dtypes_of(args)),
        real_(real_of_all(args, dtypes_)),
        maker_(makers_of(args.calls, args.operands.size())),
        run_(
            args.calls, dtypes_, flat(), args.columns, 0, [this](int o, std::int64_t shift) { return load(o, shift); },
            "      ") {
    run_.use_batches();
    run_.stop_at(8 * args.calls.size() + args.operands.size() + 8);
  }

  /// Are all numbers of one precision? Conditions in memory are as many as there are elements, and nothing is rolled.
  /// The time to compile a function grows faster than its length.
  bool possible() const {
    constexpr std::size_t most_calls = 1000;
    if (args_.columns <= 0 || !is_floating(real_) || args_.calls.size() > most_calls) return false;
    const auto fits = [&](int o) {
      const DType d = dtypes_[at(o)];
      if (d != DType::boolean) return d != DType::i32 && real_of(d) == real_;
      return args_.operands[at(o)].local ? maker_[at(o)] >= 0 : is_full(o) && !has_rolls(args_.calls);
    };
    for (const FusedCall& c : args_.calls) {
      if (!fits(c.out) || !std::all_of(c.in, c.in + 3, [&](int o) { return o < 0 || fits(o); })) return false;
    }
    return std::all_of(args_.calls.begin(), args_.calls.end(), has_batches);
  }

  /// The function of the whole group.
  std::string text() {
    const std::string row = one_row_text();
    if (row.empty()) return {};
    std::string out = "(const reel::FusedArgs& args) {\n  using namespace reel;\n  using namespace reel::cpu;\n";
    if (one_row())
      out += "  const std::int64_t rows = 1, columns = args.rows * args.columns;\n";
    else
      out += fmt::format("  const std::int64_t rows = args.rows;\n  constexpr std::int64_t columns = {};\n",
                         args_.columns);
    return out + functor_source(args_, "f", "args") + "  for (std::int64_t r = 0; r < rows; ++r) {\n" + row +
           "  }\n}\n";
  }

  /// The calls on row r, whose functors are f0, f1, ...; empty: a value would be computed too often.
  std::string one_row_text() {
    std::string stores;
    for (int o = 0; o < static_cast<int>(args_.operands.size()); ++o) {
      if (maker_[at(o)] < 0 || args_.operands[at(o)].local) continue;
      const std::string value = run_.value(o);
      stores += fmt::format("      store(part, {}, p{}, c, columns);\n", value, o);
      row_ +=
          fmt::format("    auto* const p{} = reinterpret_cast<{}*>({});\n", o, type_name(dtypes_[at(o)]), address(o));
      const std::string saved = saved_ ? saved_(o) : std::string();
      if (saved.empty()) continue;
      stores += fmt::format("      stream({}, q{} + c);\n", value, o);
      row_ += fmt::format("    auto* const q{} = reinterpret_cast<{}*>({});\n", o, type_name(dtypes_[at(o)]), saved);
    }
    // A value that is needed at several shifts is computed for each of them.
    const auto lines = std::count(run_.lines().begin(), run_.lines().end(), '\n');
    if (run_.gave_up() || lines > 2 * static_cast<std::ptrdiff_t>(args_.calls.size())) return {};
    return fmt::format("    constexpr auto width = static_cast<std::int64_t>(batch_size<{}>);\n", type_name(real_)) +
           row_ + "    const auto step = [&](auto part, std::int64_t c) {\n" + loads_ + run_.lines() + stores +
           "    };\n    std::int64_t c = 0;\n" +
           "    for (; c + width <= columns; c += width) step(std::false_type(), c);\n" +
           "    if (c < columns) step(std::true_type(), c);\n";
  }

 private:
  /// A local operand that no call makes is a row, repeated for a block.
  bool repeated(int o) const { return args_.operands[at(o)].local && maker_[at(o)] < 0; }
  std::vector<char> flat() const {
    std::vector<char> out;
    for (const FusedOperand& o : args_.operands) out.push_back(!o.local && o.column == 0);
    return out;
  }
  bool is_full(int o) const { return args_.operands[at(o)].column == 1 && args_.operands[at(o)].row == args_.columns; }
  /// Can the rows be one long row?
  bool one_row() const {
    if (has_rolls(args_.calls)) return false;
    for (int o = 0; o < static_cast<int>(args_.operands.size()); ++o) {
      const FusedOperand& operand = args_.operands[at(o)];
      const bool one = operand.column == 0 && operand.row == 0;
      if (repeated(o) || (!operand.local && !is_full(o) && !one)) return false;
    }
    return true;
  }
  std::string address(int o) const {
    if (address_) return address_(o);
    const FusedOperand& operand = args_.operands[at(o)];
    return fmt::format("args.operands[{}].data{}", o,
                       repeated(o) || operand.row == 0 ? ""
                       : operand.column == 0           ? fmt::format(" + r * {}", operand.row * bytes(operand))
                                                       : fmt::format(" + r * columns * {}", bytes(operand)));
  }
  static std::int64_t bytes(const FusedOperand& operand) { return static_cast<std::int64_t>(operand.element_bytes); }
  std::string load(int o, std::int64_t shift) {
    const FusedOperand& operand = args_.operands[at(o)];
    std::string name = RunText::name(o, shift);
    const std::string pointer = fmt::format("p{}", o);
    if (row_.find(pointer + " ") == std::string::npos)
      row_ += fmt::format("    const auto* const {} = reinterpret_cast<const {}*>({});\n", pointer,
                          type_name(dtypes_[at(o)]), address(o));
    if (dtypes_[at(o)] == DType::boolean)
      loads_ += fmt::format("      const auto {} = load_conditions<{}>(part, {}, c, columns);\n", name,
                            type_name(real_), pointer);
    else if (!repeated(o) && operand.column == 0)
      row_ += fmt::format("    const auto {} = repeat({});\n", name, pointer);
    else if (shift == 0)
      loads_ += fmt::format("      const auto {} = load(part, {}, c, columns);\n", name, pointer);
    else
      loads_ += fmt::format("      const auto {} = load_rolled(part, {}, c, {}, columns);\n", name, pointer, shift);
    return name;
  }

  const FusedArgs& args_;
  const RowAddress address_, saved_;
  std::vector<DType> dtypes_;
  DType real_;  // of all numbers, real or complex
  std::vector<int> maker_;
  std::string row_, loads_;  // before the columns of a row; before the calls of a batch
  RunText run_;
};

}  // namespace

std::string row_source(const FusedArgs& args, RowAddress address, RowAddress saved) {
  Writer writer(args, std::move(address), std::move(saved));
  return writer.possible() ? writer.one_row_text() : std::string();
}

std::string functor_source(const FusedArgs& args, const std::string& name, const std::string& group) {
  std::string out;
  for (std::size_t i = 0; i < args.calls.size(); ++i) {
    const FusedCall& c = args.calls[i];
    if (c.kind == Kind::map || c.kind == Kind::zip)
      out += fmt::format("  const auto {}{} = {}.calls[{}].params.template as<{}<{}>>();\n", name, i, group, i,
                         c.kind == Kind::map ? "Unary" : "Binary", c.functor);
  }
  return out;
}

std::string group_source(const FusedArgs& args) {
  Writer writer(args);
  return writer.possible() ? writer.text() : std::string();
}

}  // namespace reel::cpu
