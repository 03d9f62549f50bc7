// Runs the weights of torch.nn.LSTM, GRU or RNN over a sequence: from_pytorch WEIGHTS.safetensors SEQUENCE.safetensors.
// The first file is a state dict, the second has x [T, B, I] and, to compare with, y [T, B, H]: export.py writes both.
#include <reel/training.h>

#include <algorithm>
#include <cstdio>
#include <set>

namespace {

using namespace reel;

/// A module of PyTorch as a cell of Reel: the cell's names of its gates, in the order of PyTorch's rows. In Reel each
/// gate has matrices and biases of its own.
struct Module {
  std::string cell, input, state;  // the names of the matrices of the input and of the state
  std::vector<std::string> gates;
};
const std::vector<Module> modules{
    {"lstm", "W", "R", {"_i", "_f", "_g", "_o"}}, {"gru", "U", "W", {"_r", "_z", "_c"}}, {"rnn", "U", "W", {""}}};

/// The layers of a state dict, from bottom to top.
std::vector<std::unique_ptr<Cell>> layers_of(const TensorFile& file) {
  std::set<std::string> unread;
  for (const auto& [name, tensor] : file.tensors) unread.insert(name);

  std::vector<std::unique_ptr<Cell>> layers;
  while (unread.contains("weight_ih_l" + std::to_string(layers.size()))) {
    const auto tensor = [&](const std::string& name) {
      const std::string key = name + "_l" + std::to_string(layers.size());
      unread.erase(key);
      return file.at(key);
    };
    const Tensor w_ih = tensor("weight_ih"), w_hh = tensor("weight_hh");
    const Tensor b_ih = tensor("bias_ih"), b_hh = tensor("bias_hh");
    const bool matrices = w_ih.rank() == 2 && w_hh.rank() == 2 && w_hh.numel() > 0;
    const std::int64_t hidden = matrices ? w_hh.dim(1) : 0, gates = matrices ? w_hh.dim(0) / hidden : 0;
    const auto module =
        std::find_if(modules.begin(), modules.end(), [&](const Module& m) { return std::ssize(m.gates) == gates; });
    if (module == modules.end() || w_ih.dim(0) != gates * hidden)
      throw Error("weights", "of nn.LSTM, nn.GRU or nn.RNN expected; got weight_ih " + w_ih.shape().str() +
                                 ", weight_hh " + w_hh.shape().str());

    const CellType& type = cell_type(module->cell);
    Init init(1, w_ih.dtype());
    // Two biases, as in PyTorch. An RNN is taken for one of tanh: the state dict does not say whether it has relu.
    const Settings settings(type.name, type.settings, {{"biases", "2"}});
    auto cell = type.make(w_ih.dim(1), hidden, settings, init);

    std::map<std::string, Tensor> values;
    for (std::int64_t k = 0; k < gates; ++k) {
      const std::string& gate = module->gates[static_cast<std::size_t>(k)];
      const auto rows = [&](const Tensor& all) { return slice(all, 0, k * hidden, (k + 1) * hidden); };
      values[module->input + gate] = rows(w_ih);
      values[module->state + gate] = rows(w_hh);
      values["b" + gate] = rows(b_ih);
      values["b2" + gate] = rows(b_hh);
    }
    for (const Parameter& parameter : cell->parameters()) Tensor(parameter.value).assign(values.at(parameter.name));
    layers.push_back(std::move(cell));
  }
  if (layers.empty())
    throw Error("weights", "there is no weight_ih_l0. Hint: save the state dict of the recurrent module alone");
  if (!unread.empty())
    throw Error("weights", "\"" + *unread.begin() +
                               "\" belongs to no layer. Hint: bidirectional and projected modules "
                               "are not read here");
  return layers;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 3) throw Error("usage", "from_pytorch WEIGHTS.safetensors SEQUENCE.safetensors");
  const NoGrad inference;
  const auto layers = layers_of(load_safetensors(argv[1]));
  const TensorFile sequence = load_safetensors(argv[2]);
  const Tensor x = sequence.at("x");  // [T, B, I]
  if (x.rank() != 3 || x.dim(2) != layers.front()->input)
    throw Error("x", "[T, B, " + std::to_string(layers.front()->input) + "] expected, got " + x.shape().str());

  Tensor y = x;
  for (const auto& layer : layers) y = scan(*layer, layer->initial(x.dim(1)), y).hs;  // [T, B, H]
  for (std::int64_t t = 0; t < y.dim(0); ++t) {
    std::printf("t = %lld:", static_cast<long long>(t));
    for (std::int64_t k = 0; k < y.dim(2); ++k)
      std::printf(" %9.6f", y.at(t).at(0).at(k).item());  // the first sequence
    std::printf("\n");
  }
  const Tensor expected = cast(sequence.at("y"), DType::f64);
  const double difference = max(abs(cast(y, DType::f64) - expected)).item();
  std::printf("%zu layers of %lld units; differs from y by %.0e\n", layers.size(),
              static_cast<long long>(layers.back()->hidden), difference);
  return difference < 1e-6 ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "from_pytorch: %s\n", e.what());
  return 1;
}
