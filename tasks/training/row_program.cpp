#include "tasks/training/row_program.h"

#include <algorithm>
#include <string_view>

#include "ops/attributes.h"
#include "ops/ops.h"

namespace reel {

namespace {
/// What run() takes for its result: memory, unless the op allocates it.
Tensor given(const Op& op, const Tensor& out) { return op.traits.allocates ? Tensor() : out; }
}  // namespace

RowProgram::RowProgram(Traced traced) {
  const NoGrad inference;
  const Program& program = traced.program;
  values_.resize(program.values.size());
  for (int i = 0; i < program.inputs; ++i) values_[i] = Tensor::empty(program.values[i]);
  std::move(traced.consts.begin(), traced.consts.end(), values_.begin() + program.inputs);
  std::vector<char> moving(program.values.size(), 0);
  std::fill_n(moving.begin(), program.inputs, 1);
  mark_descendants(program, moving);
  std::vector<const Program::Node*> left;
  for (const Program::Node& node : program.nodes) {
    if (moving[node.out])
      left.push_back(&node);
    else
      apply_node(node, values_);
  }
  for (auto node = left.begin(); node != left.end(); ++node) {
    if (!*node) continue;
    const std::optional<Product> first = product(program, **node);
    if (!first) {
      add(program, **node);
      continue;
    }
    std::vector<Product> joined{*first};
    for (auto other = node + 1; other != left.end(); ++other) {
      if (!*other || (*other)->in[0] != (*node)->in[0]) continue;
      const std::optional<Product> next = product(program, **other);
      if (!next || !first->node->op->same(next->attrs, first->attrs)) continue;
      joined.push_back(*next);
      *other = nullptr;
    }
    add(joined);
  }
  for (const int id : program.outputs) {
    const Tensor& value = values_[id];
    results_.push_back(value);
    for (int i = 0; i < program.inputs; ++i) {
      if (value.storage() != values_[i].storage()) continue;
      results_.back() = Tensor::empty(value.spec());
      copies_.emplace_back(value, results_.back());
      break;
    }
  }
}

std::optional<RowProgram::Product> RowProgram::product(const Program& program, const Program::Node& node) const {
  if (node.op->traits.name != std::string_view("matmul") || !is_registered(*node.op)) return {};
  const Tensor& factor = values_[node.in[1]];
  const Spec &row = program.values[node.in[0]], &out = program.values[node.out];
  if (!factor.defined() || row.shape.rank() != 2 || row.shape[0] != 1) return {};
  Mapped constant;
  constant.set(1);
  Attrs better;
  Tensors replaced;
  if (!node.op->loop.prepack(node.attrs, {&values_[node.in[0]], &factor}, constant, better, replaced)) return {};
  if (replaced[1].shape() != Shape{row.shape[1], out.shape[1]}) return {};
  return Product{&node, better, replaced[1]};
}

/// One call for all these products; their results are parts of its result.
void RowProgram::add(const std::vector<Product>& products) {
  const Program::Node& first = *products[0].node;
  Tensors factors;
  for (const Product& p : products) factors.push_back(p.factor);
  factors_.push_back(concat(factors, 1));
  const Tensor row = Tensor::empty({factors_.back().dtype(), {1, factors_.back().dim(1)}, &factors_.back().backend()});
  calls_.push_back({first.op, products[0].attrs, {&values_[first.in[0]], &factors_.back()}, {row}, {row}});
  std::int64_t begin = 0;
  for (const Product& p : products) {
    values_[p.node->out] = row.view({1, p.factor.dim(1)}, begin);
    begin += p.factor.dim(1);
  }
}

void RowProgram::add(const Program& program, const Program::Node& node) {
  Call call{node.op, node.attrs, {}, {}, {}};
  for (const int i : node.in) call.in.push_back(&values_[i]);
  if (node.op->alias) {  // the memory stays, so one view serves all runs
    values_[node.out] = call.in[0]->view(program.values[node.out].shape, node.op->alias(node.attrs, call.in));
    return;
  }
  for (int k = 0; k < node.num_outputs; ++k) {
    const int id = node.out + k;
    values_[id] = Tensor::empty(program.values[id]);
    call.out.push_back(values_[id]);
    call.made.push_back(given(*node.op, values_[id]));
  }
  calls_.push_back(std::move(call));
}

void RowProgram::run() {
  for (Call& call : calls_) {
    call.op->run(call.attrs, call.in, call.made);
    for (std::size_t k = 0; k < call.out.size(); ++k) {
      Tensor &out = call.out[k], &made = call.made[k];
      if (made.storage() == out.storage()) continue;
      out.assign(made);
      made = given(*call.op, out);
    }
  }
  for (auto& [from, to] : copies_) to.assign(from);
}

}  // namespace reel
