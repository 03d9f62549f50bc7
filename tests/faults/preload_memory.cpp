// Calls that ask for memory: malloc and its kin (operator new calls it, too), anonymous mmap, and threads, which need
// stacks.
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/faults/preload.h"
#include "tests/faults/preload_files.h"

// The GNU C library's own, under names that nobody replaces.
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
}

using namespace reel::faults;

namespace {

template <class F>
void* allocate(const F& real) {
  return instead(asked(Kind::allocate), static_cast<void*>(nullptr), real);
}

template <class F>
void* map(int flags, int file, const F& real) {
  const Action action = flags & MAP_ANONYMOUS ? asked(Kind::allocate) : called_on(Kind::map, file);
  return instead(action, MAP_FAILED, real);
}

}  // namespace

extern "C" {

void* malloc(std::size_t size) noexcept {
  return allocate([&] { return __libc_malloc(size); });
}
void* calloc(std::size_t count, std::size_t size) noexcept {
  return allocate([&] { return __libc_calloc(count, size); });
}
void* realloc(void* old, std::size_t size) noexcept {
  if (size == 0) return __libc_realloc(old, size);  // frees
  return allocate([&] { return __libc_realloc(old, size); });
}
void* memalign(std::size_t alignment, std::size_t size) noexcept {
  return allocate([&] { return __libc_memalign(alignment, size); });
}
void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept { return memalign(alignment, size); }
int posix_memalign(void** place, std::size_t alignment, std::size_t size) noexcept {
  void* const block = memalign(alignment, size);
  if (!block) return ENOMEM;
  *place = block;
  return 0;
}

void* mmap(void* at, std::size_t size, int protection, int flags, int file, off_t offset) noexcept {
  return map(flags, file,
             [&] { return reinterpret_cast<void*>(syscall(SYS_mmap, at, size, protection, flags, file, offset)); });
}
void* mmap64(void* at, std::size_t size, int protection, int flags, int file, off64_t offset) noexcept {
  return mmap(at, size, protection, flags, file, offset);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*), void* value) noexcept {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto real = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  return instead(asked(Kind::thread), EAGAIN, [&] { return real(thread, attributes, body, value); });
}

}  // extern "C"
