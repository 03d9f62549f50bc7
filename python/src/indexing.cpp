// x[...]: integers, slices, None, Ellipsis, and one tensor of indices, as NumPy has them; each becomes ops.
#include <algorithm>

#include "python/src/python.h"

namespace reel::python {

namespace {

[[noreturn]] void refuse(const Tensor& x, const std::string& rule) {
  throw IndexingError(fmt::format("{}; got {}", rule, x.spec().str()), here());
}

/// The index counted from the start of an axis of n; below 0 it counts from the end.
std::int64_t from_start(std::int64_t i, std::int64_t n) {
  if (i < -n || i >= n) throw IndexingError(fmt::format("index {} is not in an axis of {}", i, n), here());
  return i < 0 ? i + n : i;
}

/// Every second element, and the like: the indices start, start + step, ..., along an axis.
Tensor strided(const Tensor& x, std::int64_t axis, Py_ssize_t start, Py_ssize_t step, Py_ssize_t count, Loc where) {
  if (x.dim(static_cast<int>(axis)) > std::numeric_limits<std::int32_t>::max())
    throw IndexingError("steps other than 1 take axes of up to 2147483647 elements", where);
  std::vector<std::int32_t> indices;
  for (Py_ssize_t i = 0; i < count; ++i) indices.push_back(static_cast<std::int32_t>(start + i * step));
  const Tensor index = Tensor::from(std::span<const std::int32_t>(indices), {count}, x.backend());
  return index_select({x, where}, axis, {index, where});
}

Tensor sliced(const Tensor& x, std::int64_t axis, nb::handle slice_object, Loc where) {
  for (const char* part : {"start", "stop", "step"}) {
    const Tensor* bound = nullptr;
    if (nb::try_cast(slice_object.attr(part), bound) && bound && !bound->concrete())
      refuse(x, "the bounds of a slice are numbers, not values of a traced step. Hint: x[start + reel.arange(n)]");
  }
  Py_ssize_t start = 0, stop = 0, step = 0;
  if (PySlice_Unpack(slice_object.ptr(), &start, &stop, &step) < 0) throw nb::python_error();
  const std::int64_t n = x.dim(static_cast<int>(axis));
  const Py_ssize_t count = PySlice_AdjustIndices(n, &start, &stop, step);
  if (step == 1) return count == n ? x : slice({x, where}, axis, start, start + count);
  if (step == -1 && count == n) return flip({x, where}, axis);
  return strided(x, axis, start, step, count, where);
}

/// Element i of an axis, which goes.
Tensor element(const Tensor& x, std::int64_t axis, Py_ssize_t i, Loc where) {
  i = static_cast<Py_ssize_t>(from_start(i, x.dim(static_cast<int>(axis))));
  if (axis == 0) return at({x, where}, i);
  return squeeze({slice({x, where}, axis, i, i + 1), where}, {axis});
}

/// Indices below 0 count from the end of an axis of n. Those of a step that is traced are not known, and stay.
Tensor from_start(const Tensor& index, std::int64_t n) {
  if (!index.concrete()) return index;
  std::vector<std::int32_t> found = index.values<std::int32_t>();
  if (std::ranges::all_of(found, [n](std::int32_t i) { return 0 <= i && i < n; })) return index;
  for (std::int32_t& i : found) i = static_cast<std::int32_t>(from_start(i, n));
  return Tensor::from(std::span<const std::int32_t>(found), index.shape(), index.backend());
}

/// A tensor or list of indices, if it is one. A list without elements has none of another dtype.
std::optional<Tensor> indices(nb::handle item) {
  if (!PyList_Check(item.ptr())) return as_operand(item);
  return PyList_Size(item.ptr()) == 0 ? Tensor::zeros({0}, DType::i32) : made_by_tensor(item);
}

Tensor indexed(const Tensor& x, nb::handle key) {
  const Loc where = here();
  const nb::tuple items = nb::isinstance<nb::tuple>(key) ? nb::borrow<nb::tuple>(key) : nb::make_tuple(key);
  std::int64_t used = 0;
  int groups = 0;  // of integers and tensors side by side
  bool ellipsis = false, neighbour = false;
  for (const nb::handle item : items) {
    const bool indexes = !item.is(Py_Ellipsis) && !item.is_none() && !PySlice_Check(item.ptr());
    groups += indexes && !neighbour;
    neighbour = indexes;
    if (item.is(Py_Ellipsis)) {
      if (std::exchange(ellipsis, true)) refuse(x, "an index has one ellipsis (...) at most");
    } else if (!item.is_none()) {
      ++used;
    }
  }
  if (used > x.rank()) refuse(x, fmt::format("too many indices, {}, for a tensor of rank {}", used, x.rank()));
  Tensor y = x;
  std::int64_t axis = 0;
  std::optional<std::int64_t> selected;  // where the tensor's axes are
  int rank = 0;                          // how many
  for (const nb::handle item : items) {
    if (item.is(Py_Ellipsis)) {
      axis += x.rank() - used;
    } else if (item.is_none()) {
      y = unsqueeze({y, where}, axis++);
    } else if (PySlice_Check(item.ptr())) {
      y = sliced(y, axis++, item, where);
    } else if (PyIndex_Check(item.ptr()) && !PySequence_Check(item.ptr()) && !PyBool_Check(item.ptr())) {
      const Py_ssize_t i = PyNumber_AsSsize_t(item.ptr(), PyExc_IndexError);
      if (i == -1 && PyErr_Occurred()) throw nb::python_error();
      y = element(y, axis, i, where);
    } else {
      const std::optional<Tensor> index = indices(item);
      if (!index || index->dtype() != DType::i32)
        refuse(x, "an index is an integer, a slice, None, ..., an i32 tensor or a list. Hint: where() for a condition");
      if (selected) refuse(x, "one tensor of indices at most. Hint: take_along, pick");
      selected = axis;
      y = index_select({y, where}, axis, {from_start(*index, y.dim(static_cast<int>(axis))), where});
      axis += index->rank();
      rank = index->rank();
    }
  }
  // NumPy cannot tell which place is meant then, and puts the tensor's axes first.
  for (int i = 0; selected && groups > 1 && i < rank; ++i) y = movedim({y, where}, *selected + i, i);
  return y;
}

}  // namespace

void bind_indexing(nb::class_<Tensor>& tensor) {
  tensor
      .def("__getitem__", &indexed, nb::arg("key").none(), nb::sig("def __getitem__(self, key: object) -> Tensor"),
           "Elements by integers, slices, None, ... and one i32 tensor or list, as in NumPy. Recorded, with a "
           "gradient. In a step of scan() the tensor's indices are 0 or more.")
      .def(
          "__iter__",
          [](nb::handle self) {
            if (nb::cast<const Tensor&>(self).rank() == 0) throw nb::type_error("iteration over a 0-d tensor");
            return nb::steal(PySeqIter_New(self.ptr()));
          },
          nb::sig("def __iter__(self) -> collections.abc.Iterator[Tensor]"))
      .def("__len__", [](const Tensor& x) {
        if (x.rank() == 0) throw nb::type_error("a scalar has no length");
        return x.dim(0);
      });
}

}  // namespace reel::python
