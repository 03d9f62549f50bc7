#include "tasks/training/gradient_sum.h"

#include <algorithm>

#include "ops/ops.h"

namespace reel {

namespace {

template <class T>
void add_numbers(std::byte* sum, const std::byte* more, std::size_t bytes) {
  T* const out = reinterpret_cast<T*>(sum);
  const T* const in = reinterpret_cast<const T*>(more);
  for (std::size_t i = 0; i < bytes / sizeof(T); ++i) out[i] += in[i];
}

}  // namespace

GradientSum::GradientSum(Ranks& ranks, Backend& device)
    : ranks_(ranks), where_(ranks.link() ? device : backend("cpu")) {}

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
  bytes_ = bytes;
  const std::size_t slice_bytes = slice(ranks_.rank()).bytes;
  all_ = StoragePtr(where_.allocate(bytes));
  sum_ = StoragePtr(where_.allocate(slice_bytes));
  received_ = StoragePtr(where_.allocate(slice_bytes * static_cast<std::size_t>(ranks_.size())));
}

GradientSum::Place GradientSum::slice(int r) const {
  constexpr std::size_t line = 64;  // of a cache
  const std::size_t lines = (bytes_ + line - 1) / line, ranks = static_cast<std::size_t>(ranks_.size());
  const auto start = [&](std::size_t i) { return std::min(lines * i / ranks * line, bytes_); };
  const auto i = static_cast<std::size_t>(r);
  return {start(i), start(i + 1) - start(i)};
}

void GradientSum::add_to_slice(std::byte* numbers) {
  const Place here = slice(ranks_.rank());
  const std::size_t eights = std::clamp(doubles_, here.first, here.first + here.bytes) - here.first;
  if (!ranks_.link()) {
    if (added_ == 0) {
      std::copy_n(numbers, here.bytes, sum_->data);
    } else {
      add_numbers<double>(sum_->data, numbers, eights);
      add_numbers<float>(sum_->data + eights, numbers + eights, here.bytes - eights);
    }
    return;
  }
  const NoGrad no_grad;
  const auto add = [&](std::size_t first, std::size_t bytes, DType dtype) {
    if (bytes == 0) return;
    const Spec spec{dtype, {static_cast<std::int64_t>(bytes / size_of(dtype))}, &where_};
    Storage of_sum, of_more;
    Tensor sum = Tensor::borrow(of_sum, sum_->data + first, spec);
    const Tensor more = Tensor::borrow(of_more, numbers + first, spec);
    sum.assign(added_ == 0 ? more : sum + more);
  };
  add(0, eights, DType::f64);
  add(eights, here.bytes - eights, DType::f32);
}

void GradientSum::copy(const std::byte* from, std::byte* to, const Spec& spec) {
  StridedLoop<2> loop;
  loop.push(spec.shape.numel(), {1, 1});
  spec.backend->copy({spec.dtype, loop, from, to});
}

void GradientSum::exchange(std::span<const Message> sends, std::span<const Message> receives) const {
  if (ranks_.link())
    ranks_.link()->exchange(sends, receives);
  else
    ranks_.exchange(sends, receives);
}

void GradientSum::put(const Tensors& gradients, const Tensors& like) {
  lay_out(like);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (ranks_.link())
      copy(static_cast<const std::byte*>(gradients[i].data()), all_->data + places_[i].first, gradients[i].spec());
    else
      gradients[i].backend().read(all_->data + places_[i].first, gradients[i].data(), places_[i].bytes);
  }
}

void GradientSum::exchange_and_add(int parts) {
  const auto size = ranks_.size(), own = ranks_.rank();
  const Place here = slice(own);
  const auto from = [&](int r) { return here.bytes * static_cast<std::size_t>(r); };  // in received_
  std::vector<Message> sends, receives;
  for (int r = 0; r < size; ++r) {
    if (r == own) continue;
    const Place there = slice(r);
    if (own < parts) sends.push_back({r, all_->data + there.first, there.bytes});
    if (r < parts) receives.push_back({r, received_->data + from(r), here.bytes});
  }
  exchange(sends, receives);
  for (int r = 0; r < parts; ++r, ++added_)
    add_to_slice(r == own ? all_->data + here.first : received_->data + from(r));
}

void GradientSum::add(const Tensors& gradients, const Tensors& like, int parts) {
  put(gradients, like);
  exchange_and_add(parts);
  if (ranks_.link()) ranks_.wait_for_devices();
}

void GradientSum::write(const Tensors& sums) {
  const auto own = ranks_.rank();
  const Place here = slice(own);
  std::vector<Message> sends, receives;
  for (int r = 0; r < ranks_.size(); ++r) {
    if (r == own) continue;
    const Place there = slice(r);
    sends.push_back({r, sum_->data, here.bytes});
    receives.push_back({r, all_->data + there.first, there.bytes});
  }
  if (ranks_.link()) {
    const auto fours = static_cast<std::int64_t>(here.bytes / size_of(DType::f32));
    if (fours > 0) copy(sum_->data, all_->data + here.first, {DType::f32, {fours}, &where_});
  } else {
    std::copy_n(sum_->data, here.bytes, all_->data + here.first);
  }
  exchange(sends, receives);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    Tensor sum = sums[i];
    if (ranks_.link())
      copy(all_->data + places_[i].first, static_cast<std::byte*>(sum.data()), sum.spec());
    else
      sum.backend().write(sum.data(), all_->data + places_[i].first, places_[i].bytes);
    sum.mark_changed();
  }
}

}  // namespace reel
