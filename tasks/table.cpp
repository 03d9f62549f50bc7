// Your own data: a CSV file or arrays of NumPy as sequences, for classification, regression and forecasting.
#include <fmt/ranges.h>

#include <algorithm>

#include "tasks/app/load_table.h"
#include "tasks/app/run.h"
#include "tasks/data/csv.h"
#include "tasks/data/table_data.h"
#include "tasks/data/table_of_run.h"
#include "tasks/training/trained_model.h"

namespace reel {
namespace {

constexpr const char* description =
    R"(Trains on your own data: a CSV file with a header line and rows in order of time, or arrays.
See docs/own-data.md.

Classify three motions from sensor data, one file with all recordings, identified by the column "recording":
  table --data motions.csv --group recording --target motion --cell gru --hidden 64 --epochs 30
Predict the power of a plant at each minute from its other measurements:
  table --data plant.csv --target power --at each --window 100 --cell lstm --epochs 20
Forecast the temperature 24 rows ahead from the last 72 rows of all columns:
  table --data weather.csv --target temp --horizon 24 --window 72 --cell lstm --epochs 20)";

class TableTask final : public Task {
 public:
  TableTask(const TableOptions& o, const Setup& setup) {
    if (setup.data.empty()) throw Usage("--data FILE is needed: .csv, .npy, .npz or .safetensors");
    path_ = setup.data;
    const Table table = load_table(path_, {o.group, o.time});
    const auto rows = static_cast<double>(table.rows), columns = static_cast<double>(table.columns.size());
    backend("cpu").require_memory("table", fmt::format("sequences of {} rows", table.rows), rows * (20 * columns + 76),
                                  "fewer rows");  // beside numbers: order, windows, whether a row is read
    data_ = table_data(table, o, setup.seed);
    require_batch("table", data_.longest(), setup.examples.batch, static_cast<double>(sizeof(float) * width()));
    if (!setup.init_from.empty()) compare(setup.init_from);
    note_missing();
    for (const std::vector<Rows>& part : data_.parts) windows_.insert(windows_.end(), part.begin(), part.end());
  }

  const TableSpec& spec() const { return data_.spec; }
  std::string split_csv() const { return data_.split_csv(); }
  std::string name() const override { return "table"; }
  std::string title() const override {
    return fmt::format("{}, {}", std::filesystem::path(path_).filename().string(),
                       fmt::join(spec().target_names(), ", "));
  }
  ModelShape shape() const override {
    return {.inputs = static_cast<std::int64_t>(width()), .outputs = spec().outputs(), .every_step = spec().each};
  }
  bool forecasts() const override { return spec().each && spec().horizon > 0; }
  double baseline() const override { return data_.baseline; }
  Parts parts() const override {
    return {std::ssize(data_.parts[0]), std::ssize(data_.parts[1]), std::ssize(data_.parts[2])};
  }

  /// x [T, B, inputs]. y is i32 [B] for classes and [B, targets] for values, and has a leading axis T if there is an
  /// answer at each step. `weight` is like y: 0 for padding and missing targets.
  Batch batch(std::uint64_t, const std::vector<std::uint64_t>& streams) const override {
    const std::size_t B = streams.size(), F = width(), K = spec().targets.size();
    std::vector<std::int32_t> lengths;
    for (const std::uint64_t s : streams) lengths.push_back(static_cast<std::int32_t>(windows_.at(s).count));
    const auto T = static_cast<std::size_t>(*std::max_element(lengths.begin(), lengths.end()));
    const std::size_t answers = spec().each ? T : 1;
    std::vector<float> x(T * B * F, 0), y(answers * B * K, 0), weight(answers * B * K, 0);
    for (std::size_t b = 0; b < B; ++b) {
      const Rows& window = windows_[streams[b]];
      const auto first = static_cast<std::size_t>(window.first), steps = static_cast<std::size_t>(window.count);
      for (std::size_t t = 0; t < steps; ++t) std::copy_n(&data_.x[(first + t) * F], F, &x[(t * B + b) * F]);
      for (std::size_t a = 0; a < (spec().each ? steps : 1); ++a) {
        const std::size_t row = first + (spec().each ? a : steps - 1) + static_cast<std::size_t>(spec().horizon);
        for (std::size_t k = 0; k < K; ++k) {
          const double target = data_.y[row * K + k];
          if (std::isnan(target)) continue;
          y[(a * B + b) * K + k] = static_cast<float>(target);
          weight[(a * B + b) * K + k] = 1;
        }
      }
    }
    const auto steps = static_cast<std::int64_t>(T), rows = static_cast<std::int64_t>(B);
    Batch out{.x = Tensor::from<float>(x, {steps, rows, static_cast<std::int64_t>(F)}), .y = {}};
    std::vector<std::int64_t> extents;
    if (spec().each) extents.push_back(steps);
    extents.push_back(rows);
    if (!spec().classifies()) extents.push_back(static_cast<std::int64_t>(K));
    const Shape shape{std::span<const std::int64_t>(extents)};
    out.y = spec().classifies() ? Tensor::from<std::int32_t>(std::vector<std::int32_t>(y.begin(), y.end()), shape)
                                : Tensor::from<float>(y, shape);
    if (data_.gaps || (data_.ragged && spec().each)) out.weight = Tensor::from<float>(weight, shape);
    if (data_.ragged) out.lengths = Tensor::from<std::int32_t>(lengths, {rows});
    return out;
  }

  bool trains_on_mean() const override { return true; }
  /// The cross entropy of classes; of values the mean squared error, of standardised ones.
  Tensor loss(const Tensor& outputs, const Batch& batch) const override {
    const LossOptions options{.weight = batch.weight.defined() ? cast(batch.weight, outputs.dtype()) : Tensor()};
    return spec().classifies() ? cross_entropy(outputs, batch.y, options)
                               : mse(outputs, cast(batch.y, outputs.dtype()), options);
  }

  double accuracy(const Tensor& outputs, const Batch& batch) const override {
    if (!spec().classifies()) return Task::accuracy(outputs, batch);
    const Tensor right = cast(equal(argmax(outputs), batch.y), DType::f64);
    if (!batch.weight.defined()) return mean(right).item();
    const Tensor weight = cast(batch.weight, DType::f64);
    return (sum(right * weight) / sum(weight)).item();
  }

  /// Root mean squared and mean absolute error of each target, in its own units.
  std::vector<Score> scores(const Tensor& outputs, const Batch& batch) const override {
    std::vector<Score> all;
    if (spec().classifies()) return all;
    const std::vector<double> said = cast(outputs, DType::f64).values<double>(),
                              wanted = cast(batch.y, DType::f64).values<double>();
    const std::vector<float> weight =
        batch.weight.defined() ? batch.weight.values<float>() : std::vector<float>(said.size(), 1);
    const std::size_t K = spec().targets.size();
    for (std::size_t k = 0; k < K; ++k) {
      const ScaledColumn& target = spec().targets[k];
      const std::string of = K == 1 ? "" : " of " + target.name;
      const std::string none = "no row of the test set has a target";
      Score rmse{.name = "rmse" + of, .root = true, .none = none}, mae{.name = "mae" + of, .none = none};
      for (std::size_t i = k; i < said.size(); i += K) {
        if (weight[i] == 0) continue;
        const double error = (said[i] - wanted[i]) * target.deviation;
        rmse.total += error * error, mae.total += std::abs(error);
        ++rmse.count, ++mae.count;
      }
      all.push_back(rmse), all.push_back(mae);
    }
    return all;
  }

  /// What parameters of --init-from do not know, and classes that may be none.
  const std::vector<std::string>& notes() const { return notes_; }
  /// What is learnt from what, in a line.
  std::string about() const {
    const auto listed = [](std::vector<std::string> names) {
      const std::size_t n = names.size();
      if (n > 8) names.resize(8);
      return fmt::format("{}{}", fmt::join(names, ", "), n > 8 ? ", ..." : "");
    };
    const auto [least, most] = std::minmax_element(windows_.begin(), windows_.end(),
                                                   [](const Rows& a, const Rows& b) { return a.count < b.count; });
    return fmt::format(
        "{}: {}{} {}{} from {} input{} ({}){}; {} training, {} validation and {} test sequences of {}{} rows{}{}",
        path_, spec().classifies() ? fmt::format("{} classes of ", spec().classes.size()) : "",
        listed(spec().target_names()), spec().each ? "at each step" : "at the last step",
        spec().horizon > 0 ? fmt::format(", {} row{} ahead,", spec().horizon, spec().horizon == 1 ? "" : "s") : "",
        spec().inputs.size(), spec().inputs.size() == 1 ? "" : "s", listed(spec().input_names()),
        data_.left_out.empty() ? "" : fmt::format(", without {}: text", listed(data_.left_out)), data_.parts[0].size(),
        data_.parts[1].size(), data_.parts[2].size(),
        least->count == most->count ? "" : fmt::format("{} to ", least->count), most->count,
        data_.too_short > 0
            ? fmt::format("; {} sequence{} left out as too short", data_.too_short, data_.too_short == 1 ? "" : "s")
            : "",
        data_.unordered ? fmt::format("; the order of {} is not checked: it has neither numbers nor dates of one form, "
                                      "such as 2024-05-31 12:00",
                                      spec().time)
                        : "");
  }

 private:
  /// Notes where the columns differ from those of the run that the first parameters are from.
  void compare(const std::string& from) {
    const auto before = table_of_run(run_of_parameters(from), "");
    if (!before) return;
    const auto scaled = [](const TableSpec& s) {
      const auto moved = [](const ScaledColumn& c) { return c.mean != 0 || c.deviation != 1; };
      return std::any_of(s.inputs.begin(), s.inputs.end(), moved) ? "on" : "off";
    };
    if (const std::string was = scaled(*before), is = scaled(spec()); was != is)
      notes_.push_back(fmt::format(
          "--init-from {}: --standardize was {} and is {}; the parameters were trained with columns as they were", from,
          was, is));
    for (const std::string& change : changed_columns(*before, spec()))
      notes_.push_back(fmt::format("--init-from {}: {}; parameters go by place, not by name", from, change));
  }

  /// A note where classes have names that other programs write for missing values.
  void note_missing() {
    std::vector<std::string> names;
    for (const std::string& name : spec().classes)
      if (says_missing(name)) names.push_back('"' + name + '"');
    if (!names.empty())
      notes_.push_back(fmt::format("of the classes, {} look{} like a missing value, which is an empty field",
                                   fmt::join(names, ", "), names.size() == 1 ? "s" : ""));
  }

  std::size_t width() const { return spec().inputs.size(); }

  std::string path_;
  TableData data_;
  std::vector<Rows> windows_;  // of each stream
  std::vector<std::string> notes_;
};

/// Writes table.json and split.csv; a resumed run must have the data that it began with. One that was killed before its
/// checkpoint may have no such file yet.
std::string begin(const TableTask& task, const RunFolder& folder, bool resumed) {
  const std::string file = folder.file("table.json");
  std::error_code error;
  const auto holds = [&](const char* name) { return std::filesystem::exists(folder.file(name), error); };
  if (resumed && (holds("checkpoint.safetensors") || holds("table.json"))) {
    const TableSpec before = *table_of_run(folder.path(), "table");
    if (before.data_bytes != task.spec().data_bytes || before.data_crc32 != task.spec().data_crc32)
      throw FileError(folder.path() + ": the data have changed since the run began. Hint: start a new run.");
  } else {
    write_atomically(folder.file("split.csv"), task.split_csv());
    task.spec().save(file);
  }
  return task.about();
}

void add_options(Options& options, TableOptions& o, std::string& standardize) {
  const std::string group = "Task";
  const Bounds share{.low = 0, .high = 0.9}, rows{.low = 0, .high = most::time};
  options.add("inputs", o.inputs,
              "input columns, comma-separated; empty: all numeric columns except target, group and time", group);
  options.add("target", o.target, "column to predict, or several numeric columns, comma-separated; empty: y of arrays",
              group);
  options.choice("predict", o.predict, {"auto", "class", "value"},
                 "class: classification; value: regression; auto: class if the target is text, or integers of an array",
                 group);
  options.choice(
      "at", o.at, {"auto", "last", "each"},
      "predict at the last step of a sequence or at each step; auto: last, or each if y of arrays has all steps",
      group);
  options.add("group", o.group, "column that identifies sequences: rows with the same value are one sequence", group);
  options.add(
      "time", o.time,
      "column of times, not an input; numbers, and dates such as 2024-05-31, must not decrease within a sequence",
      group);
  options.add("window", o.window, "rows per training window; 0: whole sequences", group, rows);
  options.add("stride", o.stride, "rows between the starts of windows; 0: 1, or with --at each the window size", group,
              rows);
  options.add("horizon", o.horizon,
              "forecast N rows ahead; past targets are then inputs, too, unless --inputs names the columns", group,
              rows);
  options.choice("split", o.split, {"auto", "group", "row", "time"},
                 "training, validation and test split; group: whole sequences at random; row: windows at random; time: "
                 "the last rows of each sequence; auto: group if there are several sequences, else time",
                 group);
  options.add("valid-part", o.valid, "fraction for validation", group, Bounds{.low = 0.001, .high = 0.9});
  options.add("test-part", o.test, "fraction for the test", group, share);
  options.choice("standardize", standardize, {"on", "off"},
                 "scale inputs, and targets that are values, to mean 0 and standard deviation 1 of the training set",
                 group);
  options.choice("missing", o.missing, {"error", "previous", "zero"},
                 "how to fill missing inputs; unless it is error, rows without a target are allowed and not trained on",
                 group);
}

}  // namespace
}  // namespace reel

int main(int argc, char** argv) {
  using namespace reel;
  TableOptions o;
  std::string standardize = "on";
  return run_task(argc, argv,
                  {.name = "table",
                   .description = description,
                   .batch = 32,
                   .steps = 2000,
                   .source = Source::files,
                   .options = [&](Options& options) { add_options(options, o, standardize); },
                   .task =
                       [&](const Setup& setup) {
                         o.standardize = standardize == "on";
                         return std::make_unique<TableTask>(o, setup);
                       },
                   .data = "data file: .csv, .tsv or .txt with a header line; .npy, .npz or .safetensors",
                   .begun = [](const Task& task, const RunFolder& folder,
                               bool resumed) { return begin(dynamic_cast<const TableTask&>(task), folder, resumed); },
                   .begun_checks_data = true,
                   .notes = [](const Task& task) { return dynamic_cast<const TableTask&>(task).notes(); },
                   .idle = [&]() -> std::vector<Idle> {
                     return {{"stride", o.window == 0, "--window is 0"}};
                   }});
}
