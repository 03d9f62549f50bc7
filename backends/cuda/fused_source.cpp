#include "backends/cuda/fused_source.h"

#include <algorithm>
#include <array>
#include <map>

#include "backends/cuda/loop_kernel.h"
#include "engine/error.h"
#include "ops/functors/binary.h"
#include "ops/functors/unary.h"

namespace reel::cuda {

namespace {

using Kind = FusedCall::Kind;

/// What the text needs to know of a functor.
struct Functor {
  std::string_view name;
  int numbers = 0;  // its members, all of them double
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
  return (call.kind == Kind::map ? unary : binary)[static_cast<std::size_t>(call.functor)];
}
bool has_functor(const FusedCall& call) { return call.kind == Kind::map || call.kind == Kind::zip; }
bool is_power(const FusedCall& call) {
  return call.kind == Kind::map && call.functor == index_of<Power, UnaryFunctors>;
}
/// Numbers that go into the kernel's argument, so that another value needs no other kernel. But an exponent is in the
/// text: it decides what is computed.
int numbers_of(const FusedCall& call) { return has_functor(call) && !is_power(call) ? functor_of(call).numbers : 0; }

const char* type_name(DType d) {
  constexpr const char* names[] = {"float", "double", "Complex64", "Complex128", "int", "bool"};
  return names[static_cast<int>(d)];
}

/// A run with its operands' dtypes, and who makes them.
struct Run {
  const FusedArgs& args;
  std::vector<DType> dtype;
  std::vector<int> maker;  // call that makes the operand, or -1

  explicit Run(const FusedArgs& a) : args(a), dtype(a.operands.size()), maker(a.operands.size(), -1) {
    for (std::size_t i = 0; i < a.calls.size(); ++i) {
      const FusedCall& call = a.calls[i];
      for (int k = 0; k < 3; ++k) {
        const int o = call.in[k];
        if (o < 0 || made(o)) continue;
        const bool condition = call.kind == Kind::select && k == 0;
        dtype[at(o)] = condition ? DType::boolean : call.dtype;
      }
      maker[at(call.out)] = static_cast<int>(i);
      dtype[at(call.out)] = result_of_call(call);
    }
  }
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  const FusedOperand& operand(int i) const { return args.operands[at(i)]; }
  bool made(int o) const { return maker[at(o)] >= 0; }
  bool in_memory(int o) const { return !operand(o).local; }
};

}  // namespace

DType result_of_call(const FusedCall& call) {
  if (call.kind == Kind::cast) return call.to;
  return has_functor(call) ? functor_of(call).result[static_cast<std::size_t>(call.dtype)] : call.dtype;
}

bool has_rolls(const FusedArgs& args) {
  return std::any_of(args.calls.begin(), args.calls.end(), [](const FusedCall& c) { return c.kind == Kind::roll; });
}

FusedLayout lay_out(const FusedArgs& args) {
  FusedLayout out{args.rows, args.columns, 1, args.rows * args.columns >= (std::int64_t{1} << 31)};
  std::size_t largest = 1;
  bool one_row = !has_rolls(args);
  for (const FusedOperand& o : args.operands) {
    if (!o.local) largest = std::max(largest, o.element_bytes);
    one_row = one_row && (o.local || (o.column == 1 && (o.row == args.columns || args.rows == 1)));
  }
  if (one_row) out.columns = out.rows * out.columns, out.rows = 1;
  // Little work is better spread over many threads.
  constexpr std::int64_t little = 1 << 15;
  const int per = static_cast<int>(16 / largest);
  if (args.rows * args.columns <= little || out.columns % per != 0) return out;
  for (const FusedOperand& o : args.operands) {
    const std::size_t bytes = o.element_bytes * static_cast<std::size_t>(per);
    if (!o.local && o.column == 1 && reinterpret_cast<std::uintptr_t>(o.data) % bytes != 0) return out;
  }
  out.per = per;
  return out;
}

void put_numbers(const FusedArgs& args, std::vector<std::uint64_t>& out) {
  for (const FusedCall& call : args.calls) {
    const std::size_t first = out.size(), n = static_cast<std::size_t>(numbers_of(call));
    out.resize(first + n);
    if (n > 0) std::memcpy(out.data() + first, call.params, n * sizeof(double));
  }
}

std::string fused_key(const FusedArgs& args, const FusedLayout& layout) {
  std::string key;
  key.reserve(32 * args.calls.size() + 4 * args.operands.size() + 16);
  const auto put = [&](const auto& value) { key.append(reinterpret_cast<const char*>(&value), sizeof(value)); };
  for (const FusedCall& call : args.calls) {
    put(call.kind);
    put(call.functor);
    put(call.dtype);
    put(call.to);
    put(call.in);
    put(call.out);
    if (is_power(call)) put(static_cast<const Power*>(call.params)->exponent);
  }
  for (const FusedOperand& o : args.operands) {
    put(o.local);
    put(static_cast<std::uint8_t>(o.element_bytes));
    put(static_cast<std::uint8_t>(o.local ? 0 : 2 * (o.column != 0) + (o.row != 0)));
  }
  put(layout.per);
  put(layout.wide);
  put(layout.lanes);
  put(layout.rows == 1);
  if (has_rolls(args)) put(layout.columns);  // sums of rolls go round
  return key;
}

namespace {

/// Writes the text. A value is asked for at a shift: that of the element so many columns before, as rolls have it. A
/// value that is made in the run is then computed there once more, from arguments read there: no thread waits for
/// another.
class Writer {
 public:
  Writer(const FusedArgs& args, const FusedLayout& layout, const std::string& name, const FusedLoopArgs* loop)
      : run_(args),
        layout_(layout),
        name_(name),
        loop_(loop),
        slot_(args.operands.size(), -1),
        number_(args.calls.size(), 0) {}

  KernelSource write() {
    int pointers = 0, numbers = 0;
    for (std::size_t o = 0; o < slot_.size(); ++o) {
      complex_ = complex_ || is_complex(run_.dtype[o]);
      if (run_.in_memory(static_cast<int>(o))) slot_[o] = pointers++;
    }
    for (std::size_t i = 0; i < number_.size(); ++i) {
      number_[i] = numbers;
      numbers += numbers_of(run_.args.calls[i]);
    }
    for (std::size_t o = 0; o < slot_.size(); ++o) {
      if (slot_[o] < 0 || !run_.made(static_cast<int>(o))) continue;
      const std::string result = value(static_cast<int>(o), 0), type = type_name(run_.dtype[o]);
      if (layout_.per == 1) {
        std::string made = result;
        if (layout_.lanes > 1) {  // stored when all columns are computed, so that what they read is asked for together
          made = fmt::format("s{}[k]", o);
          made_ += fmt::format("    {} s{}[{}];\n", type, o, layout_.lanes);
          lanes_ += fmt::format("    {} = {};\n", made, result);
        }
        stores_ += fmt::format("    {}[at] = {};\n", address(static_cast<int>(o), false), made);
      } else {
        before_ += fmt::format("    Pack<{}, {}> y{};\n", type, layout_.per, o);
        lanes_ += fmt::format("      y{}.at[k] = {};\n", o, result);
        stores_ += fmt::format("    *reinterpret_cast<Pack<{}, {}>*>(static_cast<{}*>(a.data[{}]) + at) = y{};\n", type,
                               layout_.per, type, slot_[o], o);
      }
    }
    return {text(pointers, numbers), complex_};
  }

 private:
  std::string text(int pointers, int numbers) const {
    std::string out = "#include \"backends/cuda/generated/kernel.h\"\n\n";
    out += fmt::format("struct {}_Arguments {{\n  long long rows, columns;\n", name_);
    if (loop_) out += "  long long steps;\n";
    out += fmt::format("  void* data[{}];\n", pointers);
    if (loop_) out += fmt::format("  long long stride[{}];  // in elements, from time to time\n", pointers);
    if (numbers > 0) out += fmt::format("  double number[{}];\n", numbers);
    out += fmt::format("}};\n\nextern \"C\" __global__ void __launch_bounds__({}) {}(const {}_Arguments a) {{\n",
                       loop_ ? 1024 : 256, name_, name_);
    out += "  using namespace reel::generated;\n";
    return out + (loop_ ? all_steps() : one_step());
  }

  std::string one_step() const {
    std::string out = fmt::format("  using Index = {};\n", layout_.wide ? "long long" : "unsigned");
    out += fmt::format("  const Index packs = static_cast<Index>(a.rows * a.columns / {});\n", layout_.per);
    if (needs_row_) out += "  const Index columns = static_cast<Index>(a.columns);\n";
    out +=
        "  const Index first = blockIdx.x * Index(blockDim.x) + threadIdx.x, step = gridDim.x * Index(blockDim.x);\n";
    out += "  for (Index g = first; g < packs; g += step) {\n";
    out += fmt::format("    const Index at = g * {};\n", layout_.per);
    if (needs_row_) out += "    const Index row = at / columns, column = at - row * columns;\n";
    out += before_;
    if (layout_.per > 1) out += fmt::format("#pragma unroll\n    for (int k = 0; k < {}; ++k) {{\n", layout_.per);
    out += lanes_;
    if (layout_.per > 1) out += "    }\n";
    return out + stores_ + "  }\n}\n";
  }

  /// Threads of a block wait for each other where one reads what another wrote in the step before.
  std::string all_steps() const {
    const bool rolls = has_rolls(run_.args);
    std::string out;
    if (layout_.lanes > 1) {
      out += "  const unsigned columns = static_cast<unsigned>(a.columns), row = blockIdx.x;\n";
    } else if (rolls) {
      out += "  const unsigned columns = blockDim.x, row = blockIdx.x, column = threadIdx.x;\n";
      out += "  const unsigned at = row * columns + column;\n";
    } else {
      out += "  const unsigned at = blockIdx.x * blockDim.x + threadIdx.x;\n";
      out += "  if (at >= a.rows * a.columns) return;\n";
      out += "  const unsigned columns = static_cast<unsigned>(a.columns), row = at / columns;\n";
      out += "  const unsigned column = at - row * columns;\n";
    }
    const char* const reverse = loop_->reverse ? "a.steps - 1 - " : "";
    if (!start_.empty()) out += fmt::format("  const long long first = {}0;\n{}{}", reverse, held_, each_lane(start_));
    out += fmt::format("  for (long long i = 0; i < a.steps; ++i) {{\n    [[maybe_unused]] const long long t = {}i;\n",
                       reverse);
    if (!ahead_.empty())
      out += fmt::format("    const long long next = {0}(i + 1), later = {0}(i + {1});\n", reverse, distance);
    out += layout_.lanes == 1 ? before_ + ahead_ + lanes_ + stores_
                              : made_ + each_lane(before_ + ahead_ + lanes_) + each_lane(stores_);
    return out + (rolls ? "    __syncthreads();\n" : "") + "  }\n}\n";
  }

  /// The text for each column that a thread has.
  std::string each_lane(const std::string& text) const {
    if (layout_.lanes == 1) return text;
    std::string out = fmt::format("#pragma unroll\n    for (int k = 0; k < {}; ++k) {{\n", layout_.lanes);
    out += "    const unsigned column = threadIdx.x + k * blockDim.x, at = row * columns + column;\n";
    if (layout_.columns % layout_.lanes != 0) out += "    if (column >= columns) continue;\n";
    return out + text + "    }\n";
  }

  /// The name of a value that a thread of a loop has through all steps, for each of its columns.
  std::string hold(const std::string& type, const std::string& name) {
    const bool one = layout_.lanes == 1;
    held_ += fmt::format("  {} {}{};\n", type, name, one ? "" : fmt::format("[{}]", layout_.lanes));
    return name + (one ? "" : "[k]");
  }

  /// The name of an operand's value so many columns before.
  std::string value(int o, std::int64_t shift) {
    if (!run_.made(o) && run_.operand(o).column == 0) shift = 0;  // the same for the whole row
    if (const auto found = names_.find({o, shift}); found != names_.end()) return found->second;
    const std::string made = run_.made(o) ? compute(o, shift) : load(o, shift);
    return names_[{o, shift}] = made;
  }

  std::string compute(int o, std::int64_t shift) {
    const auto i = static_cast<std::size_t>(run_.maker[Run::at(o)]);
    const FusedCall& call = run_.args.calls[i];
    if (call.kind == Kind::roll) return value(call.in[0], (shift + call.functor) % layout_.columns);
    std::string x[3];
    for (int k = 0; k < 3; ++k) {
      if (call.in[k] >= 0) x[k] = value(call.in[k], shift);
    }
    std::string made, note;
    if (call.kind == Kind::select) {
      made = fmt::format("{} ? {} : {}", x[0], x[1], x[2]);
    } else if (call.kind == Kind::cast) {
      made = fmt::format("cast<{}>({})", type_name(call.to), x[0]);
    } else if (call.kind == Kind::zip && call.functor == index_of<MakeComplex, BinaryFunctors>) {
      made = fmt::format("make_complex({}, {})", x[0], x[1]);
    } else {
      std::string members;
      for (int k = 0; k < numbers_of(call); ++k)
        members += fmt::format("{}a.number[{}]", k ? ", " : "", number_[i] + k);
      if (is_power(call)) members = fmt::format("{:a}", static_cast<const Power*>(call.params)->exponent);
      made = fmt::format("{}<{}>{{{}}}({}{}{})", call.kind == Kind::map ? "Unary" : "Binary", call.functor, members,
                         x[0], call.kind == Kind::zip ? ", " : "", x[1]);
      note = fmt::format("  // {}", functor_of(call).name);
    }
    const std::string name = new_name(o, shift);
    lanes_ += fmt::format("{}const {} {} = {};{}\n", layout_.per > 1 ? "      " : "    ",
                          type_name(run_.dtype[Run::at(o)]), name, made, note);
    return name;
  }

  std::string load(int o, std::int64_t shift) {
    const FusedOperand& operand = run_.operand(o);
    const std::string type = type_name(run_.dtype[Run::at(o)]), name = new_name(o, shift), from = address(o, true);
    const bool full = operand.column != 0 && (operand.row != 0 || layout_.rows == 1);
    std::string place = operand.column == 0 ? (operand.row != 0 ? "row" : "0") : full ? "at" : "column";
    if (shift != 0)
      place = fmt::format("{0}(column{1} >= {2} ? column{1} - {2} : column{1} + {3})", full ? "row * columns + " : "",
                          lane(), shift, layout_.columns - shift);
    needs_row_ = needs_row_ || (place != "0" && place != "at");
    const std::string read = fmt::format("{}[{}];\n", from, place);
    if (layout_.per > 1 && shift == 0 && operand.column != 0) {
      before_ += fmt::format("    const auto {} = *reinterpret_cast<const Pack<{}, {}>*>({} + {});\n", name, type,
                             layout_.per, from, place);
      return name + ".at[k]";
    }
    if (loop_ && !walks(o)) {  // the same in all steps
      const std::string held = hold(type, name);
      start_ += fmt::format("    {} = {}", held, read);
      return held;
    }
    if (loop_ && shift == 0 && !is_carried(*loop_, Run::at(o))) {  // no step makes it: it can be read ahead
      const std::string held = hold(type, fmt::format("n{}", o));
      start_ += fmt::format("    {} = {}[{}];\n", held, address(o, true, "first"), place);
      before_ += fmt::format("    const {} {} = {};\n", type, name, held);
      ahead_ += fmt::format("    if (i + 1 < a.steps) {} = {}[{}];\n", held, address(o, true, "next"), place);
      ahead_ +=
          fmt::format("    if (i + {} < a.steps) prefetch({} + {});\n", distance, address(o, true, "later"), place);
    } else {
      (shift == 0 ? before_ : lanes_) += fmt::format("    const {} {} = {}", type, name, read);
    }
    return name;
  }

  bool walks(int o) const { return loop_ && loop_->walks[Run::at(o)].stride != 0; }
  /// Where an operand lies, in a loop at this time.
  std::string address(int o, bool reads, const char* time = "t") const {
    const int slot = slot_[Run::at(o)];
    std::string out =
        fmt::format("static_cast<{}{}*>(a.data[{}])", reads ? "const " : "", type_name(run_.dtype[Run::at(o)]), slot);
    if (!walks(o)) return out;
    const LoopWalk& walk = loop_->walks[Run::at(o)];
    const std::string which = walk.turns > 0 ? fmt::format("(i + {}) % {}", walk.shift, walk.turns) : time;
    return fmt::format("({} + {} * a.stride[{}])", out, which, slot);
  }

  const char* lane() const { return layout_.per > 1 ? " + k" : ""; }
  static std::string new_name(int o, std::int64_t shift) {
    return shift == 0 ? fmt::format("v{}", o) : fmt::format("v{}_{}", o, shift);
  }

  Run run_;
  FusedLayout layout_;
  std::string name_;
  const FusedLoopArgs* loop_;
  std::vector<int> slot_, number_;  // by operand: its address; by call: its first number
  std::map<std::pair<int, std::int64_t>, std::string> names_;
  std::string held_, start_, made_, before_, ahead_, lanes_, stores_;  // before the loop (2); of a step, in this order
  static constexpr int distance = 8;  // steps that memory is asked ahead, to have it in a cache
  bool needs_row_ = false, complex_ = false;
};

}  // namespace

KernelSource fused_source(const FusedArgs& args, const FusedLayout& layout, const std::string& name,
                          const FusedLoopArgs* loop) {
  return Writer(args, layout, name, loop).write();
}

std::vector<std::uint64_t> fused_arguments(const FusedArgs& args, const FusedLayout& layout) {
  std::vector<std::uint64_t> out{static_cast<std::uint64_t>(layout.rows), static_cast<std::uint64_t>(layout.columns)};
  for (const FusedOperand& o : args.operands) {
    if (!o.local) out.push_back(reinterpret_cast<std::uintptr_t>(o.data));
  }
  put_numbers(args, out);
  return out;
}

}  // namespace reel::cuda
