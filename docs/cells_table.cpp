// Writes docs/cells.md from the registry of cells: what each is, its parameters and state, what scan takes out of its
// loop, what it needs numerically, its settings. With --check FILE it compares instead.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <fstream>
#include <iostream>
#include <set>
#include <sstream>

#include "cells/cell.h"

using namespace reel;

namespace {

using Given = std::map<std::string, std::string>;

std::unique_ptr<Cell> make(const CellType& type, std::int64_t n, std::int64_t i, const Given& given = {}) {
  Init init(1);
  return type.make(i, n, Settings(type.name, type.settings, given), init);
}

// ---- sizes as formulas ----------------------------------------------------------------------------------------------

/// The sizes that a cell is made in; an extent is a n + b i + c of the first three, which the last one confirms.
constexpr std::pair<std::int64_t, std::int64_t> sizes[] = {{32, 3}, {64, 3}, {32, 5}, {128, 7}};

std::string extent(const std::array<std::int64_t, 4>& d) {
  constexpr std::int64_t parts = 4;  // n may come in quarters
  const std::int64_t a = (d[1] - d[0]) * parts / 32, b = (d[2] - d[0]) / 2, c = d[0] - a * 32 / parts - b * 3;
  if (d[3] == 7 && d[0] == 5 && d[1] == 6) return "log2 n";
  if (d[3] != a * 128 / parts + b * 7 + c) return fmt::format("{}\\*", d[0]);  // a star, not emphasis
  std::string text;
  const auto add = [&](std::int64_t k, const std::string& name) {
    if (k == 0) return;
    text += text.empty() ? (k < 0 ? "-" : "") : (k < 0 ? " - " : " + ");
    text += name.empty()       ? std::to_string(std::abs(k))
            : std::abs(k) == 1 ? name
                               : fmt::format("{} {}", std::abs(k), name);
  };
  if (a % parts == 0)
    add(a / parts, "n");
  else
    add(a % 2 == 0 ? a / 2 : a, a % 2 == 0 ? "n/2" : "n/4");
  add(b, "i");
  add(c, "");
  return text.empty() ? "0" : text;
}

/// Names with their shapes; names of one shape together.
class Shapes {
 public:
  void add(const std::string& name, const std::vector<std::array<std::int64_t, 4>>& dims, bool complex) {
    std::vector<std::string> texts;
    for (const auto& d : dims) texts.push_back(extent(d));
    const std::string shape = fmt::format("{}[{}]", complex ? "complex " : "", fmt::join(texts, ", "));
    for (auto& [known, names] : rows_) {
      if (known == shape) return names.push_back("`" + name + "`");
    }
    rows_.push_back({shape, {"`" + name + "`"}});
  }
  std::string str() const {
    std::vector<std::string> parts;
    for (const auto& [shape, names] : rows_) parts.push_back(fmt::format("{} {}", fmt::join(names, ", "), shape));
    const std::string text = fmt::format("{}", fmt::join(parts, "; "));
    return text.find('*') == std::string::npos ? text : text + "; \\*: for n = 32";
  }

 private:
  std::vector<std::pair<std::string, std::vector<std::string>>> rows_;
};

// ---- what runs when -------------------------------------------------------------------------------------------------

/// A list of ops: products, transforms, reductions by name; the light ones (elementwise, movements) only counted.
struct Work {
  std::vector<std::pair<std::string, int>> heavy;
  int light = 0;
  void add(const Op& op) {
    if (op.alias != nullptr) return;  // a view, no work
    if (op.traits.kind != Kind::compute) return void(++light);
    for (auto& [name, count] : heavy) {
      if (name == op.traits.name) return void(++count);
    }
    heavy.push_back({op.traits.name, 1});
  }
  std::string str() const {
    std::vector<std::string> parts;
    for (const auto& [name, count] : heavy) parts.push_back(count == 1 ? name : fmt::format("{} {}", count, name));
    if (light > 0) parts.push_back(fmt::format("{} light op{}", light, light == 1 ? "" : "s"));
    return parts.empty() ? "nothing" : fmt::format("{}", fmt::join(parts, ", "));
  }
};

/// What is done to run a cell over time, as scan takes it apart.
struct Parts {
  Work from_parameters, all_times, each_time;
};

/// The sizes of the cell that is traced: so large that a product is memory-bound only where the cell intends it.
constexpr std::int64_t traced_hidden = 128, traced_input = 32, traced_batch = 20;

/// A run over time, traced on shapes.
Program traced_run(const Cell& cell) {
  std::vector<Spec> specs{{DType::f32, {6, traced_batch, cell.input}, &backend()}};
  for (const State& s : cell.states())
    specs.push_back({s.complex ? DType::c64 : DType::f32, {traced_batch, s.width}, &backend()});
  return trace(specs,
               [&](const Tensors& in) {
                 Sequence all = scan(cell, Tensors(in.begin() + 1, in.end()), in[0]);
                 all.last.push_back(all.hs);
                 return all.last;
               })
      .program;
}

Parts parts_of(const Program& program) {
  Parts parts;
  std::vector<char> varying(program.values.size(), 0);
  std::fill_n(varying.begin(), program.inputs, 1);
  for (const Program::Node& node : program.nodes) {
    const bool varies = std::any_of(node.in.begin(), node.in.end(), [&](int s) { return varying[s] != 0; });
    for (int s = node.out; s < node.out + node.num_outputs; ++s) varying[s] = varies;
    if (node.op != &op_of<Scan>()) {
      (varies ? parts.all_times : parts.from_parameters).add(*node.op);
      continue;
    }
    for (const Program::Node& inner : node.attrs.as<Scan>().loop().body.nodes) parts.each_time.add(*inner.op);
  }
  return parts;
}

// ---- what a cell needs ----------------------------------------------------------------------------------------------

using Needs = std::set<std::string>;

/// The numerical method that each of these ops needs.
const std::map<std::string, std::string> needs_of_ops{
    {"fft", "FFT"},
    {"irfft", "FFT"},
    {"eig", "eigenvalues"},
    {"eigh", "eigenvalues"},
    {"schur", "eigenvalues"},
    {"spectral_radius", "eigenvalues"},
    {"matrix_exp", "matrix exponential"},
    {"solve", "linear solve"},
    {"inverse", "linear solve"},
    {"triangular_solve", "triangular solve"},
    {"qr", "QR"},
    {"svd", "SVD"},
    {"polar_factor", "SVD"},
};

void add_needs(Needs& needs, const Op& op, const std::string& when) {
  if (const auto found = needs_of_ops.find(op.traits.name); found != needs_of_ops.end())
    needs.insert(found->second + when);
}
void add_needs(Needs& needs, const Program& program) {
  for (const Spec& s : program.values) {
    if (is_complex(s.dtype)) needs.insert("complex numbers");
  }
  for (const Program::Node& node : program.nodes) {
    add_needs(needs, *node.op, "");
    if (node.op == &op_of<Scan>()) add_needs(needs, node.attrs.as<Scan>().loop().body);
  }
}
void add_needs(Needs& needs, const Tape& tape, const std::string& when) {
  for (std::size_t i = 0; i < tape.size(); ++i) add_needs(needs, *tape.node(i).op, when);
}

/// Of one start, run, and updates: the ops of all three are looked at.
Needs needs_of(const CellType& type, const Given& given) {
  Needs needs, start, updates;
  std::unique_ptr<Cell> cell;
  {
    Tape tape;
    cell = make(type, 8, 8, given);
    add_needs(start, tape, " at the start");
  }
  add_needs(needs, traced_run(*cell));
  for (const Parameter& p : cell->parameters()) {
    if (!p.retract) continue;
    Tape tape;
    Tensor value = p.value;
    p.retract(value, zeros_like(value), 0.1);
    add_needs(updates, tape, " in updates");
  }
  constexpr int long_enough = 100 * 100;  // for dtriv, which projects its base that seldom
  for (int k = 0; k < long_enough; ++k) {
    Tape tape;
    cell->updated();
    if (tape.size() == 0) break;  // nothing to do
    add_needs(updates, tape, " in updates");
  }
  // Needs of a run are not listed again.
  for (const Needs& more : {start, updates}) {
    for (const std::string& need : more) {
      if (std::none_of(needs.begin(), needs.end(), [&](const std::string& n) { return need.find(n + " ") == 0; }))
        needs.insert(need);
    }
  }
  return needs;
}

/// With the default settings, and what other choices add: "QR at the start (init=orthogonal)".
std::string needs_text(const CellType& type) {
  const Needs usual = needs_of(type, {});
  std::vector<std::string> texts(usual.begin(), usual.end());
  for (const Setting& s : type.settings) {
    for (const std::string& choice : s.choices) {
      if (choice == s.fallback) continue;
      Needs needs;
      try {
        needs = needs_of(type, {{s.name, choice}});
      } catch (const SettingError&) {
        continue;  // goes only with other settings
      }
      for (const std::string& need : needs) {
        if (!usual.contains(need)) texts.push_back(fmt::format("{} ({}={})", need, s.name, choice));
      }
    }
  }
  return texts.empty() ? "-" : fmt::format("{}", fmt::join(texts, ", "));
}

// ---- the page -------------------------------------------------------------------------------------------------------

std::string section(const CellType& type, const std::string& needs) {
  std::vector<std::unique_ptr<Cell>> cells;
  for (const auto& [n, i] : sizes) cells.push_back(make(type, n, i));
  const Cell& cell = *cells[0];
  const auto each = [&](auto&& f) { return std::array{f(*cells[0]), f(*cells[1]), f(*cells[2]), f(*cells[3])}; };

  Shapes trained, fixed, states;
  for (std::size_t k = 0; k < cell.parameters().size(); ++k) {
    const Parameter& p = cell.parameters()[k];
    std::vector<std::array<std::int64_t, 4>> dims;
    for (int axis = 0; axis < p.value.rank(); ++axis)
      dims.push_back(each([&](const Cell& c) { return c.parameters()[k].value.dim(axis); }));
    (p.trained ? trained : fixed).add(p.name, dims, is_complex(p.value.dtype()));
  }
  for (std::size_t k = 0; k < cell.states().size(); ++k)
    states.add(cell.states()[k].name, {each([&](const Cell& c) { return c.states()[k].width; })},
               cell.states()[k].complex);

  std::string text = fmt::format("\n## {}\n\n| | {} |\n|---|---|\n", type.name, type.help);
  const auto row = [&](const char* name, const std::string& value) {
    text += fmt::format("| {} | {} |\n", name, value);
  };
  row("source", type.source);
  row("file", "`" + type.file + "`");
  row("trainable parameters", "`" + type.count + "`");
  row("parameters", trained.str());
  if (!fixed.str().empty()) row("not trained", fixed.str());
  row("state", states.str().empty() ? "none: it sees all times at once" : states.str());
  row("output", fmt::format("[{}]", extent(each([](const Cell& c) { return c.outputs(); }))));
  const Parts parts = parts_of(traced_run(*make(type, traced_hidden, traced_input)));
  row("once", parts.from_parameters.str());
  row("for all times", parts.all_times.str());
  row("at each time", parts.each_time.str());
  row("needs", needs);
  if (type.settings.empty()) return text;
  text += "\n| setting | default | other values | meaning |\n|---|---|---|---|\n";
  for (const Setting& s : type.settings) {
    std::vector<std::string> others;
    std::copy_if(s.choices.begin(), s.choices.end(), std::back_inserter(others),
                 [&](const std::string& c) { return c != s.fallback; });
    const std::string values = s.kind == Setting::Kind::integer ? "integers"
                               : s.kind == Setting::Kind::real  ? "numbers"
                                                                : fmt::format("{}", fmt::join(others, ", "));
    text += fmt::format("| `{}` | {} | {} | {} |\n", s.name, s.fallback, values, s.help);
  }
  return text;
}

constexpr const char* introduction = R"(# Cells

This page is generated from the registry and the cells themselves: `build/bin/cells_table > docs/cells.md`. A test fails
when the two differ.

n is the hidden size, i the input size. [equations.md](equations.md) has the equations. Options of a program are
`--NAME.SETTING`.

- **trainable parameters** is their number, a formula in n, i and the settings. A space between factors
  is a product, `[a=b]` is 1 if it holds and 0 otherwise, `a or b` is b if a is 0. A complex number counts as two. The
  read-out and embeddings are not counted.
- **parameters** are tensors with default settings, under their names in weight files. Elements that are never read (a
  triangle of a matrix) are not counted.
- **once**, **for all times**, **at each time**: the ops of a step, traced with default settings, n = 128, i = 32 and
  batch size 20, and transformed by `scan` ([03-scan.md](03-scan.md)). The first two are hoisted out of the loop: what
  depends on parameters alone, and what depends on the input, computed for all time steps at once. Products, reductions,
  gathers and decompositions are named; elementwise ops and ops that only move elements are counted as light ops. Light
  ops of the input stay in the loop, and so do products of a very narrow input ([04-passes.md](04-passes.md)).
- **needs** are the numerical methods used by a run, its initialisation and its updates. In brackets: the settings that
  need them.

)";

std::string page() {
  std::deque<CellType> types = cell_registry();
  std::erase_if(types, [](const CellType& type) {
    if (!type.built_in())
      fmt::print(stderr, "note: {} ({}) does not come with Reel and is left out\n", type.name, type.file);
    return !type.built_in();
  });
  std::sort(types.begin(), types.end(), [](const CellType& a, const CellType& b) { return a.name < b.name; });
  std::string text = introduction, sections;
  text += "| cell | what it is | trainable parameters, n = 128, i = 10 | needs |\n|---|---|---|---|\n";
  for (const CellType& type : types) {
    const std::string needs = needs_text(type);
    std::int64_t count = 0;
    const std::unique_ptr<Cell> cell = make(type, 128, 10);
    for (const Parameter& p : cell->parameters()) count += p.count();
    text += fmt::format("| [{0}](#{0}) | {1} | {2} | {3} |\n", type.name, type.help, count, needs);
    sections += section(type, needs);
  }
  return text + sections;
}

}  // namespace

int main(int argc, char** argv) {
  for (const auto& [op, need] : needs_of_ops) {
    const auto& all = op_registry();
    if (std::none_of(all.begin(), all.end(), [&, op = op](const Op* o) { return o->traits.name == op; })) {
      fmt::print(stderr, "cells_table: there is no op {}, which stands for {}\n", op, need);
      return 1;
    }
  }
  const std::string text = page();
  if (argc == 1) {
    fmt::print("{}", text);
    return 0;
  }
  if (argc != 3 || std::string(argv[1]) != "--check") {
    fmt::print(stderr, "usage: cells_table > FILE, or cells_table --check FILE\n");
    return 2;
  }
  std::ifstream in(argv[2]);
  std::stringstream file;
  file << in.rdbuf();
  if (file.str() == text) return 0;
  std::istringstream wanted(text), found(file.str());
  std::string a, b;
  int line = 0;
  do {
    a.clear(), b.clear(), ++line;
    std::getline(wanted, a), std::getline(found, b);
  } while (a == b);
  fmt::print(stderr,
             "{}:{} is not what the cells say:\n- {}\n+ {}\nTo update it: build/bin/cells_table > docs/cells.md\n",
             argv[2], line, b, a);
  return 1;
}
