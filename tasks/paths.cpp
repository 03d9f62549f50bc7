// Shortest paths in a graph that is read edge by edge: "node a is joined to node b" for all edges of the graph and of a
// second, confusing graph, then two nodes. The answer is the path from one to the other.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "tasks/app/run.h"

namespace reel {
namespace {

struct PathsOptions {
  std::int64_t nodes = 5, confusing = 4, train = 950, valid = 50, test = 1000;
};

using Edges = std::vector<std::array<std::int64_t, 2>>;

/// The adjacency matrix.
std::vector<std::vector<bool>> matrix_of(const Edges& edges, std::int64_t n) {
  std::vector<std::vector<bool>> joined(static_cast<std::size_t>(n), std::vector<bool>(static_cast<std::size_t>(n)));
  for (const auto& [a, b] : edges)
    joined[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)] =
        joined[static_cast<std::size_t>(b)][static_cast<std::size_t>(a)] = true;
  return joined;
}

/// For each node: its distance from the start (-1: unreachable), the number of shortest paths, and its predecessor.
struct Search {
  std::vector<std::int64_t> distance, ways, from;
};

Search search(const std::vector<std::vector<bool>>& joined, std::int64_t start) {
  const std::size_t n = joined.size();
  Search s{std::vector<std::int64_t>(n, -1), std::vector<std::int64_t>(n, 0), std::vector<std::int64_t>(n, -1)};
  std::vector<std::size_t> queue{static_cast<std::size_t>(start)};
  s.distance[queue[0]] = 0;
  s.ways[queue[0]] = 1;
  for (std::size_t i = 0; i < queue.size(); ++i) {
    const std::size_t a = queue[i];
    for (std::size_t b = 0; b < n; ++b) {
      if (!joined[a][b]) continue;
      if (s.distance[b] < 0) {
        s.distance[b] = s.distance[a] + 1;
        s.from[b] = static_cast<std::int64_t>(a);
        queue.push_back(b);
      }
      if (s.distance[b] == s.distance[a] + 1) s.ways[b] += s.ways[a];
    }
  }
  return s;
}

/// A connected Watts-Strogatz graph with k = 3, as the published generator asks for. That rounds down to one neighbour
/// on each side, so the graph starts as a ring, and each of its n edges is rewired with probability 1/2. Draws again
/// until the graph is connected.
Edges small_world(std::int64_t n, Stream& random) {
  while (true) {
    auto joined = std::vector(static_cast<std::size_t>(n), std::vector<bool>(static_cast<std::size_t>(n)));
    const auto set = [&](std::int64_t a, std::int64_t b, bool to) {
      joined[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)] =
          joined[static_cast<std::size_t>(b)][static_cast<std::size_t>(a)] = to;
    };
    for (std::int64_t a = 0; a < n; ++a) set(a, (a + 1) % n, true);
    for (std::int64_t a = 0; a < n; ++a) {
      if (random.below(2) == 0) continue;
      const auto& row = joined[static_cast<std::size_t>(a)];
      if (std::count(row.begin(), row.end(), true) >= n - 1) continue;  // already joined to all others
      std::int64_t b = a;
      while (b == a || row[static_cast<std::size_t>(b)]) b = random.below(n);
      set(a, (a + 1) % n, false);
      set(a, b, true);
    }
    const Search s = search(joined, 0);
    if (std::count(s.distance.begin(), s.distance.end(), -1) > 0) continue;
    Edges edges;
    for (std::int64_t a = 0; a < n; ++a)
      for (std::int64_t b = a + 1; b < n; ++b)
        if (joined[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)]) edges.push_back({a, b});
    return edges;
  }
}

template <class T>
void shuffle(std::vector<T>& v, Stream& random) {
  for (std::size_t k = v.size(); k > 1; --k)
    std::swap(v[k - 1], v[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(k)))]);
}

/// The edges of both graphs under their final names, in reading order, and the expected path.
struct Question {
  Edges edges;
  std::vector<std::int64_t> path;
};

/// Draws again until the shortest path is unique and has at least three nodes.
Question draw_question(const PathsOptions& o, Stream& random) {
  Question q;
  do {
    q = {small_world(o.nodes, random), {}};
    const std::int64_t source = random.below(o.nodes), target = random.below(o.nodes);
    const Search s = search(matrix_of(q.edges, o.nodes), target);
    const auto at = static_cast<std::size_t>(source);
    if (s.distance[at] < 2 || s.ways[at] > 1) continue;
    for (std::int64_t node = source; node >= 0; node = s.from[static_cast<std::size_t>(node)]) q.path.push_back(node);
  } while (q.path.empty());
  if (o.confusing > 0)
    for (const auto& [a, b] : small_world(o.confusing, random)) q.edges.push_back({a + o.nodes, b + o.nodes});
  std::vector<std::int64_t> names(static_cast<std::size_t>(o.nodes + o.confusing));
  std::iota(names.begin(), names.end(), 0);
  shuffle(names, random);
  shuffle(q.edges, random);
  for (auto& edge : q.edges)
    for (auto& node : edge) node = names[static_cast<std::size_t>(node)];
  for (auto& node : q.path) node = names[static_cast<std::size_t>(node)];
  return q;
}

class Paths final : public Task {
 public:
  explicit Paths(const PathsOptions& o) : o_(o), names_(o.nodes + o.confusing) {
    if (o.confusing > 0 && o.confusing < 3)
      throw SettingError("confusing", fmt::format("a ring has 3 nodes or more, got {}", o.confusing));
  }
  std::string name() const override { return "paths"; }
  std::string title() const override { return fmt::format("shortest paths, {} + {} nodes", o_.nodes, o_.confusing); }
  /// Symbols are the nodes, then edge, end of line, question, answer; classes are the nodes and the end of the path.
  ModelShape shape() const override { return {.vocabulary = names_ + 4, .outputs = names_ + 1}; }
  /// The loss of guessing among the nodes at each step.
  double baseline() const override { return std::log(static_cast<double>(names_)); }
  Parts parts() const override { return {o_.train, o_.valid, o_.test}; }

  Batch batch(std::uint64_t seed, const std::vector<std::uint64_t>& streams) const override {
    const auto B = streams.size();
    const std::int64_t T = first() + answers();
    std::vector<std::int32_t> x(static_cast<std::size_t>(T) * B, symbol(answer));
    std::vector<std::int32_t> y(static_cast<std::size_t>(answers()) * B, static_cast<std::int32_t>(names_));
    std::vector<float> weight(y.size(), 0);
    for (std::size_t b = 0; b < B; ++b) {
      Stream random(seed, streams[b]);
      const Question q = draw_question(o_, random);
      std::size_t t = 0;
      const auto put = [&](std::int32_t s) { x[t++ * B + b] = s; };
      for (const auto& [a, c] : q.edges) {
        for (const auto& [from, to] : {std::pair{a, c}, std::pair{c, a}}) {
          put(static_cast<std::int32_t>(from));
          put(symbol(edge));
          put(static_cast<std::int32_t>(to));
          put(symbol(line));
        }
      }
      put(symbol(question));
      put(static_cast<std::int32_t>(q.path.front()));
      put(static_cast<std::int32_t>(q.path.back()));
      for (std::size_t k = 0; k <= q.path.size(); ++k) {
        if (k < q.path.size()) y[k * B + b] = static_cast<std::int32_t>(q.path[k]);
        weight[k * B + b] = 1;
      }
    }
    const auto rows = static_cast<std::int64_t>(B);
    return {Tensor::from<std::int32_t>(x, {T, rows}), Tensor::from<std::int32_t>(y, {answers(), rows}),
            Tensor::from<float>(weight, {answers(), rows})};
  }

  bool trains_on_mean() const override { return true; }
  Tensor loss(const Tensor& outputs, const Batch& batch) const override {
    return cross_entropy(said(outputs), batch.y, {.weight = cast(batch.weight, outputs.dtype())});
  }

  /// The fraction of nodes and ends that are correct.
  double accuracy(const Tensor& outputs, const Batch& batch) const override {
    const Tensor weight = cast(batch.weight, DType::f64);
    return (sum(cast(right(outputs, batch), DType::f64) * weight) / sum(weight)).item();
  }

  /// The fraction of paths that are correct from end to end.
  std::vector<Score> scores(const Tensor& outputs, const Batch& batch) const override {
    const Tensor whole = all(logical_or(right(outputs, batch), batch.weight < 0.5), {0});
    return {{"paths_right", sum(cast(whole, DType::f64)).item(), static_cast<double>(batch.y.dim(1))}};
  }

 private:
  enum Token { edge, line, question, answer };
  std::int32_t symbol(Token token) const { return static_cast<std::int32_t>(names_ + token); }
  /// The step that outputs the first node; the answer token is the input there and at all later steps.
  std::int64_t first() const { return 8 * names_ + 3; }
  /// The number of steps for the longest path and its end.
  std::int64_t answers() const { return o_.nodes + 1; }
  Tensor said(const Tensor& outputs) const { return slice(outputs, 0, first(), first() + answers()); }
  Tensor right(const Tensor& outputs, const Batch& batch) const { return equal(argmax(said(outputs)), batch.y); }

  PathsOptions o_;
  std::int64_t names_;
};

}  // namespace
}  // namespace reel

int main(int argc, char** argv) {
  using namespace reel;
  PathsOptions o;
  const auto add = [&](Options& options) {
    options.add("nodes", o.nodes, "nodes of the graph", "Task", Bounds{.low = 4, .high = 100});
    options.add("confusing", o.confusing, "nodes of the other, confusing graph; 0: none", "Task",
                Bounds{.low = 0, .high = 100});
    options.add("train", o.train, "number of training graphs; 0: fresh graphs for every update", "Task",
                Bounds{.low = 0, .high = most::examples});
    options.add("valid", o.valid, "number of validation graphs", "Task", Bounds{.low = 1, .high = most::valid});
    options.add("test", o.test, "number of test graphs", "Task", Bounds{.low = 1, .high = most::valid});
  };
  return run_task(argc, argv,
                  {.name = "paths",
                   .description = "Shortest paths in graphs that are read edge by edge; each seed is another fold.",
                   .batch = 50,
                   .steps = 10000,
                   .source = Source::fixed,
                   .options = add,
                   .task = [&](const Setup&) { return std::make_unique<Paths>(o); }});
}
