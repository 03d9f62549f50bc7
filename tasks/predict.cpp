// The answers of a trained model to new data: a run folder and a table in, a row of answers for each row out; from a
// file, or row by row from a stream, with the states kept between the rows.
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <span>

#include "backends/cpu/threads/cores.h"
#include "backends/cpu/threads/denormals.h"
#include "tasks/app/interrupt.h"
#include "tasks/app/load_table.h"
#include "tasks/app/output_file.h"
#include "tasks/app/run.h"
#include "tasks/data/csv.h"
#include "tasks/data/data_error.h"
#include "tasks/data/sequences.h"
#include "tasks/predict/answers.h"
#include "tasks/predict/answers_file.h"
#include "tasks/predict/scores.h"

namespace reel {
namespace {

struct PredictOptions {
  std::vector<std::string> runs;
  std::string input, test, output, at = "auto", states, states_out;
  bool stream = false, carry = false, quiet = false;
};

/// The options that name files of states, with their values.
std::array<std::pair<const char*, std::string>, 2> files_of_states(const PredictOptions& o) {
  return {{{"states", o.states}, {"states-out", o.states_out}}};
}

/// How long rows take, in buckets that are 2 % apart, so that a stream may have any number of them.
class Latencies {
 public:
  template <class F>
  auto of(const F& work) {
    const auto start = std::chrono::steady_clock::now();
    auto result = work();
    const double us = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
    ++buckets_[static_cast<std::size_t>(std::clamp(50 * std::log(us / least), 0.0, 1.0 * buckets - 1))];
    ++count_;
    return result;
  }
  std::int64_t count() const { return count_; }
  /// "1000 rows, 4.1 us (p50), 5.0 us (p99) each".
  std::string text() const {
    if (count_ == 0) return "no rows";
    return fmt::format("{} rows, {:.2g} us (p50), {:.2g} us (p99) each", count_, percentile(0.5), percentile(0.99));
  }

 private:
  double percentile(double share) const {
    double seen = 0;
    std::size_t b = 0;
    while (b + 1 < buckets_.size() && (seen += static_cast<double>(buckets_[b])) < share * static_cast<double>(count_))
      ++b;
    return least * std::exp((static_cast<double>(b) + 0.5) / 50);
  }

  static constexpr double least = 0.05;  // microseconds; the last bucket is that of 20 s
  static constexpr std::size_t buckets = 1000;
  std::array<std::int64_t, buckets> buckets_{};
  std::int64_t count_ = 0;
};

/// Names of the columns that say which row an answer is for. The first is ours, so it gives way to one of that name.
std::vector<std::string> keys_of(const TableSpec& spec, bool lines) {
  std::vector<std::string> keys{lines ? "line" : "row"}, others = spec.target_names();
  for (const std::string& name : {spec.group, spec.time})
    if (!name.empty()) keys.push_back(name);
  others.insert(others.end(), keys.begin() + 1, keys.end());
  while (std::find(others.begin(), others.end(), keys[0]) != others.end()) keys[0] += '_';
  return keys;
}

/// The answers to the rows of a table, by row: empty where there is none.
std::vector<Answer> answers_to(const Table& table, const PredictOptions& o, Answers& answers, bool each,
                               Scores& scores) {
  const TableSpec& spec = answers.spec();
  std::vector<const double*> columns;
  for (const std::vector<double>* column : table.numbers(answers.inputs(o.input, table.names())))
    columns.push_back(column->data());
  // beside its numbers, each row is two short vectors
  const double bytes = 120 + 8.0 * static_cast<double>(table.columns.size() + columns.size()) +
                       8.0 * static_cast<double>(spec.outputs());
  backend().require_memory("predict", fmt::format("answers to {} rows", table.rows),
                           bytes * static_cast<double>(table.rows), "fewer rows, or --stream");
  std::vector<Answer> of_row(static_cast<std::size_t>(table.rows));
  const Sequences sequences = sequences_of(table, spec.group, spec.time);
  for (const auto& [name, path] : files_of_states(o))
    if (!path.empty() && sequences.parts.size() != 1)
      throw Usage(
          fmt::format("--{}: a file has the states of one sequence, {} has {}", name, o.input, sequences.parts.size()));
  for (const Rows& part : sequences.parts) {
    const std::span rows =
        std::span(sequences.order).subspan(static_cast<std::size_t>(part.first), static_cast<std::size_t>(part.count));
    std::vector<std::vector<double>> raw;
    for (const std::int64_t row : rows) {
      raw.emplace_back();
      for (const double* column : columns) raw.back().push_back(column[row]);
    }
    const auto where = [&](std::size_t r) { return [&, r] { return table.where(rows[r]); }; };
    std::vector<Answer> all = answers.all(raw, where);
    const auto horizon = static_cast<std::size_t>(spec.horizon);
    if (!each && !o.test.empty() && horizon > 0 && rows.size() > horizon) {
      // What comes after the last row is not known: as in training, the last target is that of an earlier answer.
      const std::size_t r = rows.size() - 1 - horizon;
      if (all[r].empty()) raw.resize(r + 1), all[r] = answers.all(raw, where).back();
      scores.add(all[r], rows[r + horizon]);
    }
    for (std::size_t r = each || rows.empty() ? 0 : rows.size() - 1; r < rows.size(); ++r) {
      if (r + horizon < rows.size()) scores.add(all[r], rows[r + horizon]);
      of_row[static_cast<std::size_t>(rows[r])] = std::move(all[r]);
    }
  }
  const std::int64_t window = answers.windows() ? spec.window : 0;
  const auto shorter = std::count_if(sequences.parts.begin(), sequences.parts.end(),
                                     [&](const Rows& part) { return part.count < window; });
  if (shorter == std::ssize(sequences.parts))
    throw FileError(fmt::format("{}: no sequence has the {} rows of the model's window, so none has an answer{}",
                                o.input, window,
                                answers.predictor().row_by_row() ? ". Hint: --carry answers after each row" : ""));
  if (shorter > 0 && !o.quiet)
    print_err("{} of {} sequences are shorter than the model's window of {} rows and have no answer\n", shorter,
              sequences.parts.size(), window);
  return of_row;
}

/// Also when quiet, of --test: the scores are not what they seem.
void tell_unknown(const PredictOptions& o, const Scores& scores) {
  if (const std::string unknown = scores.unknown(); !unknown.empty())
    print_err("predict: {}: {}\n", one_line(o.input), one_line(unknown));
}

void predict_file(const PredictOptions& o, Answers& answers, bool each) {
  const TableSpec& spec = answers.spec();
  const Table table = load_table(o.input, {spec.group, spec.time, spec.classifies() ? spec.targets[0].name : ""});
  answers.require_keys(o.input, table.names());
  Scores scores(spec, table);
  if (!o.test.empty()) {
    scores.require_targets(o.test);
    answers_to(table, o, answers, each, scores);
    const std::string text = scores.text();
    if (text.empty()) throw FileError(o.test, "has no target for any answer of the model");
    tell_unknown(o, scores);
    return print_out("{}\n", one_line(text));
  }
  const std::vector<std::string> keys = keys_of(spec, !table.lines.empty());
  AnswersFile out(spec, o.output);
  const std::vector<Answer> of_row = answers_to(table, o, answers, each, scores);
  out.header(keys);
  for (std::int64_t row = 0; row < table.rows; ++row) {
    const Answer& answer = of_row[static_cast<std::size_t>(row)];
    if (answer.empty()) continue;
    std::vector<std::string> fields{
        fmt::format("{}", table.lines.empty() ? row : table.lines[static_cast<std::size_t>(row)])};
    for (std::size_t k = 1; k < keys.size(); ++k) fields.push_back(field_of(table.at(keys[k]), row));
    out.add(row, fields, answer);
  }
  out.close();
  const std::string text = scores.text();
  if (!o.quiet && !text.empty()) print_err("{} whose targets are in the file\n", one_line(text));
  if (!o.quiet) tell_unknown(o, scores);
}

/// Answers each row of a stream as soon as its line has come.
class RowStream {
 public:
  RowStream(const PredictOptions& o, Answers& answers)
      : path_(o.input == "-" ? "stdin" : o.input), answers_(answers), out_(answers.spec(), "") {}

  /// Reads to the end; false if a signal asked to stop before.
  bool run(int handle) {
    const Interrupt interrupt;
    CsvReader csv(path_, [&](std::int64_t line, const std::vector<std::string>& fields) { row(line, fields); });
    char bytes[1 << 16];
    while (!interrupt.requested()) {
      pollfd input{.fd = handle, .events = POLLIN, .revents = 0};  // read() would go on after a signal
      // A signal that comes between the question above and poll() is seen a second later.
      ssize_t n = poll(&input, 1, 1000);
      if (n == 0) continue;
      if (n > 0) n = read(handle, bytes, sizeof bytes);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) throw FileError(path_, fmt::format("cannot be read: {}", std::strerror(errno)));
      if (n == 0) {
        csv.finish();
        flush_out();
        return true;
      }
      csv.feed({bytes, static_cast<std::size_t>(n)});
      if (!flush_out()) return true;  // nobody reads the answers any more; run_program says so
    }
    return false;
  }
  Latencies& latencies() { return latencies_; }

 private:
  void row(std::int64_t line, const std::vector<std::string>& fields) {
    if (names_.empty()) return header(line, fields);
    if (fields.size() != names_.size())
      throw FileError(fmt::format("{}:{}: {} fields are expected, as in the header, got {}", path_, line, names_.size(),
                                  fields.size()));
    std::vector<double> raw;
    for (const std::size_t c : inputs_) raw.push_back(csv_number(path_, line, names_[c], fields[c]));
    std::vector<std::string> keys{fmt::format("{}", line)};
    for (const std::size_t c : keys_) keys.push_back(fields[c]);
    const TableSpec& spec = answers_.spec();
    const std::string group = spec.group.empty() ? "" : fields[keys_.front()];
    if (!spec.group.empty() && group.empty()) fail(line, spec.group, "the group of the row is missing");
    if (!spec.time.empty()) check_time(line, group, fields[keys_.back()]);
    const auto where = [&] { return fmt::format("{}:{}", path_, line); };
    out_.add(line, keys, latencies_.of([&] { return answers_.next(group, raw, where); }));
  }

  [[noreturn]] void fail(std::int64_t line, const std::string& column, const std::string& what) const {
    throw FileError(fmt::format("{}:{}: column \"{}\": {}", path_, line, column, what));
  }

  /// Refuses what sequences_of refuses of a file.
  void check_time(std::int64_t line, const std::string& group, const std::string& field) {
    if (unordered_) return;
    if (field.empty()) fail(line, answers_.spec().time, "the time is missing");
    const std::optional<double> now = parse_number(field);
    const std::string shape = now ? "number" : date_shape(field);
    if (time_shape_.empty()) time_shape_ = shape;
    unordered_ = shape.empty() || shape != time_shape_;
    if (unordered_) return;
    std::string& before = times_.try_emplace(group, field).first->second;
    const std::optional<double> then = parse_number(before);
    if (now ? *now < *then : field < before)
      fail(line, answers_.spec().time,
           fmt::format("rows in order of time are expected, got {} after {}", now ? fmt::format("{}", *now) : field,
                       now ? fmt::format("{}", *then) : before));
    before = field;
  }

  void header(std::int64_t line, const std::vector<std::string>& names) {
    check_header(path_, line, names);
    names_ = names;
    answers_.require_keys(path_, names);
    inputs_ = find_columns(path_, names, answers_.inputs(path_, names));
    const std::vector<std::string> keys = keys_of(answers_.spec(), true);
    keys_ = find_columns(path_, names, {keys.begin() + 1, keys.end()});
    out_.header(keys);
  }

  std::string path_;
  Answers& answers_;
  AnswersFile out_;
  Latencies latencies_;
  std::vector<std::string> names_;
  std::vector<std::size_t> inputs_, keys_;
  std::map<std::string, std::string> times_;  // of the last row of each group
  std::string time_shape_;                    // of all times so far
  bool unordered_ = false;                    // a time was neither a number nor a date like the others
};

/// Throws Usage for options that are missing, empty, or do not go together; fills in what they leave open.
void settle(PredictOptions& o, const Options& options) {
  if (o.runs.size() != 1) throw Usage(fmt::format("the folder of one run is expected, got {}", o.runs.size()));
  for (const auto& [name, path] : {std::pair{"test", o.test}, {"states", o.states}, {"states-out", o.states_out}})
    if (options.typed(name) && path.empty()) throw Usage(fmt::format("--{}: the name of the file is empty", name));
  if (!o.test.empty()) {
    for (const auto& [name, given] : {std::pair{"input", !o.input.empty()},
                                      {"stream", o.stream},
                                      {"output", !o.output.empty()},
                                      {"states-out", !o.states_out.empty()}})
      if (given) throw Usage(fmt::format("--{}: --test reads its own file and writes the scores alone", name));
    o.input = o.test;
  }
  if (o.stream && o.input.empty()) o.input = "-";
  if (o.input.empty()) throw Usage("--input: a file is expected. Hint: --stream reads from stdin");
  if (o.input == "-" && !o.stream)
    throw Usage(o.test.empty() ? "--input -: a file is expected. Hint: --stream reads from stdin"
                               : "--test -: a file is expected");
  if (o.stream && !o.output.empty()) throw Usage("--output: --stream writes to stdout");
  if (o.stream && o.at == "last") throw Usage("--at last: --stream answers at each row");
}

/// Throws Usage for options that do not go with the model.
void check_model(const PredictOptions& o, const Answers& answers) {
  const bool by_row = answers.predictor().row_by_row(), whole = !by_row && !answers.windows();
  constexpr const char* reason = "this model reads whole sequences: it has no states, or reads them from the end, too";
  if (o.stream && whole) throw Usage(fmt::format("--stream: {}", reason));
  if (o.at == "each" && whole && !answers.spec().each) throw Usage(fmt::format("--at each: {}", reason));
  for (const auto& [name, path] : files_of_states(o)) {
    if (path.empty()) continue;
    if (!by_row || answers.windows())
      throw Usage(
          fmt::format("--{}: this model keeps no states from row to row{}", name, by_row ? ". Hint: --carry" : ""));
    if (!answers.spec().group.empty())
      throw Usage(
          fmt::format("--{}: a file has the states of one sequence, and this model reads several: those of the "
                      "column {}",
                      name, answers.spec().group));
  }
}

int predict(int argc, const char* const* argv) {
  PredictOptions o;
  Options options("predict",
                  "Makes predictions for new data with a trained model. RUN is a run folder; FILE has the columns that "
                  "the model was trained on.\n\n"
                  "  predict runs/mine --input new.csv                    one row of predictions per sequence\n"
                  "  predict runs/mine --input new.npz --output y.npy     arrays instead of CSV\n"
                  "  predict runs/mine --test other.csv                   scores of the predictions\n"
                  "  tail -f log.csv | predict runs/mine --stream         row by row, as rows arrive");
  options.arguments("RUN", o.runs);
  options.add("input", o.input, "FILE.csv, .npy, .npz or .safetensors; with --stream: CSV, or - for stdin");
  options.add("test", o.test, "instead of --input: a file that also has the targets; print only the scores");
  options.add("output", o.output, "FILE.csv, .npy or .safetensors; empty: CSV on stdout");
  options.flag("stream", o.stream, "predict for each row as it arrives, keeping the states between rows");
  options.choice("at", o.at, {"auto", "each", "last"},
                 "predict at each row of a sequence or at the last row; auto: as in training");
  options.flag("carry", o.carry,
               "for a model trained on windows: keep its states between rows instead of reading each window again");
  options.add("states", o.states, "start from the states in this file, written by --states-out");
  options.add("states-out", o.states_out, "save the states after the last row to this file");
  options.flag("quiet", o.quiet, "no messages on stderr");
  options.parse(argc, argv);
  settle(o, options);
  require_output_file("output", o.output, {{"input", o.input}, {"states", o.states}, {"config", options.config()}});
  require_output_file("states-out", o.states_out,
                      {{"input", o.input}, {"output", o.output}, {"config", options.config()}});
  flush_denormals(true);  // as in training

  Answers answers(o.runs[0], o.carry);
  const bool by_row = answers.predictor().row_by_row();
  backend().set_threads(by_row ? 1 : available_cores());  // a row is too little to share
  check_model(o, answers);
  if (!o.states.empty()) answers.load_states(o.states);
  if (!o.quiet) print_err("parameters of {}\n", one_line(answers.predictor().weights()));
  if (o.carry && !o.quiet && (answers.spec().each || answers.spec().window == 0))
    print_err("note: --carry has no effect: it is for models of table --window with one answer for each window\n");
  bool interrupted = false;
  if (o.stream) {
    const FileHandle file(o.input == "-" ? dup(STDIN_FILENO) : open(o.input.c_str(), O_RDONLY | O_CLOEXEC), o.input,
                          "read");
    RowStream stream(o, answers);
    try {
      interrupted = !stream.run(file.get());
    } catch (const FileError&) {  // a bad row: the next call may go on behind it
      if (!o.states_out.empty() && stream.latencies().count() > 0) answers.save_states(o.states_out);
      throw;
    }
    if (!o.quiet) print_err("{}\n", stream.latencies().text());
  } else {
    // a model of windows answers after each row, also with --carry, if it has states to carry
    const bool each = answers.spec().each || answers.windows() || (answers.spec().window > 0 && by_row);
    predict_file(o, answers, o.at == "auto" ? each : o.at == "each");
  }
  if (!o.states_out.empty()) answers.save_states(o.states_out);
  return interrupted ? Interrupt::exit_code : 0;
}

}  // namespace
}  // namespace reel

int main(int argc, char** argv) {
  return reel::run_program("predict", [&] { return reel::predict(argc, argv); });
}
