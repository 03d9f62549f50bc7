// Steps that ranks of MPI share out have the bits of one process. The program starts itself again by mpirun.
#include <numeric>

#include "tasks/app/launch.h"
#include "tests/support/mpi.h"
#include "tests/support/temp_dir.h"
#include "tests/support/toy_task.h"

using namespace reel;
using namespace reel::test;

namespace {

/// The end of three steps of a model whose batches of 7 are cut into so many parts.
struct End {
  std::vector<double> numbers;
  std::vector<std::vector<std::complex<double>>> parameters, carry;
  bool operator==(const End&) const = default;
};
End end_of_steps(const Task& task, const ModelOptions& options, DType dtype, std::int64_t parts, Ranks& ranks) {
  Model model(task.shape(), options, Init(3, dtype));
  Optimizer optimizer(model.trained(), usual_optimizer());
  TrainingStep steps(task, model, optimizer, false, &ranks);
  End end;
  Tensors carry;
  for (std::int64_t i = 0; i < 3; ++i) {
    std::vector<std::uint64_t> streams(7);
    std::iota(streams.begin(), streams.end(), static_cast<std::uint64_t>(7 * i));
    const Drawn drawn = draw(task, 1, streams, parts, ranks);
    if (!task.continues(streams)) carry.clear();
    const StepResult r = steps(drawn.batch, {1, i}, carry, 1, drawn.parts);
    end.numbers.insert(end.numbers.end(), {r.loss, r.norm});
  }
  for (const Parameter& p : model.parameters()) end.parameters.push_back(elements(p.value));
  for (const Tensor& state : whole_states(carry, parts, ranks)) end.carry.push_back(elements(state));
  return end;
}

/// Each row is a stream of its own, so that a batch may be cut.
class Rows final : public Little {
 public:
  explicit Rows(const TaskOptions& o) : Little(o), o_(o) {}
  Batch batch(std::uint64_t seed, const std::vector<std::uint64_t>& streams) const override {
    Batch all;
    const auto add = [](Tensor& to, const Tensor& x, int axis) {
      if (x.defined()) to = to.defined() ? concat({to, x}, axis) : x;
    };
    for (const std::uint64_t s : streams) {
      const Batch one = Little::batch(seed, {s});
      add(all.x, one.x, 1), add(all.y, one.y, 1), add(all.weight, one.weight, 1);
    }
    return all;
  }
  bool trains_on_mean() const override { return !o_.scaled; }

 private:
  TaskOptions o_;
};

}  // namespace

TEST_CASE("as a rank of MPI: steps of every cell and dtype have the bits of one process") {
  if (launch().ranks == 1) return;
  const std::unique_ptr<Ranks> ranks = join_ranks();
  REQUIRE(ranks->size() == launch().ranks);
  Ranks alone;
  const auto same = [&](const Task& task, const ModelOptions& options, DType dtype, std::int64_t parts) {
    CHECK(end_of_steps(task, options, dtype, parts, *ranks) == end_of_steps(task, options, dtype, parts, alone));
  };
  const Rows task({});
  for (const CellType& type : cell_registry()) {
    for (const DType dtype : {DType::f32, DType::f64}) {
      CAPTURE(type.name);
      CAPTURE(ranks->rank());
      same(task, {.cell = type.name, .hidden = 8}, dtype, 4);
    }
  }
  const ModelOptions gru{.cell = "gru", .hidden = 6, .layers = 2, .zoneout = 0.1, .dropout = 0.2};
  for (const std::int64_t parts : {5, 7}) {  // of unequal size, and not as many for each rank
    same(Rows({.weights = true}), gru, DType::f32, parts);
    same(Rows({.scaled = true}), gru, DType::f32, parts);
    same(Rows({.carried = true, .batch = 7}), gru, DType::f32, parts);
  }
  CHECK(std::isnan(end_of_steps(Rows({.bad = 3}), gru, DType::f32, 4, *ranks).numbers[0]));  // of one rank
  ranks->gather("");
}

TEST_CASE("2 and 4 ranks of MPI") {
  if (launch().ranks > 1 || !have_mpi()) return;
  for (const int size : {2, 4}) {
    const TempDir dir;
    const Result r = mpi_run(size, "ranks_mpi_test", {"--test-case=as a rank of MPI*"}, dir.path);
    CHECK_MESSAGE(r.code == 0, (r.out + r.err));
    CHECK(contains(r.out, "1 passed"));
  }
}
