// Ops on axes: reductions, layout, indices, products.
#include "python/src/python.h"

namespace reel::python {

using namespace nb::literals;

namespace {
/// Declares an op both as a function and as a method of Tensor.
template <class F, class... Extra>
void both(nb::module_& m, nb::class_<Tensor>& tensor, const char* name, F f, const Extra&... extra) {
  m.def(name, f, "x"_a, extra..., Released(), doc(name));
  tensor.def(name, f, extra..., Released(), doc(name));
}

/// A reduction with axes as NumPy has them: None stands for all, and () for none.
template <class... More>
auto over(Tensor (*f)(Arg, const Axes&, bool, More...)) {
  return [f](Arg x, const std::optional<Axes>& axes, bool keep_dims, More... more) {
    if (!axes || !axes->empty()) return f(x, axes.value_or(Axes()), keep_dims, more...);
    const Tensor rows = reshape(x, {x->numel(), 1});  // each element by itself
    return reshape({f({rows, x.where}, {-1}, false, more...), x.where}, {x->shape().begin(), x->shape().end()});
  };
}

/// A reduction with the names that NumPy's functions have. As np.sum(x, axis=0) calls the method, the result is a
/// tensor then, with its gradient.
template <class F, class... Extra>
void as_numpy_calls(nb::module_& m, nb::class_<Tensor>& tensor, const char* name, F f, const Extra&... extra) {
  const auto none = [](const char* option) { return nb::arg(option).none() = nb::none(); };
  const auto define = [&](auto& scope, const auto&... x) {
    scope.def(name, f, x..., none("axis"), nb::kw_only(), none("dtype"), none("out"), "keepdims"_a = false, extra...,
              doc(name));
  };
  define(m, "x"_a);
  define(tensor);
}

/// The extents that reshape(2, 3) was called with.
Axes extents_of(const nb::args& dims) {
  Axes extents;
  if (nb::try_cast(dims, extents)) return extents;
  const nb::object shown = dims.size() == 1 ? nb::object(dims[0]) : nb::object(dims);
  throw nb::type_error(fmt::format("reshape: extents are integers, got {}", nb::repr(shown).c_str()).c_str());
}

void refuse_options(const char* name, nb::handle dtype, nb::handle out) {
  if (!dtype.is_none() || !out.is_none()) fail(name, here(), "dtype and out must be None");
}
}  // namespace

void bind_ops(nb::module_& m, nb::class_<Tensor>& tensor) {
  const auto axes = [] { return "axes"_a.none() = nb::none(); };
  const auto axis_or_all = [] { return "axis"_a.none() = nb::none(); };
  const auto keep = [] { return "keep_dims"_a = false; };
  const auto reduction = [&](const char* name, auto of_axes) {
    const auto f = over(of_axes);
    both(m, tensor, name, f, axes(), keep());
    as_numpy_calls(m, tensor, name,
                   [name, f](Arg x, const std::optional<Axes>& axis, nb::handle dtype, nb::handle out, bool keepdims) {
                     refuse_options(name, dtype, out);
                     const GilRelease released;
                     return f(x, axis, keepdims);
                   });
  };
  reduction("sum", &sum);
  reduction("mean", &mean);
  reduction("prod", &prod);
  reduction("max", &max);
  reduction("min", &min);
  reduction("any", &any);
  reduction("all", &all);
  both(m, tensor, "argmax", &argmax, "axis"_a = -1);
  both(m, tensor, "argmin", &argmin, "axis"_a = -1);
  both(m, tensor, "cumsum", &cumsum, "axis"_a = -1, "reverse"_a = false);
  both(m, tensor, "cumprod", &cumprod, "axis"_a = -1);
  both(m, tensor, "cummax", &cummax, "axis"_a = -1);
  both(m, tensor, "cummin", &cummin, "axis"_a = -1);
  both(m, tensor, "argcummax", &argcummax, "axis"_a = -1);
  both(m, tensor, "argcummin", &argcummin, "axis"_a = -1);
  both(m, tensor, "logcumsumexp", &logcumsumexp, "axis"_a = -1);
  both(m, tensor, "argsort", &argsort, "axis"_a = -1, "descending"_a = false);
  both(m, tensor, "sort", &sort, "axis"_a = -1, "descending"_a = false);
  const auto first_k = [type = named_tuple(m, "TopKResult", "values indices").release()](Arg x, std::int64_t k,
                                                                                         std::int64_t axis) {
    TopKResult top;
    {
      const GilRelease released;
      top = top_k(x, k, axis);
    }
    return type(top.values, top.indices);
  };
  m.def("top_k", first_k, "x"_a, "k"_a, "axis"_a = -1, doc("top_k"),
        nb::sig("def top_k(x: Tensor | float | typing.SupportsComplex | numpy.ndarray, k: int, axis: int = -1) -> "
                "TopKResult"));
  tensor.def("top_k", first_k, "k"_a, "axis"_a = -1, doc("top_k"),
             nb::sig("def top_k(self, k: int, axis: int = -1) -> TopKResult"));
  const auto norm_over = [](Arg x, double p, const std::optional<Axes>& axes, bool keep_dims) {
    return over(+[](Arg y, const Axes& a, bool keep, double power) { return norm(y, power, a, keep); })(x, axes,
                                                                                                        keep_dims, p);
  };
  both(m, tensor, "norm", norm_over, "p"_a = 2.0, axes(), keep());
  both(m, tensor, "norm", norm_over, "p"_a = 2.0, axis_or_all(), nb::kw_only(), "keepdims"_a = false);
  const auto deviation = [&](const char* name, auto of_axes) {
    const auto f = over(of_axes);
    both(m, tensor, name, f, axes(), keep(), "correction"_a = 0.0);
    const auto call = [name, f](Arg x, const std::optional<Axes>& axis, nb::handle dtype, nb::handle out, bool keepdims,
                                double ddof) {
      refuse_options(name, dtype, out);
      const GilRelease released;
      return f(x, axis, keepdims, ddof);
    };
    as_numpy_calls(m, tensor, name, call, "ddof"_a = 0.0);
  };
  deviation("var", &var);
  deviation("std_dev", &std_dev);
  m.def(
      "sum_to", [](Arg x, const Axes& shape) { return sum_to(x, shape_of("sum_to", shape)); }, "x"_a, "shape"_a,
      doc("sum_to"));

  both(m, tensor, "softmax", &softmax, "axis"_a = -1);
  both(m, tensor, "log_softmax", &log_softmax, "axis"_a = -1);
  both(m, tensor, "logsumexp", over(&logsumexp), "axes"_a.none() = -1, keep());
  both(m, tensor, "logsumexp", over(&logsumexp), "axis"_a.none() = -1, nb::kw_only(), "keepdims"_a = false);
  m.def("standardize", &Numbered<&standardize>::call, "x"_a, "epsilon"_a = 1e-5, Released(), doc("standardize"));
  m.def("layer_norm", &Numbered<&layer_norm>::call, "x"_a, "gain"_a, "bias"_a, "epsilon"_a = 1e-5, Released(),
        doc("layer_norm"));

  both(m, tensor, "reshape", &reshape, "dims"_a);
  tensor.def(
      "reshape", [](Arg x, const nb::args& dims) { return reshape(x, extents_of(dims)); },
      nb::sig("def reshape(self, *dims: int) -> Tensor"), doc("reshape"));
  both(m, tensor, "permute", &permute, "order"_a);
  both(m, tensor, "slice", &slice, "axis"_a, "first"_a, "last"_a);
  both(m, tensor, "pad", &pad, "axis"_a, "before"_a, "after"_a);
  both(m, tensor, "roll", &roll, "shift"_a, "axis"_a = -1);
  both(m, tensor, "flip", &flip, "axis"_a = -1);
  both(m, tensor, "transpose", &transpose);
  both(m, tensor, "movedim", &movedim, "source"_a, "destination"_a);
  const auto squeezed = [](Arg x, const std::optional<Axes>& axes) {
    return axes && axes->empty() ? x.tensor("squeeze") : squeeze(x, axes.value_or(Axes()));
  };
  both(m, tensor, "squeeze", squeezed, axes());
  both(m, tensor, "squeeze", squeezed, axis_or_all());
  both(m, tensor, "unsqueeze", &unsqueeze, "axis"_a);
  both(m, tensor, "at", &at, "t"_a);
  both(m, tensor, "unstack", &unstack, "axis"_a = 0);
  both(m, tensor, "split", &split, "parts"_a, "axis"_a = -1);
  both(m, tensor, "split_with_sizes", &split_with_sizes, "sizes"_a, "axis"_a = -1);
  both(m, tensor, "tile", &tile, "counts"_a);
  both(m, tensor, "repeat", &repeat, "count"_a, "axis"_a = -1);
  tensor.def_prop_ro(
      "T", [](Arg x) { return transpose(x); }, doc("transpose"));
  m.def(
      "expand", [](Arg x, const Axes& shape) { return expand(x, shape_of("expand", shape)); }, "x"_a, "shape"_a,
      doc("expand"));
  m.def(
      "concat", [](const Tensors& parts, std::int64_t axis) { return concat(parts, axis, here()); }, "parts"_a,
      "axis"_a = 0, doc("concat"));
  m.def(
      "stack",
      [](const Tensors& parts, std::int64_t axis) {
        const Loc where = here();
        const Tensor y = stack(parts, where);
        return axis == 0 ? y : movedim({y, where}, 0, axis);
      },
      "parts"_a, "axis"_a = 0, "Tensors of one shape along a new axis.");

  both(m, tensor, "diag", &diag);
  both(m, tensor, "diag_embed", &diag_embed);
  both(m, tensor, "tril", &tril, "k"_a = 0);
  both(m, tensor, "triu", &triu, "k"_a = 0);

  const auto index = [] { return "index"_a; };
  m.def(
      "where",
      [](Arg condition, Side a, Side b) { return meeting(a, b, [&](Arg x, Arg y) { return where(condition, x, y); }); },
      "condition"_a, "a"_a, "b"_a, Released(), doc("where"));
  m.def(
      "cast", [](Arg x, DTypeLike dtype) { return cast(x, dtype.value); }, "x"_a, "dtype"_a, doc("cast"));
  tensor.def(
      "cast", [](Arg x, DTypeLike dtype) { return cast(x, dtype.value); }, "dtype"_a, doc("cast"));
  m.def("index_select", &index_select, "x"_a, "axis"_a, index(), Released(), doc("index_select"));
  m.def("index_add", &index_add, "values"_a, "axis"_a, index(), "count"_a, Released(), doc("index_add"));
  m.def("embedding", &embedding, index(), "table"_a, Released(), doc("embedding"));
  m.def("segment_sum", &segment_sum, index(), "rows"_a, "count"_a, Released(), doc("segment_sum"));
  m.def("take_along", &take_along, "x"_a, index(), "axis"_a = -1, Released(), doc("take_along"));
  m.def("scatter_add", &scatter_add, "values"_a, index(), "axis"_a, "n"_a, Released(), doc("scatter_add"));
  m.def("pick", &pick, "x"_a, index(), Released(), doc("pick"));
  m.def("place", &place, "value"_a, index(), "n"_a, Released(), doc("place"));
  m.def(
      "one_hot", [](Arg i, std::int64_t n, DTypeLike dtype) { return one_hot(i, n, dtype.value); }, index(), "n"_a,
      "dtype"_a = "f32", doc("one_hot"));
  m.def(
      "masked_fill",
      [](Side x, Arg mask, Side value) {
        return meeting(x, value, [&](Arg a, Arg b) { return masked_fill(a, mask, b); });
      },
      "x"_a, "mask"_a, "value"_a, Released(), doc("masked_fill"));

  m.def(
      "matmul",
      [](Arg a, Arg b, bool transpose_a, bool transpose_b, bool conj_a, bool conj_b) {
        return matmul(a, b, {transpose_a, transpose_b, conj_a, conj_b});
      },
      "a"_a, "b"_a, nb::kw_only(), "transpose_a"_a = false, "transpose_b"_a = false, "conj_a"_a = false,
      "conj_b"_a = false, Released(), doc("matmul"));
  m.def("linear", static_cast<Tensor (*)(Arg, Arg)>(&linear), "x"_a, "W"_a, Released(), doc("linear"));
  m.def("linear", static_cast<Tensor (*)(Arg, Arg, Arg)>(&linear), "x"_a, "W"_a, "b"_a, Released(), doc("linear"));
  m.def("dot", &dot, "a"_a, "b"_a, Released(), doc("dot"));
  m.def("vdot", &vdot, "a"_a, "b"_a, Released(), doc("vdot"));
  m.def("outer", &outer, "a"_a, "b"_a, Released(), doc("outer"));
  m.def("matrix_trace", &matrix_trace, "x"_a, Released(), doc("matrix_trace"));
  m.def("einsum", static_cast<Tensor (*)(const std::string&, Arg)>(&einsum), "subscripts"_a, "a"_a, Released(),
        doc("einsum"));
  m.def("einsum", static_cast<Tensor (*)(const std::string&, Arg, Arg)>(&einsum), "subscripts"_a, "a"_a, "b"_a,
        Released(), doc("einsum"));
  m.def("einsum", static_cast<Tensor (*)(const std::string&, Arg, Arg, Arg)>(&einsum), "subscripts"_a, "a"_a, "b"_a,
        "c"_a, Released(), doc("einsum"));
  m.def("einsum", static_cast<Tensor (*)(const std::string&, Arg, Arg, Arg, Arg)>(&einsum), "subscripts"_a, "a"_a,
        "b"_a, "c"_a, "d"_a, Released(), doc("einsum"));
}

}  // namespace reel::python
