// What all fuzz targets share: a reader takes the bytes, or throws an Error.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <string_view>

#include "engine/core/error.h"
#include "engine/device/backend.h"

namespace reel::fuzz {

/// Ends the program, so that the fuzzer keeps the input, unless the condition holds.
inline void check(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

/// Calls f; true when it took the input. Everything that it throws must be an Error.
template <class F>
bool takes(F&& f) {
  try {
    f();
    return true;
  } catch (const Error& e) {
    check(*e.what() != 0, "an error says something");
    return false;
  }
}

/// Memory of the host and no kernels: enough for what is read from files.
class Host final : public Backend {
 public:
  std::string name() const override { return "cpu"; }
  Storage* allocate(std::size_t bytes) override {
    auto* storage = new Storage;
    storage->backend = this;
    storage->data = static_cast<std::byte*>(::operator new(bytes));
    storage->bytes = bytes;
    return storage;
  }
  void release(Storage* storage) override {
    ::operator delete(storage->data);
    delete storage;
  }
  void read(void* host, const void* device, std::size_t bytes) override { std::memcpy(host, device, bytes); }
  void write(void* device, const void* host, std::size_t bytes) override { std::memcpy(device, host, bytes); }
};

inline Backend& host() {
  static Host host;
  return host;
}

}  // namespace reel::fuzz

/// The body of a target: `bytes` is the input.
#define REEL_FUZZ(bytes)                                                              \
  static void fuzz_one(std::string_view bytes);                                       \
  extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) { \
    fuzz_one({reinterpret_cast<const char*>(data), size});                            \
    return 0;                                                                         \
  }                                                                                   \
  static void fuzz_one(std::string_view bytes)
