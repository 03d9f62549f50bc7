// What the Python array API standard asks of a tensor beside its operators; reel/array_api/ has the functions.
#include "python/src/python.h"

namespace reel::python {

using namespace nb::literals;

namespace {

nb::object array_namespace(const Tensor&, std::optional<std::string> version) {
  nb::object found = nb::module_::import_("reel.array_api");
  const auto ours = nb::cast<std::string>(found.attr("__array_api_version__"));
  if (version && (*version < "2021.12" || *version > ours))
    throw nb::value_error(fmt::format("reel.array_api follows {}, not {}", ours, *version).c_str());
  return found;
}

Tensor to_device(const Tensor& x, const std::string& device, nb::handle) {
  if (device != "cpu") throw nb::value_error(fmt::format("the device is \"cpu\", got \"{}\"", device).c_str());
  return x;
}

nb::object index_of(nb::handle self) {
  const Tensor& x = nb::cast<const Tensor&>(self);
  if (x.dtype() != DType::i32 || x.numel() != 1)
    throw nb::type_error(fmt::format("one i32 element is an index, not {}", x.spec().str()).c_str());
  return self.attr("item")();
}

}  // namespace

void bind_array_api(nb::class_<Tensor>& tensor) {
  tensor
      .def("__array_namespace__", &array_namespace, nb::kw_only(), "api_version"_a.none() = nb::none(),
           "reel.array_api, the functions of the Python array API standard.")
      .def_prop_ro(
          "device", [](const Tensor&) { return "cpu"; }, "Where the elements are: \"cpu\".")
      .def("to_device", &to_device, "device"_a, nb::kw_only(), "stream"_a.none() = nb::none(),
           "The tensor itself, for \"cpu\"; ValueError for other devices.")
      .def_prop_ro(
          "mT", [](Arg x) { return movedim(x, -1, -2); }, "The last two axes exchanged.")
      .def("__index__", &index_of, nb::sig("def __index__(self) -> int"));
}

}  // namespace reel::python
