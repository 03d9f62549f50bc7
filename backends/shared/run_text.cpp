#include "backends/shared/run_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "engine/core/error.h"
#include "ops/functors/binary.h"
#include "ops/functors/unary.h"

namespace reel {

namespace {

using CallKind = FusedCall::Kind;

/// What the generated source needs to know of a functor.
struct Functor {
  std::string_view name;
  int numbers = 0;  // of parameters: its members, all double
  std::array<DType, std::size(all_dtypes)> result{};
};
template <class... F>
std::vector<Functor> functors(TypeList<F...>) {
  const auto one = []<class G>(std::type_identity<G>) {
    Functor out{G::name, 0, {}};
    if constexpr (!std::is_empty_v<G>) {
      static_assert(sizeof(G) % sizeof(double) == 0);
      out.numbers = static_cast<int>(sizeof(G) / sizeof(double));
    }
    for (DType d : all_dtypes) out.result[static_cast<std::size_t>(d)] = result_dtype<G>(d);
    return out;
  };
  return {one(std::type_identity<F>{})...};
}
const Functor& functor_of(const FusedCall& call) {
  static const std::vector<Functor> unary = functors(UnaryFunctors{}), binary = functors(BinaryFunctors{});
  return (call.kind == CallKind::map ? unary : binary)[static_cast<std::size_t>(call.functor)];
}
bool has_functor(const FusedCall& call) { return call.kind == CallKind::map || call.kind == CallKind::zip; }
std::size_t at(int i) { return static_cast<std::size_t>(i); }

}  // namespace

DType result_of_call(const FusedCall& call) {
  if (call.kind == CallKind::cast) return call.to;
  return has_functor(call) ? functor_of(call).result[static_cast<std::size_t>(call.dtype)] : call.dtype;
}

std::vector<int> makers_of(std::span<const FusedCall> calls, std::size_t operands) {
  std::vector<int> out(operands, -1);
  for (std::size_t i = 0; i < calls.size(); ++i) out[at(calls[i].out)] = static_cast<int>(i);
  return out;
}

std::vector<DType> dtypes_of(const FusedArgs& args) {
  std::vector<DType> out(args.operands.size());
  for (const FusedCall& call : args.calls) {
    for (int k = 0; k < 3; ++k) {
      if (call.in[k] >= 0) out[at(call.in[k])] = call.kind == CallKind::select && k == 0 ? DType::boolean : call.dtype;
    }
  }
  for (const FusedCall& call : args.calls) out[at(call.out)] = result_of_call(call);
  return out;
}

const char* type_name(DType d) {
  constexpr const char* names[] = {"float", "double", "Complex64", "Complex128", "int", "bool"};
  return names[static_cast<int>(d)];
}

std::string number_text(double x) {
  if (std::isnan(x)) return "double(NAN)";
  if (std::isinf(x)) return x > 0 ? "double(INFINITY)" : "-double(INFINITY)";
  return fmt::format("{:a}", x);
}

bool is_power(const FusedCall& call) {
  return call.kind == CallKind::map && call.functor == index_of<Power, UnaryFunctors>;
}

int numbers_of(const FusedCall& call) { return has_functor(call) && !is_power(call) ? functor_of(call).numbers : 0; }

void put_numbers(std::span<const FusedCall> calls, std::vector<std::uint64_t>& out) {
  for (const FusedCall& call : calls) {
    const std::size_t first = out.size(), n = at(numbers_of(call));
    out.resize(first + n);
    if (n > 0) std::memcpy(out.data() + first, &call.params, n * sizeof(double));
  }
}

bool has_rolls(std::span<const FusedCall> calls) {
  return std::any_of(calls.begin(), calls.end(), [](const FusedCall& c) { return c.kind == CallKind::roll; });
}

RunText::RunText(std::span<const FusedCall> calls, std::vector<DType> dtypes, std::vector<char> flat,
                 std::int64_t columns, int first_number, Load load, std::string indent)
    : calls_(calls),
      dtypes_(std::move(dtypes)),
      flat_(std::move(flat)),
      maker_(makers_of(calls, dtypes_.size())),
      columns_(columns),
      load_(std::move(load)),
      indent_(std::move(indent)) {
  for (const FusedCall& call : calls) {
    number_.push_back(first_number);
    first_number += numbers_of(call);
  }
}

std::string RunText::name(int operand, std::int64_t shift) {
  return shift == 0 ? fmt::format("v{}", operand) : fmt::format("v{}_{}", operand, shift);
}

std::string RunText::value(int operand, std::int64_t shift) {
  using Place = std::pair<int, std::int64_t>;
  const auto place = [&](int v, std::int64_t s) { return Place{v, flat_[at(v)] ? 0 : s}; };
  // Depth first without recursion: a long chain of calls would overflow the stack.
  std::vector<Place> wanted{place(operand, shift)};
  while (!wanted.empty()) {
    if (gave_up()) return {};
    const Place top = wanted.back();
    const auto [v, s] = top;
    const std::size_t before = wanted.size();
    if (maker_[at(v)] >= 0 && !names_.contains(top)) {
      const FusedCall& call = calls_[at(maker_[at(v)])];
      const std::int64_t from = call.kind == CallKind::roll ? (s + call.functor) % columns_ : s;
      for (int k = 2; k >= 0; --k) {
        if (call.in[k] >= 0 && !names_.contains(place(call.in[k], from))) wanted.push_back(place(call.in[k], from));
      }
    }
    if (wanted.size() > before) continue;
    wanted.pop_back();
    if (!names_.contains(top)) names_[top] = maker_[at(v)] >= 0 ? compute(v, s) : load_(v, s);
  }
  return names_.at(place(operand, shift));
}

std::string RunText::compute(int operand, std::int64_t shift) {
  const std::size_t i = at(maker_[at(operand)]);
  const FusedCall& call = calls_[i];
  if (call.kind == CallKind::roll) return value(call.in[0], (shift + call.functor) % columns_);
  std::string x[3];
  for (int k = 0; k < 3; ++k) {
    if (call.in[k] >= 0) x[k] = value(call.in[k], shift);
  }
  std::string made, note;
  if (call.kind == CallKind::select) {
    made =
        batches_ ? fmt::format("choose({}, {}, {})", x[0], x[1], x[2]) : fmt::format("{} ? {} : {}", x[0], x[1], x[2]);
  } else if (call.kind == CallKind::cast) {
    made = fmt::format("{}<{}>({})", batches_ ? "batch_cast" : "reel::element_cast", type_name(call.to), x[0]);
  } else if (call.kind == CallKind::zip && call.functor == index_of<MakeComplex, BinaryFunctors>) {
    made = fmt::format("make_complex({}, {})", x[0], x[1]);
  } else if (batches_) {
    made = fmt::format("fixed(f{}({}{}{}))", i, x[0], call.kind == CallKind::zip ? ", " : "", x[1]);
    note = fmt::format("  // {}", functor_of(call).name);
  } else {
    std::string members;
    for (int k = 0; k < numbers_of(call); ++k) members += fmt::format("{}a.number[{}]", k ? ", " : "", number_[i] + k);
    if (is_power(call)) members = number_text(call.params.as<Power>().exponent);
    made = fmt::format("{}<{}>{{{}}}({}{}{})", call.kind == CallKind::map ? "Unary" : "Binary", call.functor, members,
                       x[0], call.kind == CallKind::zip ? ", " : "", x[1]);
    note = fmt::format("  // {}", functor_of(call).name);
  }
  std::string out = name(operand, shift);
  lines_ +=
      fmt::format("{}const {} {} = {};{}\n", indent_, batches_ ? "auto" : type_name(dtype(operand)), out, made, note);
  return out;
}

}  // namespace reel
