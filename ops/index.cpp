// Lookups: embedding and scatter_add are each other's gradient, and so are pick and place.
#include "ops/ops.h"

namespace reel {

namespace {

void check_index(const Tensor& index) {
  if (index.dtype() != DType::i32) broken("indices must be i32");
}

struct Embedding {  // index [...], table [V, n] -> [..., n]
  static constexpr Traits traits{.name = "embedding", .reads = Reads::inputs};
  Spec infer(Inputs in) const {
    check_index(in[0]);
    if (in[1].rank() != 2) broken("the table must have two axes: rows and width");
    return {in[1].dtype(), in[0].shape().insert(in[0].rank(), in[1].dim(1)), &in[1].backend()};
  }
  void run(Inputs in, Tensor& out) const {
    out.backend().gather_rows({out.dtype(), in[0].numel(), in[1].dim(0), in[1].dim(1), in[0].data_as<std::int32_t>(),
                               in[1].data(), out.data()});
  }
  void vjp(Vjp& v) const { v.set(1, scatter_add(v.in(0), v.dy(), v.spec(1).shape[0])); }
  Tensor batch(Inputs in, Varying varying, std::int64_t steps) const {
    if (!varying[1]) return embedding(in[0], in[1]);
    Tensors rows;  // a table of its own for each step
    for (std::int64_t t = 0; t < steps; ++t) rows.push_back(embedding(varying[0] ? at(in[0], t) : in[0], at(in[1], t)));
    return stack(rows);
  }
};
REEL_OP(Embedding)

struct ScatterAdd {  // index [...], rows [..., n] -> [count, n]
  std::int64_t count;
  static constexpr Traits traits{.name = "scatter_add", .reads = Reads::inputs};
  Spec infer(Inputs in) const {
    check_index(in[0]);
    if (in[1].rank() != in[0].rank() + 1 || !(in[1].shape().erase(in[1].rank() - 1) == in[0].shape()))
      broken("there must be one row for each index");
    if (in[1].dtype() == DType::boolean) broken("bool elements are not supported");
    return {in[1].dtype(), {count, in[1].dim(-1)}, &in[1].backend()};
  }
  void run(Inputs in, Tensor& out) const {
    out.backend().fill({out.dtype(), out.numel(), 0, out.data()});
    out.backend().scatter_add_rows(
        {out.dtype(), in[0].numel(), count, out.dim(1), in[0].data_as<std::int32_t>(), in[1].data(), out.data()});
  }
  void vjp(Vjp& v) const { v.set(1, embedding(v.in(0), v.dy())); }
  Tensor batch(Inputs in, Varying varying, std::int64_t steps) const {
    Tensors all;
    for (std::int64_t t = 0; t < steps; ++t)
      all.push_back(scatter_add(varying[0] ? at(in[0], t) : in[0], varying[1] ? at(in[1], t) : in[1], count));
    return stack(all);
  }
  Tensor batch_sum(Inputs in, Varying varying, std::int64_t) const {  // the sum over steps is one scatter of all rows
    return varying[0] && varying[1] ? scatter_add(in[0], in[1], count) : Tensor();
  }
};
REEL_OP(ScatterAdd)

struct Pick {  // x [..., n], index [...] -> [...]
  static constexpr Traits traits{.name = "pick", .reads = Reads::inputs};
  Spec infer(Inputs in) const {
    check_index(in[1]);
    if (in[0].rank() != in[1].rank() + 1 || !(in[0].shape().erase(in[0].rank() - 1) == in[1].shape()))
      broken("there must be one index for each place along the last axis");
    return {in[0].dtype(), in[1].shape(), &in[0].backend()};
  }
  void run(Inputs in, Tensor& out) const {
    out.backend().pick(
        {out.dtype(), in[1].numel(), in[0].dim(-1), in[1].data_as<std::int32_t>(), in[0].data(), out.data()});
  }
  void vjp(Vjp& v) const {
    const Shape& shape = v.spec(0).shape;
    v.set(0, place(v.dy(), v.in(1), shape[shape.rank() - 1]));
  }
  Tensor batch(Inputs in, Varying varying, std::int64_t steps) const {
    return pick(varying[0] ? in[0] : expand(in[0], in[0].shape().insert(0, steps)),
                varying[1] ? in[1] : expand(in[1], in[1].shape().insert(0, steps)));
  }
};
REEL_OP(Pick)

struct Place {  // value [...], index [...] -> [..., n]
  std::int64_t n;
  static constexpr Traits traits{.name = "place", .reads = Reads::inputs};
  Spec infer(Inputs in) const {
    check_index(in[1]);
    if (!(in[0].shape() == in[1].shape())) broken("there must be one index for each value");
    if (n < 0) broken("the extent is 0 or more, got {}", n);
    return {in[0].dtype(), in[0].shape().insert(in[0].rank(), n), &in[0].backend()};
  }
  void run(Inputs in, Tensor& out) const {
    out.backend().place({out.dtype(), in[1].numel(), n, in[1].data_as<std::int32_t>(), in[0].data(), out.data()});
  }
  void vjp(Vjp& v) const { v.set(0, pick(v.dy(), v.in(1))); }
  Tensor batch(Inputs in, Varying varying, std::int64_t steps) const {
    return place(varying[0] ? in[0] : expand(in[0], in[0].shape().insert(0, steps)),
                 varying[1] ? in[1] : expand(in[1], in[1].shape().insert(0, steps)), n);
  }
};
REEL_OP(Place)

}  // namespace

Tensor embedding(Arg index, Arg table) { return apply(Embedding{}, {&index.tensor(), &table.tensor()}, index.where); }
Tensor scatter_add(Arg index, Arg rows, std::int64_t count) {
  return apply(ScatterAdd{count}, {&index.tensor(), &rows.tensor()}, index.where);
}
Tensor pick(Arg x, Arg index) { return apply(Pick{}, {&x.tensor(), &index.tensor()}, x.where); }
Tensor place(Arg value, Arg index, std::int64_t n) {
  return apply(Place{n}, {&value.tensor(), &index.tensor()}, value.where);
}
Tensor one_hot(Arg index, std::int64_t n, DType dtype) {
  const Tensor ones = Tensor::full({}, 1, dtype, index->backend());
  return place({expand(ones, index->shape()), index.where}, index, n);
}

}  // namespace reel
