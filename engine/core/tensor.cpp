#include "engine/core/tensor.h"

#include <atomic>

namespace reel {

namespace {
/// Ids are never reused and increase in the order in which values are created.
std::uint64_t next_id() {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}
}  // namespace

void Tensor::no_value(const char* subject, const Loc& where) const {
  fail(subject, where, "this tensor has no value: it {}",
       defined() ? "stands for one while a program is traced; got " + spec().str() : "is undefined");
}

std::string Spec::str() const { return fmt::format("{} {}", name_of(dtype), shape.str()); }

Tensor Tensor::empty(const Spec& spec) {
  if (!spec.backend) throw Error("empty", fmt::format("{} has no backend. Hint: &backend()", spec.str()));
  Tensor out = abstract(spec);
  try {
    out.storage_ = StoragePtr(spec.backend->allocate(out.bytes()));
  } catch (const OutOfMemory& e) {
    throw OutOfMemory("memory", fmt::format("no room for {}: {}", spec.str(), e.rule));
  }
  return out;
}

Tensor Tensor::abstract(const Spec& spec) {
  Tensor out;
  out.spec_ = spec;
  out.id_ = next_id();
  return out;
}

Tensor Tensor::borrow(Storage& memory, std::byte* data, const Spec& spec) {
  Tensor out = abstract(spec);
  memory.references = 1;  // never 0, so never released
  memory.backend = spec.backend;
  memory.data = data;
  memory.bytes = out.bytes();
  out.storage_ = StoragePtr(&memory);
  return out;
}

Tensor Tensor::full(const Shape& shape, std::complex<double> value, DType dtype, Backend& backend) {
  Tensor out = empty({dtype, shape, &backend});
  backend.fill({dtype, out.numel(), value, out.data()});
  return out;
}

Tensor Tensor::view(const Shape& shape, std::int64_t skip) const {
  if (skip < 0 || shape.numel() > numel() || skip > numel() - shape.numel())
    throw Error("view", fmt::format("{} from element {} on is not within {}", shape.str(), skip, spec_.str()));
  Tensor out = *this;
  out.spec_.shape = shape;
  out.id_ = next_id();
  if (concrete()) out.offset_ += static_cast<std::size_t>(skip) * size_of(dtype());
  return out;
}

Tensor Tensor::at(std::int64_t t, Loc where) const {
  if (rank() == 0 || t < 0 || t >= dim(0))
    fail("at", where, "there is no element {} along the first axis, the shape is {}", t, shape().str());
  const Shape rest = shape().erase(0);
  return view(rest, t * rest.numel());
}

Tensor Tensor::without_storage() const {
  Tensor out;
  out.spec_ = spec_;
  out.id_ = id_;
  return out;
}

double Tensor::item(Loc where) const {
  if (!concrete()) no_value("item", where);
  if (numel() != 1) fail("item", where, "one element expected, shape is {}", shape().str());
  return dispatch(dtype(), [&]<class T>(std::type_identity<T>) -> double {
    T value;
    backend().read(&value, data(), sizeof value);
    return static_cast<double>(std::real(value));
  });
}

void Tensor::mark_changed(Loc where) {
  if (!concrete()) no_value("mark_changed", where);
  ++storage_->version;
}

void Tensor::assign(const Tensor& source, Loc where) {
  if (!concrete() || !source.concrete()) (concrete() ? source : *this).no_value("assign", where);
  if (!(source.spec() == spec())) fail("assign", where, "{} cannot replace {}", source.spec().str(), spec().str());
  if (source.storage() == storage()) {  // their elements may overlap
    Tensor apart = empty(spec());
    apart.assign(source);
    return assign(apart);
  }
  StridedLoop<2> loop;
  loop.push(numel(), {1, 1});
  backend().copy({dtype(), loop, source.data(), data()});
  mark_changed();
}

void Tensor::check_type(DType wanted, const Loc& where) const {
  if (!concrete()) no_value("values", where);
  if (dtype() != wanted) fail("values", where, "elements are {}, {} was asked for", name_of(dtype()), name_of(wanted));
}

}  // namespace reel
