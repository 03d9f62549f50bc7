// A traced step that runs again and again in the same memory: nothing is inferred or allocated anew.
#pragma once
#include <deque>
#include <optional>

#include "engine/scan/program.h"

namespace reel {

class RowProgram {
 public:
  /// `traced` maps inputs [1, ...] to results of fixed shapes. What does not depend on the inputs, such as an
  /// orthogonal matrix made of its parameters, is computed here, once. Constant factors of products are stored as in a
  /// time loop, and products of one row with several of them become one.
  explicit RowProgram(Traced traced);
  RowProgram(RowProgram&&) = default;

  /// Input i, to be filled before run().
  Tensor& input(std::size_t i) { return values_[i]; }
  /// Result i of the latest run(), in memory of its own; the next one overwrites it.
  const Tensor& output(std::size_t i) const { return results_[i]; }
  void run();

 private:
  struct Call {
    const Op* op;
    Attrs attrs;
    std::vector<const Tensor*> in;
    Tensors out;   // where the next calls read
    Tensors made;  // what run() fills, or replaces
  };
  /// A product of a row [1, k] with a constant [k, n].
  struct Product {
    const Program::Node* node;
    Attrs attrs;
    Tensor factor;
  };
  /// What a node is as such a product, if it is one.
  std::optional<Product> product(const Program& program, const Program::Node& node) const;
  void add(const Program& program, const Program::Node& node);
  void add(const std::vector<Product>& products);

  Tensors values_;              // by id; never resized, as calls hold addresses
  std::deque<Tensor> factors_;  // likewise
  std::vector<Call> calls_;
  Tensors results_;
  std::vector<std::pair<Tensor, Tensor>> copies_;  // results that are inputs, or views of them
};

}  // namespace reel
