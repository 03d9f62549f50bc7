// Shows what a recurrence can do, whether or not training finds it: tries the hand-written solutions of copying and
// adding from Henaff et al. (2016) on random sequences. Copying by random rotations sometimes fails; the program counts
// how often, for several numbers of symbols K and lengths S. It also counts how often a unit of an SRNN (Rotman and
// Wolf 2021) loses its gradient.
#include <algorithm>
#include <cmath>
#include <filesystem>

#include "cells/lt_solutions.h"
#include "engine/core/parse.h"
#include "tasks/app/output_file.h"
#include "tasks/app/run.h"
#include "tasks/app/success_map.h"
#include "tasks/io/files.h"

namespace reel {
namespace {

struct MechanismOptions {
  std::string solution = "copying", cell = "lt_rnn", symbols = "2,4,8,16,32,64", lengths = "2,5,10,20,40", out, picture,
              device = "cpu", dtype = "f32";
  std::int64_t delay = 500, planes = 128, draws = 100, threads = 1;
  std::uint64_t seed = 1;
  bool dry_run = false;
};

/// Parses "2,4,8" as integers of 1 or more.
std::vector<std::int64_t> numbers(const std::string& option, const std::string& text) {
  std::vector<std::int64_t> out;
  for (std::size_t first = 0; first <= text.size();) {
    const std::size_t end = std::min(text.find(',', first), text.size());
    const auto n = parse<std::int64_t>(std::string_view(text).substr(first, end - first));
    if (!n || *n < 1 || *n > 100000)
      throw Usage(
          fmt::format("--{}: integers from 1 to 100000 separated by commas expected, got \"{}\"", option, text));
    out.push_back(*n);
    first = end + 1;
  }
  return out;
}

/// How many of `draws` solutions, each with its own random rotations, output all S symbols of a random sequence. The
/// output at the delimiter itself does not count.
std::int64_t copied(const MechanismOptions& o, std::int64_t K, std::int64_t S, Backend& device) {
  const std::int64_t T = o.delay, steps = T + 2 * S;
  Init init(o.seed, o.dtype == "f64" ? DType::f64 : DType::f32, device);
  Stream random(o.seed, (std::uint64_t{1} << 40) + static_cast<std::uint64_t>(K << 20 | S));
  std::int64_t right = 0;
  for (std::int64_t draw = 0; draw < o.draws; ++draw) {
    const LtSolution solution = copying_solution(K, S, T, o.planes, init);
    std::vector<std::int32_t> symbols(static_cast<std::size_t>(steps), 0);
    for (std::int64_t t = 0; t < S; ++t)
      symbols[static_cast<std::size_t>(t)] = static_cast<std::int32_t>(1 + random.below(K));
    symbols[static_cast<std::size_t>(T + S - 1)] = static_cast<std::int32_t>(K + 1);
    const Tensor x = Tensor::from<std::int32_t>(symbols, {steps, 1}, device);
    const Sequence all = scan(*solution.cell, solution.cell->initial(1), one_hot(x, K + 2, init.dtype));
    const Tensor said = argmax(linear(slice(all.hs, 0, T + S, steps), solution.U));
    right += reel::all(equal(said, slice(x, 0, 0, S))).item() != 0;
  }
  return right;
}

/// The largest error of the sum over `draws` sequences of T values, two of them marked.
double added(const MechanismOptions& o, std::int64_t T, Backend& device) {
  Init init(o.seed, o.dtype == "f64" ? DType::f64 : DType::f32, device);
  const LtSolution solution = o.cell == "lstm" ? lstm_adding_solution(init) : adding_solution(init);
  const auto B = static_cast<std::size_t>(o.draws);
  device.require_memory(o.solution, fmt::format("{} sequences of {} numbers", o.draws, T),
                        32 * static_cast<double>(T) * static_cast<double>(o.draws),
                        "fewer --draws or smaller --lengths");
  std::vector<double> x(static_cast<std::size_t>(T) * B * 2, 0), sums(B, 0);  // [T, B, 2]: value, marker
  Stream random(o.seed, std::uint64_t{1} << 41);
  for (std::size_t b = 0; b < B; ++b) {
    const std::int64_t first = random.below(T / 2), second = T / 2 + random.below(T - T / 2);
    for (std::int64_t t = 0; t < T; ++t) {
      const double value = random.uniform();
      const bool mark = t == first || t == second;
      x[(static_cast<std::size_t>(t) * B + b) * 2] = value;
      x[(static_cast<std::size_t>(t) * B + b) * 2 + 1] = mark ? 1 : 0;
      if (mark) sums[b] += value;
    }
  }
  const Tensor xs = cast(Tensor::from<double>(x, {T, o.draws, 2}, device), init.dtype);
  const Sequence all = scan(*solution.cell, solution.cell->initial(o.draws), xs);
  const Tensor said = cast(reshape(linear(all.last[0], solution.U), {o.draws}), DType::f64);
  return max(abs(said - Tensor::from<double>(sums, {o.draws}, device))).item();
}

/// How many of `draws` units of an SRNN lose their gradient. Each starts at 1, and beta adds or takes away 1 at random,
/// until the state is 0, where ReLU ends the gradient, or T + 1: the gambler's ruin.
std::int64_t ruined(const MechanismOptions& o, std::int64_t T, Backend& device) {
  Init init(o.seed, o.dtype == "f64" ? DType::f64 : DType::f32, device);
  const CellType& type = cell_type("srnn");
  const auto cell = type.make(1, 1, Settings(type.name, type.settings, {{"width", "1"}, {"gate", "off"}}), init);
  for (const Parameter& p : cell->parameters())  // beta(x) = relu(x + 1) - 1, which is x for x = +-1
    Tensor(p.value).assign(full_like(p.value, p.name == "fo.b" ? -1 : 1));
  const std::int64_t steps = 10 * (T + 1) * (T + 1);  // decide all but one in 10^21
  const double numbers = static_cast<double>(steps) * static_cast<double>(o.draws);
  device.require_memory(o.solution, fmt::format("{} units over {} steps", o.draws, steps), 48 * numbers,
                        "fewer --draws or smaller --lengths");
  std::vector<double> x(static_cast<std::size_t>(numbers));
  Stream random(o.seed, (std::uint64_t{1} << 42) + static_cast<std::uint64_t>(T));
  for (double& v : x) v = random.uniform() < 0.5 ? -1 : 1;
  const Shape shape{steps, o.draws, 1};
  const auto on_device = [&](const std::vector<double>& v) {
    return cast(Tensor::from<double>(v, shape, device), init.dtype);
  };
  const Tape tape;
  const Tensor start = init.constant({o.draws, 1}, 1);
  const Tensor states = scan(*cell, {start}, on_device(x)).hs;
  const std::vector<double> seen = cast(states, DType::f64).values<double>();
  std::vector<double> decided(seen.size(), 0);  // 1 where a unit is at 0 or T + 1 for the first time
  for (std::int64_t b = 0; b < o.draws; ++b)
    for (std::int64_t t = 0; t < steps; ++t) {
      const auto at = static_cast<std::size_t>(t * o.draws + b);
      if (seen[at] != 0 && seen[at] != static_cast<double>(T + 1)) continue;
      decided[at] = 1;
      break;
    }
  const Tensor gradient = grad({sum(states * on_device(decided))}, {start})[0];
  const std::vector<double> g = cast(gradient, DType::f64).values<double>();
  return std::count(g.begin(), g.end(), 0.0);
}

/// Prints how many of the draws came out right, rows K and columns S, and returns the same as TSV.
std::string copying_table(const MechanismOptions& o, Backend& device) {
  const auto Ks = numbers("symbols", o.symbols), Ss = numbers("lengths", o.lengths);
  std::string tsv = "K\tS\tplanes\tT\tright\tdraws\n";
  print_out("copying by {} rotations, T = {}: sequences recalled, of {}\n\n  K \\ S", o.planes, o.delay, o.draws);
  for (const std::int64_t S : Ss) print_out("{:>7}", S);
  print_out("\n");
  for (const std::int64_t K : Ks) {
    print_out("{:>7}", K);
    for (const std::int64_t S : Ss) {
      const std::int64_t right = copied(o, K, S, device);
      print_out("{:>7}", right);
      flush_out();
      tsv += fmt::format("{}\t{}\t{}\t{}\t{}\t{}\n", K, S, o.planes, o.delay, right, o.draws);
    }
    print_out("\n");
  }
  return tsv;
}

std::string adding_table(const MechanismOptions& o, Backend& device) {
  std::string tsv = "T\tlargest_error\tdraws\n";
  print_out("adding by one unit: largest error of {} sums\n\n      T  error\n", o.draws);
  for (const std::int64_t T : numbers("lengths", o.lengths)) {
    const double error = added(o, T, device);
    print_out("{:>7}  {:.3g}\n", T, error);
    tsv += fmt::format("{}\t{}\t{}\n", T, error, o.draws);
  }
  return tsv;
}

std::string ruin_table(const MechanismOptions& o, Backend& device) {
  std::string tsv = "T\truined\tdraws\n";
  print_out(
      "units of an SRNN that lose their gradient before they have grown by T, of {}\n\n      T   lost  expected\n",
      o.draws);
  for (const std::int64_t T : numbers("lengths", o.lengths)) {
    const std::int64_t lost = ruined(o, T, device);
    print_out("{:>7}{:>7}{:>10.1f}\n", T, lost, static_cast<double>(o.draws * T) / static_cast<double>(1 + T));
    flush_out();
    tsv += fmt::format("{}\t{}\t{}\n", T, lost, o.draws);
  }
  return tsv;
}

void add_options(Options& options, MechanismOptions& o) {
  options.choice("solution", o.solution, {"copying", "adding", "ruin"},
                 "problem to solve; ruin: how often an SRNN unit loses its gradient before the unit has grown by T",
                 "Task");
  options.choice("cell", o.cell, {"lt_rnn", "lstm"}, "adding: cell of the one-unit network", "Task");
  options.add("symbols", o.symbols, "copying: K, number of different symbols; comma-separated list", "Task");
  options.add("lengths", o.lengths, "copying: S, number of symbols to remember; adding, ruin: T; comma-separated list",
              "Task");
  options.add("delay", o.delay, "copying: T, steps between the symbols and their recall", "Task",
              Bounds{.low = 1, .high = 1e6});
  options.add("planes", o.planes, "copying: number of rotations; there are 2 planes + 1 units", "Task",
              Bounds{.low = 1, .high = 10000});
  options.add("draws", o.draws, "trials per setting, each with its own rotations and sequences", "Task",
              Bounds{.low = 1, .high = 1e6});
  options.add("seed", o.seed, "random seed", "Task");
  options.add("out", o.out, "file to write the table to, tab-separated", "Run");
  options.add("picture", o.picture, "copying: SVG file to draw the table to; a PNG and a PDF are written next to it",
              "Run");
  add_device(options, o.device);
  options.choice("dtype", o.dtype, {"f32", "f64"}, "data type of weights and states", "Run");
  options.add("threads", o.threads, "CPU threads", "Run", Bounds{.low = 1, .high = 1024});
  options.flag("dry-run", o.dry_run, "print the number of trials and exit", "Run");
  options.presets("mechanism");
}

/// Throws Usage for options that do not go together; says which have no effect.
void check(const MechanismOptions& o, const Options& options) {
  if (!o.picture.empty() && o.solution != "copying")
    throw Usage("--picture: only the table of --solution copying has one");
  if (o.cell != "lt_rnn" && o.solution != "adding")
    throw Usage(fmt::format("--cell {}: only --solution adding has one", o.cell));
  if (!o.picture.empty() && std::filesystem::path(o.picture).extension() != ".svg")
    throw Usage(fmt::format(
        "--picture {}: a name that ends with .svg is expected; a PNG and a PDF are written beside it", o.picture));
  require_output_file("out", o.out, {});
  require_output_file("picture", o.picture, {{"out", o.out}});
  const auto lengths = numbers("lengths", o.lengths);
  if (o.solution == "adding" && *std::min_element(lengths.begin(), lengths.end()) < 2)
    throw Usage(fmt::format("--lengths {}: two of the numbers are added, so each length is at least 2", o.lengths));
  for (const char* option : {"symbols", "delay", "planes"})
    if (o.solution != "copying" && options.typed(option))
      print_err("note: --{} has no effect: it is for copying, and --solution is {}\n", option, o.solution);
}

int mechanism(int argc, const char* const* argv) {
  MechanismOptions o;
  Options options("mechanism",
                  "Copying and adding with hand-constructed weights (Henaff et al. 2016); gradients of SRNN.");
  add_options(options, o);
  options.parse(argc, argv);
  check(o, options);
  if (o.dry_run) {
    const std::size_t fields =
        numbers("lengths", o.lengths).size() * (o.solution == "copying" ? numbers("symbols", o.symbols).size() : 1);
    print_out("{} by hand: {} setting{}, {} draw{} of each\n", o.solution, fields, fields == 1 ? "" : "s", o.draws,
              o.draws == 1 ? "" : "s");
    return 0;
  }
  Backend& device = use_device(o.device);
  device.set_threads(static_cast<int>(o.threads));
  const std::string tsv = o.solution == "copying"  ? copying_table(o, device)
                          : o.solution == "adding" ? adding_table(o, device)
                                                   : ruin_table(o, device);
  if (!o.out.empty()) write_atomically(o.out, tsv);
  if (!o.picture.empty()) {
    SuccessMap map;
    map.add(tsv);
    print_picture(o.picture, map.draw(o.picture, fmt::format("copying by {} rotations, T = {}", o.planes, o.delay)));
  }
  return 0;
}

}  // namespace
}  // namespace reel

int main(int argc, char** argv) {
  return reel::run_program("mechanism", [&] { return reel::mechanism(argc, argv); });
}
