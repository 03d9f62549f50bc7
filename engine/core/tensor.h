// A tensor is a handle: dtype, shape, and an offset into a storage that it may share with others. Copying a handle
// copies no element. Tensors are contiguous and row-major; only reshapes and slices along the leading axis share
// storage.
//
// A tensor with a shape but no storage is *abstract*; programs are traced on those.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "engine/core/dtype.h"
#include "engine/core/error.h"
#include "engine/core/shape.h"
#include "engine/device/backend.h"

namespace reel {

/// The dtype, shape and device of a tensor, known before its value.
struct Spec {
  DType dtype = DType::f32;
  Shape shape;
  Backend* backend = nullptr;
  bool operator==(const Spec&) const = default;
  /// "f32 (20, 128)"
  std::string str() const;
};

class Tensor {
 public:
  /// An undefined tensor: defined() is false. As a gradient it means zero.
  Tensor() = default;

  /// Allocates uninitialised elements.
  static Tensor empty(const Spec& spec);
  /// A spec without elements, for tracing.
  static Tensor abstract(const Spec& spec);
  /// Wraps external memory at `data`. `memory` becomes the tensor's storage, and must outlive it.
  static Tensor borrow(Storage& memory, std::byte* data, const Spec& spec);
  /// Copies host values; throws Error when there are not as many as the shape has elements.
  template <class T>
  static Tensor from(std::span<const T> values, const Shape& shape, Backend& backend = reel::backend());
  template <class T>
  static Tensor from(std::initializer_list<T> values, const Shape& shape, Backend& backend = reel::backend()) {
    return from(std::span<const T>(values.begin(), values.size()), shape, backend);
  }
  static Tensor full(const Shape& shape, std::complex<double> value, DType dtype = DType::f32,
                     Backend& backend = reel::backend());
  static Tensor zeros(const Shape& shape, DType dtype = DType::f32, Backend& backend = reel::backend()) {
    return full(shape, 0, dtype, backend);
  }

  bool defined() const { return id_ != 0; }
  bool concrete() const { return static_cast<bool>(storage_); }
  const Spec& spec() const { return spec_; }
  DType dtype() const { return spec_.dtype; }
  const Shape& shape() const { return spec_.shape; }
  Backend& backend() const { return *spec_.backend; }
  int rank() const { return spec_.shape.rank(); }
  /// Extent of an axis; negative counts from the end. Throws RuleError for an axis that is not there.
  std::int64_t dim(int axis) const { return spec_.shape[checked_axis(axis, rank())]; }
  std::int64_t numel() const { return spec_.shape.numel(); }
  std::size_t bytes() const { return static_cast<std::size_t>(numel()) * size_of(dtype()); }

  /// The id of the value: the same in all copies of the handle, a new one for every result of an op.
  std::uint64_t id() const { return id_; }
  /// The first element. Throws Error for a tensor without a value, as in a traced step.
  const void* data(Loc where = Loc::current()) const { return first(where); }
  void* data(Loc where = Loc::current()) { return first(where); }
  /// The same for the host, which computes with the elements: in a time loop an op that asks for it is called at each
  /// step. What a kernel takes is data().
  template <class T>
  T* data_as(Loc where = Loc::current()) {
    return static_cast<T*>(first(where, true));
  }
  template <class T>
  const T* data_as(Loc where = Loc::current()) const {
    return static_cast<const T*>(first(where, true));
  }

  /// How often the storage was changed in place; see mark_changed.
  std::uint32_t version() const { return storage_ ? storage_->version : 0; }
  /// Call it after writing into the elements, so that a gradient that needs the old ones throws.
  void mark_changed(Loc where = Loc::current());
  const Storage* storage() const { return storage_.get(); }

  /// A view of another shape that starts `skip` elements further on. It is a new value that shares storage, and is not
  /// recorded: gradients pass through the op reshape(x, dims).
  Tensor view(const Shape& shape, std::int64_t skip = 0) const;
  /// Element t of the leading axis: [T, ...] -> [...], sharing storage. Throws Error unless 0 <= t < T. It is
  /// not recorded: gradients pass through the op at(x, t).
  Tensor at(std::int64_t t, Loc where = Loc::current()) const;
  /// The same value without its storage.
  Tensor without_storage() const;

  /// The elements on the host; throws Error when T is not the dtype's type, or when the tensor is abstract.
  template <class T>
  std::vector<T> values(Loc where = Loc::current()) const;
  /// The only element, as a double (its real part if complex); throws Error when there are more, or when the tensor is
  /// abstract.
  double item(Loc where = Loc::current()) const;
  /// Overwrites the elements with those of a tensor of the same spec. Throws Error while a step is traced.
  void assign(const Tensor& source, Loc where = Loc::current());
  /// "f32 (2, 3) [[1, 2, 3], [4, 5, 6]]"; long axes are abbreviated.
  std::string str() const;

 private:
  void* first(const Loc& where, bool on_host = false) const {
    if (!storage_) no_value("data", where);
    if (on_host) storage_->backend->host_access();
    return storage_->data + offset_;
  }
  [[noreturn]] void no_value(const char* subject, const Loc& where) const;
  /// Throws Error unless the tensor has values, of this type.
  void check_type(DType wanted, const Loc& where) const;

  StoragePtr storage_;
  std::size_t offset_ = 0;  // in bytes
  std::uint64_t id_ = 0;
  Spec spec_;
};

using Tensors = std::vector<Tensor>;

template <class T>
Tensor Tensor::from(std::span<const T> values, const Shape& shape, Backend& backend) {
  if (static_cast<std::int64_t>(values.size()) != shape.numel())
    throw Error("from", fmt::format("{} values do not fill shape {}", values.size(), shape.str()));
  Tensor out = empty({dtype_of<T>(), shape, &backend});
  backend.write(out.data(), values.data(), out.bytes());
  return out;
}

template <class T>
std::vector<T> Tensor::values(Loc where) const {
  check_type(dtype_of<T>(), where);
  if constexpr (std::is_same_v<T, bool>) {  // std::vector<bool> has no array inside
    std::vector<char> raw(static_cast<std::size_t>(numel()));
    backend().read(raw.data(), data(), bytes());
    return {raw.begin(), raw.end()};
  } else {
    std::vector<T> out(static_cast<std::size_t>(numel()));
    backend().read(out.data(), data(), bytes());
    return out;
  }
}

}  // namespace reel
