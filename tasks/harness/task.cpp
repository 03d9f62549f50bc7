#include "tasks/harness/task.h"

#include <numeric>

namespace reel {

namespace {
// Streams of one seed: examples to train on from 0, those to validate on and orders of a fixed set far above.
constexpr std::uint64_t first_valid = std::uint64_t{1} << 60, first_order = std::uint64_t{2} << 60;
}  // namespace

std::vector<std::uint64_t> Examples::train(std::int64_t step) {
  std::vector<std::uint64_t> streams;
  for (std::int64_t b = 0; b < options_.batch; ++b) {
    const std::int64_t i = step * options_.batch + b;
    if (options_.examples == 0) {
      streams.push_back(static_cast<std::uint64_t>(i));
      continue;
    }
    const std::int64_t pass = i / options_.examples;
    if (pass != ordered_) {
      ordered_ = pass;
      order_.resize(static_cast<std::size_t>(options_.examples));
      std::iota(order_.begin(), order_.end(), 0);
      Stream random(seed_, first_order + static_cast<std::uint64_t>(pass));
      for (std::size_t k = order_.size(); options_.shuffle && k > 1; --k)
        std::swap(order_[k - 1], order_[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(k)))]);
    }
    streams.push_back(order_[static_cast<std::size_t>(i % options_.examples)]);
  }
  return streams;
}

std::vector<std::vector<std::uint64_t>> Examples::valid() const {
  std::vector<std::vector<std::uint64_t>> batches;
  for (std::int64_t i = 0; i < options_.valid_size; ++i) {
    if (i % options_.batch == 0) batches.emplace_back();
    batches.back().push_back(first_valid + static_cast<std::uint64_t>(i));
  }
  return batches;
}

}  // namespace reel
