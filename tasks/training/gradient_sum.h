// The sum of gradients over the parts of a batch, part k computed by rank k % size. Numbers are added in the order of
// the parts, so the sum has the bits that one process gets. Each rank adds up a slice of all gradients.
#pragma once
#include "engine/core/tensor.h"
#include "tasks/training/ranks.h"

namespace reel {

class GradientSum {
 public:
  /// `device`: where the gradients are.
  GradientSum(Ranks& ranks, Backend& device);

  /// Before the first part of a step.
  void clear() { added_ = 0; }
  /// Adds the parts of the next round: part size * round + rank, from each rank that has one. Of this rank these are
  /// the gradients, with specs as in `like`; empty: it has none in this round. `parts`: of all ranks in this round.
  void add(const Tensors& gradients, const Tensors& like, int parts);
  /// The same in two parts, of which the second can be captured where ranks are linked by their devices.
  void put(const Tensors& gradients, const Tensors& like);
  void exchange_and_add(int parts);
  /// Writes the sums to these tensors.
  void write(const Tensors& sums);

 private:
  /// The bytes of all gradients: those with numbers of 8 bytes, then those with 4.
  struct Place {
    std::size_t first, bytes;
  };
  void lay_out(const Tensors& like);
  /// What rank r adds up.
  Place slice(int r) const;
  void add_to_slice(std::byte* numbers);
  /// Copies numbers from one place of the device to another.
  static void copy(const std::byte* from, std::byte* to, const Spec& spec);
  void exchange(std::span<const Message> sends, std::span<const Message> receives) const;

  Ranks& ranks_;
  Backend& where_;          // the device, if devices send to each other; else the CPU
  std::int64_t added_ = 0;  // parts
  std::vector<Place> places_;
  std::size_t bytes_ = 0, doubles_ = 0;  // of all; of numbers of 8 bytes, which come first
  StoragePtr all_;                       // this rank's gradients, then the sums
  StoragePtr sum_, received_;            // of this rank's slice: the sum, and one piece from each rank
};

}  // namespace reel
