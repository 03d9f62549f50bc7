// Results of random numbers, of ops, of every cell with its gradients, and of an update, to the last bit.
#include <reel/training.h>

#include <cstdio>

namespace {

using namespace reel;

void print(const std::string& name, const Tensor& x) {
  const Tensor wide = is_complex(x.dtype()) ? real(x * conj(x)) : x;
  const auto values = cast(wide, DType::f64).values<double>();
  std::printf("%s:", name.c_str());
  for (std::size_t i = 0; i < values.size(); i += std::max<std::size_t>(1, values.size() / 16))
    std::printf(" %a", values[i]);
  double total = 0;
  for (const double v : values) total += v;
  std::printf(" sum %a\n", total);
}

void all_of(const CellType& type) {
  Init init(1);
  const auto cell = type.make(8, 16, Settings(type.name, type.settings), init);
  const Tensor xs = normal({12, 4, 8}, 0, 1, 1, 2);
  const Tape tape;
  const Sequence run = scan(*cell, cell->initial(4), xs);
  print(type.name, run.hs);
  Tensors values;
  for (const Parameter& p : cell->parameters())
    if (p.trained) values.push_back(p.value);
  Tensor loss = mean(square(run.hs));
  for (const Tensor& g : grad({loss}, values)) print(type.name + " gradient", g);
}

}  // namespace

int main() try {
  backend().set_threads(2);
  std::printf("%s\n", REEL_VERSION);
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor x = normal({17, 33}, 0.3, 1.7, 1, 1, dtype), y = uniform({33, 19}, -1, 1, 1, 2, dtype);
    print("normal", x);
    print("uniform", y);
    print("functions", tanh(x) * sigmoid(x) + gelu(x) - log1p(exp(-abs(x))) / (2 + sin(x)));
    print("product", matmul(x, y));
    print("softmax", softmax(x, -1));
    print("solve", solve(matmul(x, transpose(x)), x));
    print("fft", fft(cast(x, dtype == DType::f32 ? DType::c64 : DType::c128)));
  }
  for (const CellType& type : cell_registry()) all_of(type);

  Model model({.vocabulary = 5, .outputs = 5}, {.cell = "lstm", .hidden = 24}, Init(3));
  Optimizer optimizer(model.trained(), {.kind = "adam", .clip_norm = 0.1});
  const Tensor x = cast(floor(uniform({9, 4}, 0, 5, 1, 3)), DType::i32);
  for (int i = 0; i < 3; ++i) {
    const Tape tape;
    Tensors values;
    for (const Parameter& p : model.trained()) values.push_back(p.value);
    const Tensors gradients = grad({cross_entropy(model(x), x)}, values);
    optimizer.step(gradients, optimizer.norm(gradients));
  }
  for (const Parameter& p : model.parameters()) print(p.name, p.value);
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "numbers: %s\n", e.what());
  return 1;
}
