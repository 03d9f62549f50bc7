// Tensors in safetensors files: what is read can be saved, and comes back.
#include "tasks/training/safetensors.h"
#include "tests/fuzz/fuzz.h"

using namespace reel;
using namespace reel::fuzz;

REEL_FUZZ(bytes) {
  takes([&] {
    const TensorFile file = parse_safetensors("x", bytes, host());
    std::string saved;
    if (!takes([&] { saved = safetensors_of("x", file); })) return;  // a name that Reel keeps for itself
    const TensorFile back = parse_safetensors("x", saved, host());
    check(back.checked && back.metadata == file.metadata && back.tensors.size() == file.tensors.size(), "all is back");
    for (std::size_t i = 0; i < file.tensors.size(); ++i) {
      const auto& [name, x] = file.tensors[i];
      const auto& [same, y] = back.tensors[i];
      check(name == same && x.spec() == y.spec() && std::memcmp(x.data(), y.data(), x.bytes()) == 0,
            "a tensor is back");
    }
  });
}
