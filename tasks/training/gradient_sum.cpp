#include "tasks/training/gradient_sum.h"

#include <algorithm>
#include <cstring>

namespace reel {

namespace {

template <class T>
void add_numbers(std::byte* sum, const std::byte* more, std::size_t bytes) {
  T* const out = reinterpret_cast<T*>(sum);
  const T* const in = reinterpret_cast<const T*>(more);
  for (std::size_t i = 0; i < bytes / sizeof(T); ++i) out[i] += in[i];
}

}  // namespace

void GradientSum::lay_out(const Tensors& like) {
  if (places_.size() == like.size()) return;
  std::size_t bytes = 0;
  places_.resize(like.size());
  for (const DType dtype : {DType::f64, DType::f32}) {
    for (std::size_t i = 0; i < like.size(); ++i) {
      if (real_of(like[i].dtype()) != dtype) continue;
      places_[i] = {bytes, like[i].bytes()};
      bytes += like[i].bytes();
    }
    if (dtype == DType::f64) doubles_ = bytes;
  }
  all_.resize(bytes);
  sum_.resize(slice(ranks_.rank()).bytes);
  received_.resize(sum_.size() * static_cast<std::size_t>(ranks_.size()));
}

GradientSum::Place GradientSum::slice(int r) const {
  constexpr std::size_t line = 64;  // of a cache
  const std::size_t lines = (all_.size() + line - 1) / line, ranks = static_cast<std::size_t>(ranks_.size());
  const auto start = [&](std::size_t i) { return std::min(lines * i / ranks * line, all_.size()); };
  const auto i = static_cast<std::size_t>(r);
  return {start(i), start(i + 1) - start(i)};
}

void GradientSum::add_to_slice(const std::byte* numbers) {
  if (sum_.empty()) return;
  if (added_ == 0) {
    std::memcpy(sum_.data(), numbers, sum_.size());
    return;
  }
  const std::size_t first = slice(ranks_.rank()).first;
  const std::size_t eights = std::clamp(doubles_, first, first + sum_.size()) - first;
  add_numbers<double>(sum_.data(), numbers, eights);
  add_numbers<float>(sum_.data() + eights, numbers + eights, sum_.size() - eights);
}

void GradientSum::add(const Tensors& gradients, const Tensors& like, int parts) {
  lay_out(like);
  const auto size = ranks_.size(), own = ranks_.rank();
  for (std::size_t i = 0; i < gradients.size(); ++i)
    gradients[i].backend().read(all_.data() + places_[i].first, gradients[i].data(), places_[i].bytes);
  const Place here = slice(own);
  const auto piece = [&](int r) {
    return r == own ? all_.data() + here.first : received_.data() + here.bytes * static_cast<std::size_t>(r);
  };
  std::vector<Message> sends, receives;
  for (int r = 0; r < size; ++r) {
    if (r == own) continue;
    const Place there = slice(r);
    if (own < parts) sends.push_back({r, all_.data() + there.first, there.bytes});
    if (r < parts) receives.push_back({r, piece(r), here.bytes});
  }
  ranks_.exchange(sends, receives);
  for (int r = 0; r < parts; ++r, ++added_) add_to_slice(piece(r));
}

void GradientSum::write(const Tensors& sums) {
  const auto own = ranks_.rank();
  const Place here = slice(own);
  std::copy(sum_.begin(), sum_.end(), all_.begin() + static_cast<std::ptrdiff_t>(here.first));  // it may be empty
  std::vector<Message> sends, receives;
  for (int r = 0; r < ranks_.size(); ++r) {
    if (r == own) continue;
    const Place there = slice(r);
    sends.push_back({r, sum_.data(), sum_.size()});
    receives.push_back({r, all_.data() + there.first, there.bytes});
  }
  ranks_.exchange(sends, receives);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    Tensor sum = sums[i];
    sum.backend().write(sum.data(), all_.data() + places_[i].first, places_[i].bytes);
    sum.mark_changed();
  }
}

}  // namespace reel
