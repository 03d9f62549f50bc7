// Fallback for kernels without a GPU version: copies the arguments to the host, runs the CPU backend's kernel on them,
// and copies the results back. It waits for the GPU.
#pragma once
#include <type_traits>
#include <vector>

#include "engine/device/backend.h"

namespace reel::cuda {

/// One array argument of a kernel, as a member pointer into its Args: a pointer to `elements` elements, to const if it
/// is an input. The pointer is null if the array is not needed.
template <class Args, class T>
struct Part {
  T* Args::*pointer;
  DType dtype;
  std::int64_t elements;
  std::size_t bytes() const { return static_cast<std::size_t>(elements) * size_of(dtype); }
};

/// Runs the CPU's kernel on host copies of these parts of its arguments, and returns its result.
template <class Result, class Args, class... T>
Result cpu_fallback(Backend& device, Result (Backend::*kernel)(const Args&), Args args, const Part<Args, T>&... parts) {
  std::vector<std::byte> rooms[sizeof...(T)];
  std::vector<std::byte>* room = rooms;
  const auto bring = [&]<class E>(const Part<Args, E>& part) {
    E*& pointer = args.*part.pointer;
    std::vector<std::byte>& copy = *room++;
    if (!pointer) return;
    copy.resize(part.bytes());
    if constexpr (std::is_const_v<E>) device.read(copy.data(), pointer, copy.size());
    pointer = reinterpret_cast<E*>(copy.data());
  };
  const Args on_device = args;
  (bring(parts), ...);
  const auto finish = [&] {
    room = rooms;
    const auto take = [&]<class E>(const Part<Args, E>& part) {
      const std::vector<std::byte>& copy = *room++;
      if constexpr (!std::is_const_v<E>) {
        if (E* const result = on_device.*part.pointer) device.write(result, copy.data(), copy.size());
      }
    };
    (take(parts), ...);
  };
  if constexpr (std::is_void_v<Result>) {
    (backend("cpu").*kernel)(args);
    finish();
  } else {
    const Result result = (backend("cpu").*kernel)(args);
    finish();
    return result;
  }
}

}  // namespace reel::cuda
