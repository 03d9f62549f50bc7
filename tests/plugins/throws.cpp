// A variable whose initial value throws.
#include <stdexcept>

namespace {
int fail() { throw std::runtime_error("too few elements"); }
}  // namespace
extern "C" {
int value = fail();
}
