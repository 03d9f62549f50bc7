// paths: the graphs, their serialisation, the statistics of the reference, both accuracies, runs.
#define main paths_main
#include "tasks/paths.cpp"
#undef main

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/support/check.h"
#include "tests/support/child.h"
#include "tests/support/streams.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

namespace {

/// All shortest paths between two nodes, by trying all ways.
std::vector<std::vector<int>> shortest(const std::map<int, std::set<int>>& graph, int from, int to) {
  std::vector<std::vector<int>> paths{{from}};
  for (int length = 0; length < 10; ++length) {
    std::vector<std::vector<int>> there, longer;
    for (const auto& p : paths) {
      if (p.back() == to) there.push_back(p);
      for (const int next : graph.at(p.back())) {
        if (std::find(p.begin(), p.end(), next) != p.end()) continue;
        longer.push_back(p);
        longer.back().push_back(next);
      }
    }
    if (!there.empty()) return there;
    paths = longer;
  }
  return {};
}

}  // namespace

TEST_CASE(
    "paths: lines of edges both ways, two graphs apart, and the only shortest path; lengths as in the reference") {
  const Paths task({});
  constexpr std::int64_t B = 4000;
  const Batch batch = task.batch(3, streams(B));
  REQUIRE(batch.x.shape() == Shape{81, B});
  REQUIRE(batch.y.shape() == Shape{6, B});
  CHECK(task.shape().vocabulary == 13);
  CHECK(task.shape().outputs == 10);
  CHECK(task.baseline() == doctest::Approx(std::log(9.0)));
  const auto x = batch.x.values<std::int32_t>(), y = batch.y.values<std::int32_t>();
  const auto w = batch.weight.values<float>();
  std::map<std::size_t, int> lengths;
  std::vector<int> starts(9);
  for (std::int64_t b = 0; b < B; ++b) {
    const auto token = [&](std::int64_t t) { return x[static_cast<std::size_t>(t * B + b)]; };
    std::map<int, std::set<int>> graph;
    for (std::int64_t edge = 0; edge < 18; ++edge) {
      const int from = token(4 * edge), to = token(4 * edge + 2);
      CHECK((from >= 0 && from < 9 && to >= 0 && to < 9 && from != to));
      CHECK(token(4 * edge + 1) == 9);
      CHECK(token(4 * edge + 3) == 10);
      if (edge % 2 == 1) CHECK((from == token(4 * edge - 2) && to == token(4 * edge - 4)));  // the line before, turned
      CHECK(graph[from].insert(to).second);
    }
    CHECK(token(72) == 11);
    const int source = token(73), target = token(74);
    for (std::int64_t t = 75; t < 81; ++t) CHECK(token(t) == 12);

    std::set<int> reached{source};
    for (int k = 0; k < 9; ++k)
      for (const int node : std::set(reached)) reached.insert(graph[node].begin(), graph[node].end());
    CHECK(reached.size() == 5);
    CHECK(graph.size() == 9);
    const auto wanted = shortest(graph, source, target);
    REQUIRE(wanted.size() == 1);
    const std::size_t n = wanted[0].size();
    CHECK(n >= 3);
    ++lengths[n];
    ++starts[static_cast<std::size_t>(source)];
    for (std::size_t k = 0; k < 6; ++k) {
      const std::size_t at = k * B + static_cast<std::size_t>(b);
      CHECK(w[at] == (k <= n ? 1 : 0));
      CHECK(y[at] == (k < n ? wanted[0][k] : 9));
    }
  }
  // Reference section 12: 80.5 % and 19.5 % of 5,000 draws.
  const double three = static_cast<double>(lengths[3]) / B;
  CHECK(lengths[3] + lengths[4] == B);
  CHECK(std::abs(three - 0.805) < 4 * std::sqrt(0.805 * 0.195 * (1.0 / B + 1.0 / 5000)));
  for (const int n : starts) CHECK(std::abs(n - B / 9.0) < 5 * std::sqrt(B * 8 / 81.0));
}

TEST_CASE("paths: half of the ring's edges are moved") {
  // Nodes with two neighbours among 12: 5.394 on average, deviation 1.772, in 20,000 graphs of a simulation in Python.
  // With three quarters of the edges moved it is 4.650.
  constexpr int graphs = 4000;
  Stream random(11, 0);
  double twos = 0;
  for (int g = 0; g < graphs; ++g) {
    std::vector<int> neighbours(12);
    for (const auto& [a, b] : small_world(12, random))
      for (const auto node : {a, b}) ++neighbours[static_cast<std::size_t>(node)];
    twos += static_cast<double>(std::count(neighbours.begin(), neighbours.end(), 2));
  }
  CHECK(std::abs(twos / graphs - 5.394) < 5 * 1.772 * std::sqrt(1.0 / graphs + 1.0 / 20000));
}

TEST_CASE("paths: other sizes, no confusing graph, and one that cannot be") {
  PathsOptions o;
  o.nodes = 8, o.confusing = 0;
  const Batch batch = Paths(o).batch(1, streams(20));
  CHECK(batch.x.shape() == Shape{8 * 8 + 3 + 9, 20});
  o.confusing = 2;
  CHECK(contains(error_of([&] { Paths{o}; }), "confusing: a ring has 3 nodes or more, got 2"));
}

TEST_CASE("paths: accuracy is by node, the score by path; what lies behind a path's end does not count") {
  const Paths task({});
  const Batch batch = task.batch(1, streams(40));
  const auto y = batch.y.values<std::int32_t>();
  const auto w = batch.weight.values<float>();
  double places = 0;
  for (const float v : w) places += v;
  const auto answer = [&](bool first_wrong, bool padding_wrong) {
    std::vector<double> logits(81 * 40 * 10, 0);
    for (std::size_t k = 0; k < 6; ++k) {
      for (std::size_t b = 0; b < 40; ++b) {
        auto said = static_cast<std::size_t>(y[k * 40 + b]);
        if ((first_wrong && k == 0 && b < 10) || (padding_wrong && w[k * 40 + b] == 0)) said = (said + 1) % 10;
        logits[((75 + k) * 40 + b) * 10 + said] = 200;
      }
    }
    return Tensor::from<double>(logits, {81, 40, 10});
  };
  CHECK(task.accuracy(answer(false, true), batch) == 1);
  CHECK(task.scores(answer(false, true), batch)[0].mean() == 1);
  CHECK(task.loss(answer(false, true), batch).item() < 1e-9);
  CHECK(task.accuracy(answer(true, false), batch) == doctest::Approx(1 - 10 / places));
  CHECK(task.scores(answer(true, false), batch)[0].mean() == 0.75);
  CHECK(task.loss(answer(true, false), batch).item() == doctest::Approx(200 * 10 / places));
}

TEST_CASE("paths: twenty steps with three cells, both accuracies of the test; fresh graphs") {
  const TempDir dir;
  for (const std::string cell : {"srnn", "lstm", "goru"}) {
    CAPTURE(cell);
    const std::string out = dir / cell;
    const Result r = run("paths",
                         {"--cell", cell, "--hidden", "8", "--train", cell == "goru" ? "0" : "30", "--valid", "10",
                          "--test", "20", "--batch", "10", "--steps", "20", "--threads", "1", "--quiet", "--out", out},
                         dir.path, {"PATH=" + dir.path});
    CAPTURE(r.err);
    REQUIRE(r.code == 0);
    const auto record = nlohmann::json::parse(read_file(out + "/run.json"));
    CHECK(record["test"]["accuracy"] > 0);
    CHECK(record["test"]["paths_right"] >= 0);
    CHECK(record["test"]["paths_right"] <= record["test"]["accuracy"]);
  }
  CHECK(contains(run("paths", {"--help"}, dir.path).out, "--confusing"));
  CHECK(run("paths", {"--nodes", "3"}, dir.path).code == 2);
  CHECK(
      contains(run("paths", {"--train", "0", "--epochs", "2"}, dir.path).err, "--epochs: fresh examples have no end"));
}
