// Handwritten digits pixel by pixel: 784 steps of one value, with the digit as the answer at the end. Variants permute
// the pixels in a fixed random order, put the image into a large empty frame, or use random labels, which can only be
// memorised.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "tasks/app/heat_map.h"
#include "tasks/app/run.h"
#include "tasks/data/data_error.h"
#include "tasks/data/idx.h"
#include "tasks/io/files.h"
#include "tasks/training/device.h"

namespace reel {
namespace {

struct MnistOptions {
  bool permuted = false, wrap = false;
  std::string permutation = "srnn", image = "full", scaling = "normal", read_out = "last", split = "srnn",
              labels = "true";
};

constexpr std::int64_t side = 28, classes = 10;
constexpr std::int32_t greys = 256;
constexpr unsigned nru_seed = 50;

/// Images and digits of the training file, followed by those of the test file.
struct Digits {
  std::vector<std::uint8_t> pixels, labels;
  std::int64_t train = 0, test = 0;
};

/// The name with .gz, unless only the unpacked file is there.
std::string packed_or_not(const std::string& data, const std::string& name) {
  const std::filesystem::path folder = std::filesystem::path(data) / "mnist";
  std::error_code error;
  const bool unpacked =
      !std::filesystem::exists(folder / (name + ".gz"), error) && std::filesystem::exists(folder / name, error);
  return unpacked ? name : name + ".gz";
}

Digits read_digits(const std::string& data) {
  Digits all;
  for (const std::string part : {"train", "t10k"}) {
    const std::string pictures = packed_or_not(data, part + "-images-idx3-ubyte"),
                      names = packed_or_not(data, part + "-labels-idx1-ubyte");
    const Idx x = read_idx("mnist", data_file(data, "mnist", pictures), 3),
              y = read_idx("mnist", data_file(data, "mnist", names), 1);
    if (x.shape[1] != side || x.shape[2] != side)
      throw DataError("mnist", pictures, fmt::format("has pictures of {} x {}, not 28 x 28", x.shape[1], x.shape[2]));
    if (x.shape[0] != y.shape[0])
      throw DataError("mnist", names, fmt::format("has {} labels for {} pictures", y.shape[0], x.shape[0]));
    const auto wrong = std::find_if(y.values.begin(), y.values.end(), [](int label) { return label >= classes; });
    if (wrong != y.values.end())
      throw DataError("mnist", names, fmt::format("label {} is {}, not a digit", wrong - y.values.begin(), *wrong));
    (part == "train" ? all.train : all.test) = x.shape[0];
    all.pixels.insert(all.pixels.end(), x.values.begin(), x.values.end());
    all.labels.insert(all.labels.end(), y.values.begin(), y.values.end());
  }
  if (all.train < 12 || all.test < 1)
    throw DataError("mnist", "train-images-idx3-ubyte.gz", "has too few pictures to split");
  return all;
}

/// The input value of a pixel.
float scaled(const MnistOptions& o, int pixel) {
  const double x = pixel / 255.0, normal = (x - 0.1307) / 0.3081;
  // Like the SRNN code, converts the normalised image back to 8 bits, where values outside 0..255 wrap around.
  if (o.wrap) return static_cast<float>((static_cast<int>(normal * 255) & 255) / 255.0);
  return static_cast<float>(o.scaling == "normal" ? normal : x);
}

class Mnist final : public Task {
 public:
  Mnist(const MnistOptions& o, const Setup& setup) : o_(o), digits_(read_digits(setup.data)) {
    for (int pixel = 0; pixel < greys; ++pixel) fed_.push_back(scaled(o, pixel));
    fed_.push_back(0);
    const std::int64_t width = o.image == "big" ? 2 * side : o.image == "crop16" ? 16 : o.image == "crop8" ? 8 : side;
    places_ = places(width);
    if (o.permuted) {
      std::mt19937 generator(o.permutation == "srnn" ? 1234 : o.permutation == "nru" ? nru_seed : 92916);
      if (o.permutation == "nru") numpy_permutation(60000, generator);  // that code draws its split first
      const std::vector<std::int32_t> before = places_;
      const auto order = numpy_permutation(width * width, generator).values<std::int32_t>();
      for (std::size_t t = 0; t < order.size(); ++t) places_[t] = before[static_cast<std::size_t>(order[t])];
    }
    choose(setup);
  }

  std::string name() const override { return "mnist"; }
  std::string title() const override {
    return fmt::format("{}MNIST, {} steps{}", o_.permuted ? "permuted " : "", length(),
                       o_.labels == "random" ? ", random labels" : "");
  }
  /// A pixel has one of 256 greys, so a cell's function of the input runs on these alone (delay_gathers).
  ModelShape shape() const override {
    return {.inputs = 1,
            .outputs = classes,
            .every_step = false,
            .levels = Tensor::from<float>(fed_, {std::ssize(fed_), 1})};
  }
  double baseline() const override { return std::log(static_cast<double>(classes)); }
  Parts parts() const override { return parts_; }

  Batch batch(std::uint64_t, const std::vector<std::uint64_t>& streams) const override {
    const auto B = streams.size();
    const std::int64_t T = length();
    std::vector<std::int32_t> x(static_cast<std::size_t>(T) * B, greys);  // [T, B]
    std::vector<std::int32_t> y(B);
    for (std::size_t b = 0; b < B; ++b) {
      const auto example = static_cast<std::size_t>(order_.at(streams[b]));
      const std::uint8_t* picture = &digits_.pixels[example * side * side];
      for (std::size_t t = 0; t < places_.size(); ++t) {
        const std::int32_t p = places_[t];
        x[t * B + b] = p >= 0 ? picture[p] : o_.wrap ? greys : 0;
      }
      y[b] = digits_.labels[example];
    }
    const auto rows = static_cast<std::int64_t>(B);
    return {Tensor::from<std::int32_t>(x, {T, rows}), Tensor::from<std::int32_t>(y, {rows})};
  }

  bool trains_on_mean() const override { return true; }
  Tensor loss(const Tensor& outputs, const Batch& batch) const override { return cross_entropy(outputs, batch.y); }
  double accuracy(const Tensor& outputs, const Batch& batch) const override {
    return mean(cast(equal(argmax(outputs), batch.y), DType::f64)).item();
  }

 private:
  std::int64_t length() const { return std::ssize(places_) + (o_.read_out == "extra" ? 1 : 0); }

  /// The pixel of each step of a centred image of this width, row by row; -1 in the frame around the original image.
  static std::vector<std::int32_t> places(std::int64_t width) {
    std::vector<std::int32_t> out;
    const std::int64_t off = (side - width) / 2;
    for (std::int64_t i = 0; i < width * width; ++i) {
      const std::int64_t row = i / width + off, column = i % width + off;
      const bool inside = row >= 0 && row < side && column >= 0 && column < side;
      out.push_back(inside ? static_cast<std::int32_t>(row * side + column) : -1);
    }
    return out;
  }

  /// Assigns an image to each stream.
  void choose(const Setup& setup) {
    const std::int64_t n = digits_.train;
    std::vector<std::int32_t> train(static_cast<std::size_t>(n)), valid, test(static_cast<std::size_t>(digits_.test));
    std::iota(train.begin(), train.end(), 0);
    std::iota(test.begin(), test.end(), static_cast<std::int32_t>(n));
    if (o_.labels == "random") {  // to be memorised, so it validates on the training images
      constexpr std::uint64_t stream = std::uint64_t{3} << 60;  // also the first of initial values; runs depend on it
      const auto from = permutation(n, setup.seed, stream).values<std::int32_t>();
      const std::vector<std::uint8_t> labels = digits_.labels;
      for (std::size_t i = 0; i < train.size(); ++i) digits_.labels[i] = labels[static_cast<std::size_t>(from[i])];
      if (const std::int64_t few = setup.examples.examples; few > 0 && few < n)
        train.resize(static_cast<std::size_t>(few));
      valid = train;
      test.clear();
    } else if (o_.split == "none") {
      valid = test;
    } else {
      if (o_.split == "nru") {
        std::mt19937 generator(nru_seed);
        train = numpy_permutation(n, generator).values<std::int32_t>();
      }
      if (o_.split == "urnn") std::rotate(train.begin(), train.begin() + n / 12, train.end());
      const std::int64_t kept = o_.split == "urnn" ? n - n / 12 : n - n / 6;
      valid.assign(train.begin() + kept, train.end());
      train.resize(static_cast<std::size_t>(kept));
    }
    parts_ = {std::ssize(train), std::ssize(valid), std::ssize(test)};
    for (const auto* part : {&train, &valid, &test}) order_.insert(order_.end(), part->begin(), part->end());
  }

  MnistOptions o_;
  Digits digits_;
  std::vector<float> fed_;            // the input value of each grey, and 0, which some steps feed instead
  std::vector<std::int32_t> places_;  // the pixel of each step; -1: none
  std::vector<std::int32_t> order_;   // the image of each stream
  Parts parts_;
};

/// How often each digit (row) was taken for each digit (column), over the test set, or the validation set if there is
/// no test set: confusion.tsv and confusion.svg.
void draw_confusion(const Ended& e) {
  const Parts parts = e.task.parts();
  const bool test = parts.test > 0;
  const std::int64_t first = parts.train + (test ? parts.valid : 0), last = first + (test ? parts.test : parts.valid);
  std::vector<double> counts(classes * classes, 0), totals(classes, 0);
  for (std::int64_t at = first; at < last; at += 100) {
    std::vector<std::uint64_t> streams(static_cast<std::size_t>(std::min<std::int64_t>(100, last - at)));
    std::iota(streams.begin(), streams.end(), static_cast<std::uint64_t>(at));
    const Batch batch = e.task.batch(e.seed, streams);
    const auto said = argmax(e.model(on(batch.x, e.model.device()))).values<std::int32_t>(),
               wanted = batch.y.values<std::int32_t>();
    for (std::size_t b = 0; b < said.size(); ++b) {
      ++counts[static_cast<std::size_t>(wanted[b] * classes + said[b])];
      ++totals[static_cast<std::size_t>(wanted[b])];
    }
  }
  double right = 0, all = 0;
  for (int c = 0; c < classes; ++c) {
    right += counts[static_cast<std::size_t>(c * classes + c)];
    all += totals[static_cast<std::size_t>(c)];
  }
  HeatMap map{fmt::format("{}: confusion matrix, {} accuracy {:.1f} %", e.task.title(), test ? "test" : "validation",
                          100 * right / all),
              "predicted digit",
              "digit",
              classes,
              classes,
              {}};
  map.low = 0;
  map.high = 1;
  map.value_label = "share of the digit's images (their number in the field)";
  std::string tsv = "digit\ttaken_for\tcount\n";
  for (std::size_t i = 0; i < counts.size(); ++i) {
    map.values.push_back(totals[i / classes] > 0 ? counts[i] / totals[i / classes] : 0);
    map.texts.push_back(fmt::format("{}", counts[i]));
    tsv += fmt::format("{}\t{}\t{}\n", i / classes, i % classes, counts[i]);
  }
  write_atomically(e.folder.file("confusion.tsv"), tsv);
  const std::string svg = e.folder.file("confusion.svg");
  print_picture(svg, draw_heat_map(svg, map, e.style));
}

}  // namespace
}  // namespace reel

int main(int argc, char** argv) {
  using namespace reel;
  MnistOptions o;
  const auto add = [&](Options& options) {
    options.flag("permuted", o.permuted, "pixels in a fixed random order instead of row by row", "Task");
    options.choice(
        "permutation", o.permutation, {"srnn", "nru", "urnn"},
        "NumPy seed of the permutation: srnn: 1234; nru: 50, after the split; urnn (also scoRNN, expRNN): 92916",
        "Task");
    options.choice("image", o.image, {"full", "big", "crop16", "crop8"},
                   "full: 28 x 28 pixels; big: padded to 56 x 56; crop16, crop8: centre crop", "Task");
    options.choice("scaling", o.scaling, {"normal", "unit"}, "normal: (x / 255 - 0.1307) / 0.3081; unit: x / 255",
                   "Task");
    options.flag("wrap", o.wrap,
                 "as in the SRNN code for big and crop: normalised pixels are converted to 8 bits again, so that they "
                 "wrap around, and the padding is 0",
                 "Task");
    options.choice("read-out", o.read_out, {"last", "extra"},
                   "read out at the last pixel, or, as in the NRU code, at an extra step of zero after it", "Task");
    options.choice("split", o.split, {"srnn", "nru", "urnn", "none"},
                   "validation set, taken from the training file: srnn: last sixth; nru: random sixth; urnn: first "
                   "twelfth; none: validate on the test file",
                   "Task");
    options.choice("labels", o.labels, {"true", "random"},
                   "random: shuffle the training labels; accuracy is that on the training set (--examples N)", "Task");
  };
  return run_task(argc, argv,
                  {.name = "mnist",
                   .description = "Sequential and permuted MNIST: handwritten digits, one pixel per time step.",
                   .batch = 100,
                   .steps = 30000,
                   .source = Source::files,
                   .options = add,
                   .task = [&](const Setup& setup) { return std::make_unique<Mnist>(o, setup); },
                   .pictures = {{"confusion", "the confusion matrix", draw_confusion}},
                   .idle = [&]() -> std::vector<Idle> {
                     return {{"permutation", !o.permuted, "--permuted is not given"},
                             {"scaling", o.wrap && o.scaling == "unit", "--wrap converts normalised pixels"},
                             {"split", o.labels == "random", "--labels random validates on the training images"}};
                   }});
}
