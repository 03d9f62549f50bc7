// oneDNN, opened at its first use, so that programs start without it and pay nothing for it. The table's types are
// those of its header; a build without the header has no products by it (REEL_ONEDNN is not defined).
#pragma once
#include <oneapi/dnnl/dnnl.h>

#include <memory>
#include <string>

namespace reel::cpu::onednn {

// clang-format off
#define REEL_ONEDNN_FUNCTIONS(X)                                                                                   \
  X(dnnl_get_effective_cpu_isa) X(dnnl_engine_create) X(dnnl_stream_create) X(dnnl_stream_destroy)                 \
  X(dnnl_memory_desc_init_by_tag) X(dnnl_memory_desc_get_size) X(dnnl_memory_create) X(dnnl_memory_destroy)        \
  X(dnnl_memory_set_data_handle) X(dnnl_post_ops_create) X(dnnl_post_ops_append_sum) X(dnnl_post_ops_destroy)      \
  X(dnnl_primitive_attr_create) X(dnnl_primitive_attr_set_scratchpad_mode) X(dnnl_primitive_attr_set_post_ops)     \
  X(dnnl_primitive_attr_destroy) X(dnnl_matmul_desc_init) X(dnnl_reorder_primitive_desc_create)                    \
  X(dnnl_primitive_desc_create) X(dnnl_primitive_desc_query_md) X(dnnl_primitive_desc_destroy)                     \
  X(dnnl_primitive_create) X(dnnl_primitive_execute) X(dnnl_primitive_destroy)
// clang-format on

struct Functions {
#define REEL_POINTER(f) decltype(&::f) f = nullptr;
  REEL_ONEDNN_FUNCTIONS(REEL_POINTER)
#undef REEL_POINTER
  // Of the OpenMP that oneDNN itself uses: they count and set the threads of the calling thread's parallel regions.
  int (*omp_get_max_threads)() = nullptr;
  void (*omp_set_num_threads)(int) = nullptr;
  /// Why they cannot be used, with a hint; empty: they can.
  std::string missing;
};
const Functions& functions();

/// Throws Error, or OutOfMemory, unless `status` is success.
void check(dnnl_status_t status);

/// An object of oneDNN; `destroy` is a function of the table.
template <class T, auto destroy>
struct Destroy {
  void operator()(T object) const { (functions().*destroy)(object); }
};
template <class T, auto destroy>
using Owned = std::unique_ptr<std::remove_pointer_t<T>, Destroy<T, destroy>>;
using Stream = Owned<dnnl_stream_t, &Functions::dnnl_stream_destroy>;
using Memory = Owned<dnnl_memory_t, &Functions::dnnl_memory_destroy>;
using PostOps = Owned<dnnl_post_ops_t, &Functions::dnnl_post_ops_destroy>;
using Attributes = Owned<dnnl_primitive_attr_t, &Functions::dnnl_primitive_attr_destroy>;
using Description = Owned<dnnl_primitive_desc_t, &Functions::dnnl_primitive_desc_destroy>;
using Primitive = Owned<dnnl_primitive_t, &Functions::dnnl_primitive_destroy>;

/// Makes an object: made<Stream>(functions().dnnl_stream_create, engine, flags).
template <class Object, class F, class... Args>
Object made(F create, Args... args) {
  typename Object::pointer object = nullptr;
  check(create(&object, args...));
  return Object(object);
}

/// Of this processor. It is never destroyed: threads may outlive static objects.
dnnl_engine_t engine();

/// oneDNN divides a call among OpenMP's threads, but our calls are divided already. While this lives, the calling
/// thread has one for its parallel regions; other threads keep theirs.
class OneThread {
 public:
  OneThread() : before_(functions().omp_get_max_threads()) { functions().omp_set_num_threads(1); }
  OneThread(const OneThread&) = delete;
  ~OneThread() { functions().omp_set_num_threads(before_); }

 private:
  int before_;
};

}  // namespace reel::cpu::onednn
