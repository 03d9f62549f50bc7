// Minimum cut: the cheapest set of edges that separates a source from a sink. Its cost is the maximum flow between them
// (Ford and Fulkerson 1956), found by blocking flows along shortest paths (Dinic 1970).
#pragma once
#include <algorithm>
#include <vector>

namespace reel {

class MinCut {
 public:
  static constexpr double unlimited = 1e18;

  explicit MinCut(std::size_t vertices) : from_(vertices) {}

  void edge(std::size_t from, std::size_t to, double capacity) {
    from_[from].push_back(edges_.size());
    edges_.push_back({to, capacity});
    from_[to].push_back(edges_.size());
    edges_.push_back({from, 0});  // the reverse edge: flow that can be undone
  }

  /// By vertex: is it on the source's side of the cut?
  std::vector<char> source_side(std::size_t source, std::size_t sink) {
    while (find_levels(source)[sink] >= 0) block_flow(source, sink);
    std::vector<char> side;
    for (int level : level_) side.push_back(level >= 0 ? 1 : 0);
    return side;
  }

 private:
  struct Edge {
    std::size_t to;
    double left;  // residual capacity
  };

  /// By vertex: the number of edges with capacity left from the source to it; -1 if none lead there.
  const std::vector<int>& find_levels(std::size_t source) {
    level_.assign(from_.size(), -1);
    level_[source] = 0;
    std::vector<std::size_t> queue{source};
    for (std::size_t i = 0; i < queue.size(); ++i) {
      for (std::size_t e : from_[queue[i]]) {
        const auto& [to, left] = edges_[e];
        if (!(left > 0) || level_[to] >= 0) continue;  // NaN has no capacity, as below
        level_[to] = level_[queue[i]] + 1;
        queue.push_back(to);
      }
    }
    return level_;
  }

  /// Sends flow along shortest paths until none has capacity left.
  void block_flow(std::size_t source, std::size_t sink) {
    std::vector<std::size_t> tried(from_.size(), 0), path;  // by vertex: its edges that lead nowhere
    for (std::size_t v = source;;) {
      if (v == sink) {
        const auto less = [&](std::size_t a, std::size_t b) { return edges_[a].left < edges_[b].left; };
        const auto least = std::min_element(path.begin(), path.end(), less);
        const double flow = edges_[*least].left;
        for (std::size_t e : path) {
          edges_[e].left -= flow;
          edges_[e ^ 1].left += flow;
        }
        v = edges_[*least ^ 1].to;
        path.erase(least, path.end());
      } else if (tried[v] == from_[v].size()) {
        if (v == source) return;
        v = edges_[path.back() ^ 1].to;
        path.pop_back();
        ++tried[v];
      } else if (const std::size_t e = from_[v][tried[v]];
                 edges_[e].left > 0 && level_[edges_[e].to] == level_[v] + 1) {
        path.push_back(e);
        v = edges_[e].to;
      } else {
        ++tried[v];
      }
    }
  }

  std::vector<Edge> edges_;                     // each edge is followed by its reverse
  std::vector<std::vector<std::size_t>> from_;  // by vertex: edges
  std::vector<int> level_;
};

}  // namespace reel
