// Mistakes in a task of one's own are told as such: the function of Task that makes them, and no option.
#include <cmath>
#include <functional>

#include "tasks/app/run.h"
#include "tests/support/check.h"
#include "tests/support/stderr_of.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

namespace {

/// What a test changes of a task that is all right.
struct Mistakes {
  std::string name = "mine", program = "mine";
  ModelShape shape{.inputs = 2, .outputs = 1, .every_step = false};
  Parts parts{.train = 16, .valid = 8, .test = 0};
  std::function<Tensor(const Tensor& y)> weight = [](const Tensor&) { return Tensor(); };
  bool own_mean = false;  // of the loss: over the weights, by hand
  double accuracy = 1;
};

class Mine final : public Task {
 public:
  explicit Mine(const Mistakes& m) : m_(m) {}
  std::string name() const override { return m_.name; }
  ModelShape shape() const override { return m_.shape; }
  Parts parts() const override { return m_.parts; }
  double baseline() const override { return 1; }
  Batch batch(std::uint64_t seed, const std::vector<std::uint64_t>& streams) const override {
    const Tensor x = normal({3, std::ssize(streams), 2}, 0, 1, seed, streams[0]), y = sum(slice(x, 2, 0, 1), {0});
    return {x, y, m_.weight(y)};
  }
  bool trains_on_mean() const override { return true; }
  Tensor loss(const Tensor& outputs, const Batch& batch) const override {
    if (m_.own_mean) return sum(square(outputs - batch.y) * batch.weight) / sum(batch.weight);
    return mean(square(outputs - batch.y));
  }
  double accuracy(const Tensor&, const Batch&) const override { return m_.accuracy; }

 private:
  Mistakes m_;
};

/// The line that the program of such a task ends with; empty if it trains.
std::string said(const Mistakes& m, const std::vector<const char*>& more = {}) {
  const TempDir dir;
  const std::string out = dir / "run";
  std::vector<const char*> words{"mine", "--cell",  "gru",     "--hidden", "4",           "--steps",
                                 "2",    "--quiet", "--batch", "8",        "--no-report", "--out"};
  words.push_back(out.c_str());
  words.insert(words.end(), more.begin(), more.end());
  return stderr_of([&] {
    run_task(
        static_cast<int>(words.size()), words.data(),
        {.name = m.program, .description = "none", .source = Source::files, .options = {}, .task = [&](const Setup&) {
           return std::make_unique<Mine>(m);
         }});
  });
}

}  // namespace

TEST_CASE("shape and parts that no run can have: the function, not an option that nobody typed") {
  CHECK(said({}).empty());
  CHECK(said({.shape = {.inputs = 0}}) ==
        "mine: [mine] Task::shape gives inputs = 0 and vocabulary = 0; one of them is 1 or more\n");
  CHECK(said({.shape = {.inputs = 2, .outputs = 0}}) ==
        "mine: [mine] Task::shape gives outputs = 0; 1 or more are needed\n");
  CHECK(said({.parts = {-5, 8, 0}}) ==
        "mine: [mine] Task::parts gives train = -5, valid = 8, test = 0; each is 0 or more\n");
  CHECK(said({.parts = {16, 0, 0}}) ==
        "mine: [mine] Task::parts leaves the number of validation examples to --valid-size, which is 0. Hint: "
        "--valid-size N\n");
  CHECK(said({.parts = {16, 0, 0}}, {"--valid-size", "8"}).empty());
}

TEST_CASE("the name of a task or its program is part of a folder's") {
  for (const std::string name : {"", "a/b"}) {
    CHECK(said({.name = name}) == "mine: [task] Task::name is \"" + name +
                                      "\": as a part of a run folder's name it has one character or more, and no /\n");
    CHECK(contains(said({.program = name}), "[task] TaskProgram::name is \"" + name + "\""));
  }
  CHECK(said({.name = "3-body problem", .program = "3-body_problem"}).empty());
}

TEST_CASE("weights go with y, and all of them cannot be 0") {
  using Weight = std::function<Tensor(const Tensor&)>;
  const std::string wrong =
      "mine: [mine] Task::batch gives weight as {} beside y as f32 (8, 1); one for each entry "
      "of y is needed, or for each along its leading axes\n";
  for (const auto& [shape, text] : {std::pair{Shape{3}, "f32 (3,)"},
                                    {Shape{8}, ""},
                                    {Shape{8, 1}, ""},
                                    {Shape{8, 1, 1}, ""},
                                    {Shape{}, ""},
                                    {Shape{1, 8}, "f32 (1, 8)"},
                                    {Shape{8, 2}, "f32 (8, 2)"}}) {
    const Weight weight = [=](const Tensor&) { return Tensor::full(shape, 1); };
    CAPTURE(shape.str());
    CHECK(said({.weight = weight}) == (*text ? fmt::format(fmt::runtime(wrong), text) : ""));
  }
  const Weight none = [](const Tensor& y) { return 0.0 * y; };
  const auto zero = [](const std::string& of) {
    return "mine: [mine] the weights that Task::batch gives for " + of + " add up to 0; a mean needs more than 0\n";
  };
  CHECK(said({.weight = none}) == zero("the validation set"));
  CHECK(said({.weight = none, .own_mean = true}) == zero("a training step"));
  CHECK(said({.weight = none}, {"--accumulate", "2"}) == zero("a training step"));
}

TEST_CASE("an accuracy is between 0 and 1, but for rounding, or NaN") {
  for (const double good : {0.0, 1.0, 1 + 1e-7, std::nan("")}) CHECK(said({.accuracy = good}).empty());
  for (const double bad : {-0.5, 1.5, 87.0, HUGE_VAL})
    CHECK(said({.accuracy = bad}) ==
          fmt::format(
              "mine: [mine] Task::accuracy gives {}; a fraction between 0 and 1 is needed, or NaN for none. Hint: "
              "Task::scores reports other numbers\n",
              bad));
}
