// Files: tensors in safetensors, and text that is replaced as a whole. reel/_files.py has what users call.
#include <nanobind/ndarray.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>

#include <filesystem>
#include <string_view>

#include "backends/cpu/product_libraries.h"
#include "python/src/python.h"
#include "tasks/app/provenance.h"
#include "tasks/io/files.h"
#include "tasks/training/safetensors.h"

namespace reel::python {

namespace {

nb::tuple load(const std::filesystem::path& path) {
  TensorFile file;
  {
    const nb::gil_scoped_release released;
    file = load_safetensors(path.string());
  }
  nb::dict tensors;
  for (const auto& [name, tensor] : file.tensors) tensors[nb::cast(name)] = tensor;
  return nb::make_tuple(tensors, file.metadata);
}

/// What is no tensor, with a hint where reel.tensor() makes one: "an array of int64. Hint: reel.tensor(x)".
std::string kind_of(nb::handle x) {
  if (!nb::ndarray_check(x) || !nb::hasattr(x, "dtype")) return nb::type_name(x.type()).c_str();
  const nb::object dtype = x.attr("dtype");
  const nb::str kind(nb::getattr(dtype, "kind", nb::str("f")));
  const bool numbers = std::string_view("iufcb").find(kind.c_str()) != std::string_view::npos;
  return fmt::format("an array of {}{}", nb::str(dtype).c_str(), numbers ? ". Hint: reel.tensor(x)" : "");
}

void save(const std::filesystem::path& path, const nb::dict& tensors,
          const std::map<std::string, std::string>& metadata) {
  TensorFile file{.tensors = {}, .metadata = metadata};
  for (const auto [key, value] : tensors) {
    const std::string name = nb::cast<std::string>(nb::str(key));
    const bool detach = nb::getattr(value, "requires_grad", nb::none()).is(Py_True);  // a parameter of PyTorch's
    const std::optional<Tensor> tensor = as_tensor(detach ? value.attr("detach")() : nb::borrow(value));
    if (!tensor)
      fail("save_safetensors", here(), "{} must be a tensor, or an array of f32, f64, c64, c128, i32 or bool, got {}",
           name, kind_of(value));
    if (!tensor->concrete()) fail("save_safetensors", here(), "{} has no value", name);
    file.tensors.emplace_back(name, *tensor);
  }
  const nb::gil_scoped_release released;
  save_safetensors(path.string(), file);
}

}  // namespace

void bind_files(nb::module_& m) {
  m.def("_load_safetensors", &load);
  m.def("_save_safetensors", &save);
  m.def("_provenance", [] {
    return std::map<std::string, std::string>{
        {"processor", processor()}, {"date", utc_now()}, {"kernels", cpu::product_libraries()}, {"commit", commit()}};
  });
  m.def("_write_atomically",
        [](const std::filesystem::path& path, const std::string& text) { write_atomically(path.string(), text); });
}

}  // namespace reel::python
