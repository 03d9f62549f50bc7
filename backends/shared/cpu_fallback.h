// Fallback for kernels that a device does not have: copies the arguments to the host, runs the CPU backend's kernel on
// them, and copies the results back. It waits for the device.
#pragma once
#include <vector>

#include "engine/device/backend.h"

namespace reel {

/// Runs the CPU's kernel on host copies of the call's arrays, and returns its result.
template <class Result, class Args>
Result cpu_fallback(Backend& device, Result (Backend::*kernel)(const Args&), Args args) {
  std::vector<std::vector<std::byte>> copies;
  Args on_host = args;
  on_host.arrays([&]<class E>(E*& pointer, DType dtype, std::int64_t elements) {
    std::vector<std::byte>& copy = copies.emplace_back();
    if (!pointer) return;
    copy.resize(static_cast<std::size_t>(elements) * size_of(dtype));
    if constexpr (std::is_const_v<E>) device.read(copy.data(), pointer, copy.size());
    pointer = reinterpret_cast<E*>(copy.data());
  });
  const auto finish = [&] {
    auto copy = copies.begin();
    args.arrays([&]<class E>(E*& pointer, DType, std::int64_t) {
      if constexpr (!std::is_const_v<E>) {
        if (pointer) device.write(pointer, copy->data(), copy->size());
      }
      ++copy;
    });
  };
  if constexpr (std::is_void_v<Result>) {
    (backend("cpu").*kernel)(on_host);
    finish();
  } else {
    const Result result = (backend("cpu").*kernel)(on_host);
    finish();
    return result;
  }
}

}  // namespace reel
