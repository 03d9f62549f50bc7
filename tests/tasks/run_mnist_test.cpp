// mnist: the files and what is wrong with them, orders of pixels, frames and crops, splits, random labels, runs.
#define main mnist_main
#include "tasks/mnist.cpp"
#undef main

#include <zlib.h>
#include <sstream>

#include <nlohmann/json.hpp>

#include "tests/support/check.h"
#include "tests/support/child.h"
#include "tests/support/streams.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

namespace {

void write_gz(const std::string& path, const std::string& bytes) {
  gzFile file = gzopen(path.c_str(), "wb1");
  REQUIRE(gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size())) == static_cast<int>(bytes.size()));
  REQUIRE(gzclose(file) == Z_OK);
}

std::string idx(const std::vector<std::uint32_t>& shape, const std::string& values) {
  std::string bytes{0, 0, 8, static_cast<char>(shape.size())};
  for (const std::uint32_t n : shape)
    for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(n >> shift & 255);
  return bytes + values;
}

/// Picture i of a set: pixel p is (7 p + 13 i) mod 256.
std::string picture(int i) {
  std::string bytes;
  for (int p = 0; p < 784; ++p) bytes += static_cast<char>((7 * p + 13 * i) % 256);
  return bytes;
}

/// DATA/mnist with 24 training and 6 test pictures; the label of picture i is i mod 10.
struct Data {
  explicit Data(std::uint32_t train = 24) {
    std::filesystem::create_directory(dir / "mnist");
    for (const auto& [part, n, first] : {std::tuple{"train", train, 0U}, std::tuple{"t10k", 6U, train}}) {
      std::string pixels, labels;
      for (std::uint32_t i = 0; i < n; ++i) {
        pixels += picture(static_cast<int>(first + i));
        labels += static_cast<char>((first + i) % 10);
      }
      write_gz(images(part), idx({n, 28, 28}, pixels));
      write_gz(dir / fmt::format("mnist/{}-labels-idx1-ubyte.gz", part), idx({n}, labels));
    }
  }
  std::string images(const std::string& part) const { return dir / ("mnist/" + part + "-images-idx3-ubyte.gz"); }
  Mnist task(const MnistOptions& o, std::int64_t examples = 0) const {
    return Mnist(o, {.data = dir.path, .seed = 3, .examples = {.examples = examples}});
  }
  TempDir dir;
};

/// The numbers that example `stream` is fed as.
std::vector<float> numbers(const Task& task, std::uint64_t stream) {
  return embedding(task.batch(1, {stream}).x, task.shape().levels).values<float>();
}

/// The same as greys 0..255, -1 for what is no grey.
std::vector<int> greys_of(const Task& task, std::uint64_t stream) {
  std::vector<int> out;
  for (const float v : numbers(task, stream)) {
    const double grey = v * 255.0;
    out.push_back(std::abs(grey - std::round(grey)) < 1e-4 ? static_cast<int>(std::lround(grey)) : -1);
  }
  return out;
}

}  // namespace

TEST_CASE("mnist: pixels row by row, scaled; labels; the parts") {
  const Data data;
  MnistOptions o;
  o.scaling = "unit";
  const Mnist task = data.task(o);
  CHECK(task.parts().train == 20);
  CHECK(task.parts().valid == 4);
  CHECK(task.parts().test == 6);
  const Batch batch = task.batch(1, {0, 21, 29});
  CHECK(batch.x.shape() == Shape{784, 3});
  CHECK(batch.y.values<std::int32_t>() == std::vector<std::int32_t>{0, 1, 9});
  const auto x = greys_of(task, 21);
  for (int p = 0; p < 784; ++p) CHECK(x[static_cast<std::size_t>(p)] == (7 * p + 13 * 21) % 256);
  const auto normal = numbers(data.task({}), 0);
  CHECK(normal[0] == doctest::Approx(-0.1307 / 0.3081));
  CHECK(normal[3] == doctest::Approx((21 / 255.0 - 0.1307) / 0.3081));
  o.read_out = "extra";
  const auto extra = greys_of(data.task(o), 21);
  REQUIRE(extra.size() == 785);
  CHECK(extra.back() == 0);
  CHECK(std::equal(x.begin(), x.end(), extra.begin()));
}

TEST_CASE("mnist: a model gives for greys what it gives for their numbers, and so do its gradients") {
  const Data data;
  const Mnist task = data.task({});
  const Batch batch = task.batch(1, {0, 1, 2});
  for (const std::string cell : {"srnn", "lstm"}) {
    CAPTURE(cell);
    const Model model(task.shape(), {.cell = cell, .hidden = 6}, Init(3, DType::f64));
    const Tensor x = cast(embedding(batch.x, task.shape().levels), DType::f64);
    CHECK(x.shape() == Shape{784, 3, 1});
    const Tensor read = model.layers(batch.x).front().x;
    CHECK(read.dtype() == DType::f64);
    CHECK(difference(read, x) == 0);
    Tensors wrt;
    for (const Parameter& p : model.trained()) wrt.push_back(p.value);
    const auto run = [&](const Tensor& in) {
      const Tape tape;
      const Tensor out = model(in);
      Tensors all = grad({sum(out * out)}, wrt);
      all.push_back(out);
      return all;
    };
    const Tensors of_greys = run(batch.x), of_numbers = run(x);
    for (std::size_t i = 0; i < of_greys.size(); ++i) CHECK(difference(of_greys[i], of_numbers[i]) < 1e-12);
    Tensors states = model.initial(3), same = states;
    CHECK(difference(model.step(at(batch.x, 5), states), model.step(at(x, 5), same)) < 1e-14);
  }
}

TEST_CASE("mnist: the permutations of the published codes, by their first entries") {
  const Data data;
  struct Case {
    std::string whose, image;
    std::vector<int> first;
  };
  for (const Case& c : {Case{"srnn", "full", {529, 511, 328, 133, 532, 378, 156, 305}},
                        Case{"srnn", "big", {2624, 2222, 2991, 1935, 1616, 691, 1164, 593}},
                        Case{"nru", "full", {46, 466, 537, 44, 515, 589, 362, 765}},
                        Case{"urnn", "full", {319, 576, 323, 107, 355, 716, 197, 20}}}) {
    CAPTURE(c.whose);
    CAPTURE(c.image);
    MnistOptions o;
    o.scaling = "unit", o.image = c.image;
    const auto plain = greys_of(data.task(o), 5);
    o.permuted = true, o.permutation = c.whose;
    const auto moved = greys_of(data.task(o), 5);
    REQUIRE(moved.size() == plain.size());
    for (std::size_t t = 0; t < 8; ++t) CHECK(moved[t] == plain[static_cast<std::size_t>(c.first[t])]);
    auto a = plain, b = moved;
    std::sort(a.begin(), a.end());
    std::sort(b.begin(), b.end());
    CHECK(a == b);
  }
}

TEST_CASE("mnist: the frame of big pictures, crops, and the wrap of the SRNN code") {
  const Data data;
  MnistOptions o;
  o.scaling = "unit", o.image = "big";
  const auto plain = greys_of(data.task(o), 2);
  REQUIRE(plain.size() == 56 * 56);
  for (int i = 0; i < 56 * 56; ++i) {
    const int row = i / 56 - 14, column = i % 56 - 14;
    const bool inside = row >= 0 && row < 28 && column >= 0 && column < 28;
    CHECK(plain[static_cast<std::size_t>(i)] == (inside ? (7 * (row * 28 + column) + 26) % 256 : 0));
  }
  o.scaling = "normal";
  CHECK(numbers(data.task(o), 2)[0] == doctest::Approx(-0.1307 / 0.3081));  // as a black pixel
  o.wrap = true;
  // Reference section 6: black 148, grey 128 51, white 207, the frame 0.
  const auto wrapped = greys_of(data.task(o), 0);
  CHECK(wrapped[0] == 0);
  const auto fed = [&](int grey) {
    for (int p = 0; p < 784; ++p)
      if (7 * p % 256 == grey) return wrapped[static_cast<std::size_t>((p / 28 + 14) * 56 + p % 28 + 14)];
    return -2;
  };
  CHECK(fed(0) == 148);
  CHECK(fed(128) == 51);
  CHECK(fed(255) == 207);
  for (const auto& [image, width] : {std::pair{"crop16", 16}, std::pair{"crop8", 8}}) {
    MnistOptions c;
    c.scaling = "unit", c.image = image;
    const auto x = greys_of(data.task(c), 0);
    REQUIRE(std::ssize(x) == width * width);
    const int off = (28 - width) / 2;
    CHECK(x[0] == 7 * (off * 28 + off) % 256);
    CHECK(x.back() == 7 * ((27 - off) * 28 + 27 - off) % 256);
  }
}

TEST_CASE("mnist: splits; no picture is in two parts") {
  const Data data;
  struct Case {
    std::string split;
    std::int64_t train, valid;
  };
  for (const Case& c : {Case{"srnn", 20, 4}, Case{"nru", 20, 4}, Case{"urnn", 22, 2}, Case{"none", 24, 6}}) {
    CAPTURE(c.split);
    MnistOptions o;
    o.split = c.split, o.scaling = "unit";
    const Mnist task = data.task(o);
    CHECK(task.parts().train == c.train);
    CHECK(task.parts().valid == c.valid);
    CHECK(task.parts().test == 6);
    std::vector<int> firsts;  // the first pixel names the picture
    for (std::int64_t i = 0; i < 24; ++i) firsts.push_back(greys_of(task, static_cast<std::uint64_t>(i))[0]);
    if (c.split == "urnn") CHECK(firsts[22] == 0);
    if (c.split == "srnn") CHECK(firsts[23] == 13 * 23 % 256);
    if (c.split == "nru") CHECK(firsts[0] != 0);
    std::sort(firsts.begin(), firsts.end());
    CHECK(std::adjacent_find(firsts.begin(), firsts.end()) == firsts.end());
  }
}

TEST_CASE("mnist: random labels are the true ones in another order, and validation asks for what was learnt") {
  const Data data(600);
  MnistOptions o;
  o.labels = "random";
  const Mnist task = data.task(o, 100);
  CHECK(task.parts().train == 100);
  CHECK(task.parts().valid == 100);
  CHECK(task.parts().test == 0);
  const auto y = task.batch(1, streams(200)).y.values<std::int32_t>();
  int right = 0;
  for (std::size_t i = 0; i < 100; ++i) {
    CHECK(y[i] == y[i + 100]);
    right += y[i] == static_cast<int>(i % 10);
  }
  CHECK(right < 30);  // 10 by chance
  const auto all = data.task(o).batch(1, streams(600)).y.values<std::int32_t>();
  for (int digit = 0; digit < 10; ++digit) CHECK(std::count(all.begin(), all.end(), digit) == 60);
}

TEST_CASE("mnist: damaged files are named, with what is wrong") {
  const auto error = [](const auto& damage) {
    const Data data;
    damage(data);
    return error_of([&] { data.task({}); });
  };
  const std::string name = "[mnist] train-images-idx3-ubyte.gz: ";
  const std::string missing = error([](const Data& d) { std::filesystem::remove(d.images("train")); });
  CHECK(contains(missing, name + "not found in /tmp/"));
  CHECK(contains(missing, "See docs/data.md"));
  const auto with = [&](const std::string& bytes) {
    return error([&](const Data& d) { write_gz(d.images("train"), bytes); });
  };
  CHECK(contains(with(idx({24, 28, 28}, std::string(783, 'x'))),
                 name + "holds 783 elements, its header says 24 x 28 x 28"));
  CHECK(contains(with(idx({4294967295U, 4294967295U, 4294967295U}, "x")),
                 "its header says 4294967295 x 4294967295 x 4294967295, more than 2^30 elements"));
  CHECK(contains(with(idx({24}, std::string(24, 'x'))), name + "starts with 0x00000801, not the 0x00000803"));
  CHECK(contains(with(std::string("\0\0\x08", 3)), name + "has 3 bytes, its header alone 16"));
  CHECK(contains(with(""), name + "has 0 bytes"));
  CHECK(contains(with(idx({1, 784, 1}, picture(0))), "pictures of 784 x 1, not 28 x 28"));
  CHECK(
      contains(with(idx({1, 28, 28}, picture(0))), "[mnist] train-labels-idx1-ubyte.gz: has 24 labels for 1 pictures"));
  CHECK(contains(error([](const Data& d) {
                   const std::string bytes = read_file(d.images("train"));
                   write_atomically(d.images("train"), bytes.substr(0, bytes.size() / 2));
                 }),
                 name + "is cut off"));
  CHECK(contains(error([](const Data& d) {
                   std::string bytes = read_file(d.images("train"));
                   bytes[bytes.size() - 6] ^= 1;  // in the checksum
                   write_atomically(d.images("train"), bytes);
                 }),
                 name + "is damaged"));
  CHECK(contains(
      error([](const Data& d) { write_gz(d.dir / "mnist/t10k-labels-idx1-ubyte.gz", idx({6}, "\1\2\3\4\x0a\1")); }),
      "t10k-labels-idx1-ubyte.gz: label 4 is 10, not a digit"));
  const Data data;  // files that are not packed are read as well, under either name
  const std::string unpacked = data.dir / "mnist/train-images-idx3-ubyte";
  write_atomically(data.images("train"), idx({24, 28, 28}, [] {
                     std::string all;
                     for (int i = 0; i < 24; ++i) all += picture(i);
                     return all;
                   }()));
  CHECK(data.task({}).parts().train == 20);
  std::filesystem::rename(data.images("train"), unpacked);
  CHECK(data.task({}).parts().train == 20);
  write_atomically(unpacked, "");
  CHECK(contains(error_of([&] { data.task({}); }), "[mnist] train-images-idx3-ubyte: has 0 bytes"));
}

TEST_CASE("mnist: twenty steps with three cells, the test at the end, and the exit codes of bad data and usage") {
  const Data data;
  for (const std::string cell : {"srnn", "lstm", "gru"}) {
    CAPTURE(cell);
    const std::string out = data.dir / cell;
    const Result r = run("mnist",
                         {"--data", data.dir.path, "--cell", cell, "--hidden", "8", "--image", "crop8", "--batch", "4",
                          "--steps", "20", "--threads", "1", "--quiet", "--out", out},
                         data.dir.path, {"PATH=" + data.dir.path});
    CAPTURE(r.err);
    REQUIRE(r.code == 0);
    CHECK(contains(r.out, "test, with the lowest validation loss, of step "));
    const auto record = nlohmann::json::parse(read_file(out + "/run.json"));
    CHECK(record["test"]["loss"] > 0);
    CHECK(record["test"]["accuracy"] >= 0);
    CHECK(record["test"]["step"].get<int>() % 5 == 0);  // 20 pictures are 5 batches
  }
  const Result missing = run("mnist", {"--data", data.dir / "nowhere"}, data.dir.path);
  CHECK(missing.code == 1);
  CHECK(contains(missing.err, "[mnist] train-images-idx3-ubyte.gz: not found in"));
  CHECK(run("mnist", {"--quiet"}, data.dir.path, {"REEL_DATA=" + data.dir / "elsewhere"}).err.find("elsewhere") !=
        std::string::npos);
  const Result many = run("mnist", {"--data", data.dir.path, "--examples", "21"}, data.dir.path);
  CHECK(many.code == 2);
  CHECK(contains(many.err, "--examples: at most the 20 of the data set expected, got 21"));
  CHECK(contains(run("mnist", {"--help"}, data.dir.path).out, "--permuted"));
}

TEST_CASE("mnist: a typed option that changes nothing beside the others is noted") {
  const Data data;
  const auto note = [&](std::vector<std::string> words) {
    for (const char* word : {"--data", data.dir.path.c_str(), "--hidden", "4", "--dry-run"}) words.emplace_back(word);
    const Result r = run("mnist", words, data.dir.path);
    CHECK(r.code == 0);
    return r.err;
  };
  CHECK(note({"--permutation", "nru"}) == "note: --permutation has no effect: --permuted is not given\n");
  CHECK(note({"--wrap", "--scaling", "unit"}) == "note: --scaling has no effect: --wrap converts normalised pixels\n");
  CHECK(note({"--labels", "random", "--split", "nru"}) ==
        "note: --split has no effect: --labels random validates on the training images\n");
  CHECK(note({"--permuted", "--permutation", "nru", "--scaling", "unit", "--split", "nru"}).empty());
  CHECK(note({"--wrap", "--scaling", "normal"}).empty());
}

TEST_CASE("mnist: which digits were taken for which, of a finished run") {
  const Data data;
  const std::string out = data.dir / "run";
  REQUIRE(run("mnist",
              {"--data", data.dir.path, "--cell", "gru", "--hidden", "4", "--image", "crop8", "--steps", "3",
               "--threads", "1", "--quiet", "--out", out},
              data.dir.path)
              .code == 0);
  CHECK_FALSE(std::filesystem::exists(out + "/confusion.tsv"));
  const Result r = run("mnist", {"--resume", out, "--picture", "confusion"}, data.dir.path);
  CAPTURE(r.err);
  REQUIRE(r.code == 0);
  std::istringstream in(read_file(out + "/confusion.tsv"));
  std::string line;
  std::getline(in, line);
  CHECK(line == "digit\ttaken_for\tcount");
  int total = 0, right = 0, digit = 0, said = 0, count = 0, lines = 0;
  std::vector<int> of_digit(10);
  while (in >> digit >> said >> count) {
    ++lines;
    total += count;
    of_digit.at(static_cast<std::size_t>(digit)) += count;
    if (digit == said) right += count;
  }
  CHECK(lines == 100);
  CHECK(total == 6);
  CHECK(of_digit == std::vector<int>{0, 0, 0, 0, 1, 1, 1, 1, 1, 1});  // the test pictures are the 25th to the 30th
  const auto record = nlohmann::json::parse(read_file(out + "/run.json"));
  CHECK(record["test"]["accuracy"].get<double>() == doctest::Approx(right / 6.0));
  if (!contains(r.out, "gnuplot is not installed")) CHECK(contains(read_file(out + "/confusion.svg"), "</svg>"));
}
