// Shows what a linear recurrence can do, whether or not training finds it: tries the hand-written solutions of copying
// and adding from Henaff et al. (2016) on random sequences. Copying by random rotations sometimes fails; the program
// counts how often, for several numbers of symbols K and lengths S.
#include <cmath>
#include <filesystem>

#include "cells/lt_solutions.h"
#include "engine/core/parse.h"
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
  device.require_memory("mechanism", fmt::format("{} sequences of {} numbers", o.draws, T),
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
    if (T < 2) throw Usage(fmt::format("--lengths: two of the numbers are added, got T = {}", T));
    const double error = added(o, T, device);
    print_out("{:>7}  {:.3g}\n", T, error);
    tsv += fmt::format("{}\t{}\t{}\n", T, error, o.draws);
  }
  return tsv;
}

int mechanism(int argc, const char* const* argv) {
  MechanismOptions o;
  Options options("mechanism", "Copying and adding with hand-constructed weights (Henaff et al. 2016).");
  options.choice("solution", o.solution, {"copying", "adding"}, "problem to solve", "Task");
  options.choice("cell", o.cell, {"lt_rnn", "lstm"}, "adding: the network of one unit", "Task");
  options.add("symbols", o.symbols, "copying: K, different symbols; several with commas between", "Task");
  options.add("lengths", o.lengths, "copying: S, symbols to remember; adding: T; several with commas between", "Task");
  options.add("delay", o.delay, "copying: T, steps between the symbols and their recall", "Task",
              Bounds{.low = 1, .high = 1e6});
  options.add("planes", o.planes, "copying: rotations; there are 2 planes + 1 units", "Task",
              Bounds{.low = 1, .high = 10000});
  options.add("draws", o.draws, "trials of each, each with its own rotations and sequences", "Task",
              Bounds{.low = 1, .high = 1e6});
  options.add("seed", o.seed, "random seed", "Task");
  options.add("out", o.out, "file for the table, tab-separated", "Run");
  options.add("picture", o.picture,
              "copying: file for the picture of the table, SVG; a PNG and a PDF are written beside it", "Run");
  add_device(options, o.device);
  options.choice("dtype", o.dtype, {"f32", "f64"}, "of weights and states", "Run");
  options.add("threads", o.threads, "of the CPU", "Run", Bounds{.low = 1, .high = 1024});
  options.flag("dry-run", o.dry_run, "print the number of trials and stop", "Run");
  options.presets("mechanism");
  options.parse(argc, argv);
  if (!o.picture.empty() && o.solution != "copying")
    throw Usage("--picture: only the table of --solution copying has one");
  if (o.cell != "lt_rnn" && o.solution != "adding")
    throw Usage(fmt::format("--cell {}: only --solution adding has one", o.cell));
  if (std::filesystem::path(o.picture).extension() == ".png")
    throw Usage(
        fmt::format("--picture {}: the name of an SVG file is expected; the PNG is written beside it", o.picture));
  if (o.dry_run) {
    const std::size_t fields =
        numbers("lengths", o.lengths).size() * (o.solution == "copying" ? numbers("symbols", o.symbols).size() : 1);
    print_out("{} by hand: {} settings, {} draws of each\n", o.solution, fields, o.draws);
    return 0;
  }
  Backend& device = use_device(o.device);
  device.set_threads(static_cast<int>(o.threads));
  const std::string tsv = o.solution == "copying" ? copying_table(o, device) : adding_table(o, device);
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
