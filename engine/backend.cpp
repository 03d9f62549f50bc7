#include "engine/backend.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "engine/error.h"

namespace reel {

void StoragePtr::destroy() { storage_->backend->release(storage_); }

void Backend::unsupported(const char* kernel) const {
  throw Error(name(), fmt::format("{} is not supported by this backend", kernel));
}

void Backend::fused(const FusedArgs& args) {
  const bool whole_rows = args.columns <= FusedArgs::block;
  const std::int64_t high = whole_rows ? FusedArgs::block / std::max<std::int64_t>(args.columns, 1) : 1,
                     wide = whole_rows ? args.columns : FusedArgs::block;
  for (std::int64_t r = 0; r < args.rows; r += high) {
    for (std::int64_t c = 0; c < args.columns; c += wide) {
      const std::int64_t rows = std::min(high, args.rows - r), columns = std::min(wide, args.columns - c),
                         n = rows * columns;
      const auto operand = [&](int i) -> const FusedOperand& { return args.operands[static_cast<std::size_t>(i)]; };
      const auto at = [&](int i) {
        const FusedOperand& o = operand(i);
        return o.local ? o.data : o.data + static_cast<std::size_t>(r * o.row + c * o.column) * o.element_bytes;
      };
      const auto stretched = [&](int i) { return operand(i).row == 0 || operand(i).column == 0; };
      const auto alike = [&](int i) { return operand(i).row == 0 && operand(i).column == 0; };
      for (const FusedCall& call : args.calls) {
        const int a = call.in[0], b = call.in[1];
        switch (call.kind) {
          case FusedCall::Kind::map:
            map({call.functor, call.params, call.dtype, n, at(a), at(call.out)});
            break;
          case FusedCall::Kind::cast:
            cast({call.dtype, call.to, n, at(a), at(call.out)});
            break;
          case FusedCall::Kind::select:
            select({operand(call.out).element_bytes, n, reinterpret_cast<const bool*>(at(a)), at(b), at(call.in[2]),
                    at(call.out)});
            break;
          case FusedCall::Kind::zip: {
            Loop<3> loop;
            if ((!stretched(a) || alike(a)) && (!stretched(b) || alike(b))) {
              loop.push(n, {operand(a).column, operand(b).column, 1});
            } else {
              const auto row = [&](int i) { return stretched(i) ? operand(i).row : columns; };
              loop.push(rows, {row(a), row(b), columns});
              loop.push(columns, {operand(a).column, operand(b).column, 1});
            }
            zip({call.functor, call.params, call.dtype, loop, at(a), at(b), at(call.out)});
          }
        }
      }
    }
  }
}

namespace {
std::vector<std::unique_ptr<Backend>>& registry() {
  static std::vector<std::unique_ptr<Backend>> backends;
  return backends;
}
}  // namespace

bool register_backend(std::unique_ptr<Backend> backend) {
  registry().push_back(std::move(backend));
  return true;
}

Backend& backend(const std::string& name) {
  for (const auto& b : registry()) {
    if (b->name() == name) return *b;
  }
  throw Error("device",
              fmt::format("there is no device \"{}\"; this build has: {}", name, fmt::join(backend_names(), ", ")));
}

std::vector<std::string> backend_names() {
  std::vector<std::string> names;
  for (const auto& b : registry()) names.push_back(b->name());
  return names;
}

}  // namespace reel
