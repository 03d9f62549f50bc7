// Minimum cut: the cheapest set of edges that separates a source from a sink. Its cost is the maximum flow between them
// (Ford and Fulkerson 1956), found along shortest augmenting paths (Edmonds and Karp 1972).
#pragma once
#include <algorithm>
#include <limits>
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
    constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
    std::vector<std::size_t> came_by, queue;
    for (;;) {
      came_by.assign(from_.size(), none);
      queue.assign(1, source);
      for (std::size_t i = 0; i < queue.size() && came_by[sink] == none; ++i) {
        for (std::size_t e : from_[queue[i]]) {
          const auto& [to, left] = edges_[e];
          if (left <= 0 || to == source || came_by[to] != none) continue;
          came_by[to] = e;
          queue.push_back(to);
        }
      }
      if (came_by[sink] == none) break;
      double flow = unlimited;
      for (std::size_t v = sink; v != source; v = edges_[came_by[v] ^ 1].to)
        flow = std::min(flow, edges_[came_by[v]].left);
      for (std::size_t v = sink; v != source; v = edges_[came_by[v] ^ 1].to) {
        edges_[came_by[v]].left -= flow;
        edges_[came_by[v] ^ 1].left += flow;
      }
    }
    std::vector<char> side(from_.size(), 0);
    for (std::size_t v : queue) side[v] = 1;
    return side;
  }

 private:
  struct Edge {
    std::size_t to;
    double left;  // residual capacity
  };
  std::vector<Edge> edges_;                     // each edge is followed by its reverse
  std::vector<std::vector<std::size_t>> from_;  // by vertex: edges
};

}  // namespace reel
