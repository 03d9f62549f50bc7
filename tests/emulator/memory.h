// The memory of the GPU in software.
#pragma once
#include <cstddef>
#include <map>

namespace cuda_emulator {

/// Do n bytes from `place` on lie in one of these blocks, whose sizes are given by their first places?
template <class Place>
bool in_one_block(const std::map<Place, std::size_t>& blocks, Place place, std::size_t n) {
  const auto next = blocks.upper_bound(place);
  if (next == blocks.begin()) return false;
  const auto& [first, size] = *std::prev(next);
  return place + n <= first + size;
}

/// One range of addresses, which only work that runs on the device may touch.
class Memory {
 public:
  static constexpr std::size_t alignment = 256;
  static const std::size_t bytes;  // 8 GiB, or as many MiB as REEL_EMULATOR_MEMORY says

  Memory();
  /// Null when there is no room. New memory is full of NaN.
  void* take(std::size_t bytes);
  /// False when nothing begins there.
  bool give_back(void* block);
  std::size_t free_bytes() const { return bytes - taken_; }
  bool inside(const void* p) const { return p >= base_ && p < base_ + bytes; }
  /// Do these bytes belong to one block?
  bool holds(const void* p, std::size_t n) const { return inside(p) && in_one_block(blocks_, place_of(p), n); }

  /// Opens the memory while it lives.
  class Access {
   public:
    explicit Access(Memory& memory) : memory_(memory) { memory_.open(); }
    ~Access() { memory_.close(); }
    Access(const Access&) = delete;
    Access& operator=(const Access&) = delete;

   private:
    Memory& memory_;
  };

  /// Closes the memory again, while there is one.
  class NoAccess {
   public:
    explicit NoAccess(Memory& memory) : memory_(memory) { memory_.close(); }
    ~NoAccess() { memory_.open(); }
    NoAccess(const NoAccess&) = delete;
    NoAccess& operator=(const NoAccess&) = delete;

   private:
    Memory& memory_;
  };

 private:
  std::size_t place_of(const void* p) const {
    return static_cast<std::size_t>(static_cast<const std::byte*>(p) - base_);
  }
  void open();
  void close();

  std::byte* base_ = nullptr;
  std::map<std::size_t, std::size_t> blocks_;  // bytes by their first place
  std::size_t taken_ = 0;
  int opened_ = 0, key_ = -1;  // key: of the processor's own protection, where it has one; pages are closed more slowly
};

}  // namespace cuda_emulator
