#include "backends/cpu/codegen/group_source.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/shared/run_text.h"

namespace reel::cpu {

namespace {

using Kind = FusedCall::Kind;

std::size_t at(int i) { return static_cast<std::size_t>(i); }

class Writer {
 public:
  explicit Writer(const FusedArgs& args)
      : args_(args),
        dtypes_(dtypes_of(args)),
        maker_(makers_of(args.calls, args.operands.size())),
        run_(
            args.calls, dtypes_, flat(), args.columns, 0, [this](int o, std::int64_t shift) { return load(o, shift); },
            "      ") {
    run_.use_batches();
  }

  /// Is it of one floating dtype throughout?
  bool possible() const {
    const DType dtype = dtypes_[0];
    const auto fits = [&](const FusedCall& c) {
      return (c.kind == Kind::map || c.kind == Kind::zip || c.kind == Kind::roll) && c.dtype == dtype &&
             result_of_call(c) == dtype;
    };
    return is_floating(dtype) && args_.columns > 0 && std::all_of(args_.calls.begin(), args_.calls.end(), fits);
  }

  std::string text() {
    std::string stores;
    for (int o = 0; o < static_cast<int>(args_.operands.size()); ++o) {
      if (maker_[at(o)] < 0 || args_.operands[at(o)].local) continue;
      const std::string value = run_.value(o);
      stores += fmt::format("      store(part, {}, p{}, c, columns);\n", value, o);
      row_ += fmt::format("    T* const p{0} = reinterpret_cast<T*>(args.operands[{0}].data) + r * columns;\n", o);
    }
    // A value that is needed at several shifts is computed for each of them.
    const auto lines = std::count(run_.lines().begin(), run_.lines().end(), '\n');
    if (lines > 2 * static_cast<std::ptrdiff_t>(args_.calls.size())) return {};
    const char* type = type_name(dtypes_[0]);
    std::string out = "(const reel::FusedArgs& args) {\n";
    out += fmt::format("  using namespace reel;\n  using namespace reel::cpu;\n  using T = {0};\n", type);
    out += "  using V = xsimd::batch<T>;\n  constexpr auto width = static_cast<std::int64_t>(V::size);\n";
    if (one_row())
      out += "  const std::int64_t rows = 1, columns = args.rows * args.columns;\n";
    else
      out += fmt::format("  const std::int64_t rows = args.rows;\n  constexpr std::int64_t columns = {};\n",
                         args_.columns);
    for (std::size_t i = 0; i < args_.calls.size(); ++i) {
      const FusedCall& c = args_.calls[i];
      if (c.kind != Kind::roll)
        out += fmt::format("  const auto f{0} = args.calls[{0}].params.template as<{1}<{2}>>();\n", i,
                           c.kind == Kind::map ? "Unary" : "Binary", c.functor);
    }
    out += "  for (std::int64_t r = 0; r < rows; ++r) {\n" + row_;
    out += "    const auto step = [&](auto part, std::int64_t c) {\n" + loads_ + run_.lines() + stores + "    };\n";
    out += "    std::int64_t c = 0;\n";
    out += "    for (; c + width <= columns; c += width) step(std::false_type(), c);\n";
    return out + "    if (c < columns) step(std::true_type(), c);\n  }\n}\n";
  }

 private:
  /// A local operand that no call makes is a row, repeated for a block.
  bool repeated(int o) const { return args_.operands[at(o)].local && maker_[at(o)] < 0; }
  std::vector<char> flat() const {
    std::vector<char> out;
    for (const FusedOperand& o : args_.operands) out.push_back(!o.local && o.column == 0);
    return out;
  }
  /// Can the rows be one long row?
  bool one_row() const {
    if (has_rolls(args_.calls)) return false;
    for (int o = 0; o < static_cast<int>(args_.operands.size()); ++o) {
      const FusedOperand& operand = args_.operands[at(o)];
      const bool full = operand.column == 1 && operand.row == args_.columns,
                 one = operand.column == 0 && operand.row == 0;
      if (repeated(o) || (!operand.local && !full && !one)) return false;
    }
    return true;
  }
  std::string load(int o, std::int64_t shift) {
    const FusedOperand& operand = args_.operands[at(o)];
    const std::string name = RunText::name(o, shift);
    const std::string pointer = fmt::format("p{}", o);
    if (row_.find(pointer + " ") == std::string::npos)
      row_ += fmt::format("    const T* const {} = reinterpret_cast<const T*>(args.operands[{}].data){};\n", pointer, o,
                          repeated(o) || operand.row == 0 ? ""
                          : operand.column == 0           ? fmt::format(" + r * {}", operand.row)
                                                          : " + r * columns");
    if (!repeated(o) && operand.column == 0)
      row_ += fmt::format("    const V {} = V(*{});\n", name, pointer);
    else if (shift == 0)
      loads_ += fmt::format("      const V {} = load<V>(part, {}, c, columns);\n", name, pointer);
    else
      loads_ += fmt::format("      const V {} = load_rolled<V>(part, {}, c, {}, columns);\n", name, pointer, shift);
    return name;
  }

  const FusedArgs& args_;
  std::vector<DType> dtypes_;
  std::vector<int> maker_;
  std::string row_, loads_;  // before the columns of a row; before the calls of a batch
  RunText run_;
};

}  // namespace

std::string group_source(const FusedArgs& args) {
  Writer writer(args);
  return writer.possible() ? writer.text() : std::string();
}

}  // namespace reel::cpu
