// Save: results of products and reductions inside the loop are put out for the gradient; everything else is cheaper to
// compute again from states and products than to write and read back.
#include <algorithm>

#include "engine/scan.h"

namespace reel {

std::vector<int> worth_saving(const Program& body) {
  std::vector<int> slots;
  for (const Program::Node& node : body.nodes) {
    if (!body.worth_slab(node)) continue;
    for (int s = node.out; s < node.out + node.outs; ++s) {
      if (is_differentiable(body.slots[ix(s)].dtype)) slots.push_back(s);
    }
  }
  return slots;
}

}  // namespace reel
