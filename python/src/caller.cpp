// The line of Python code that called, as a std::source_location, so that Reel's errors name it.
#include <algorithm>
#include <bit>
#include <map>

#include "python/src/python.h"

namespace reel::python {

namespace {
/// What a std::source_location of GCC's and Clang's libraries points to. layout_is_known() compares it with the
/// compiler's.
struct SourceLine {
  const char* file;
  const char* function;
  unsigned line, column;
};
static_assert(sizeof(Loc) == sizeof(void*) && std::is_trivially_copyable_v<Loc>);

bool layout_is_known() {
  const Loc compiled = Loc::current();
  const auto* inside = std::bit_cast<const SourceLine*>(compiled);
  return inside->file == compiled.file_name() && inside->line == compiled.line();
}

std::string package_folder;
std::vector<std::string> library_folders;  // of Python itself

bool is_installed(std::string_view path) {
  if (path.find("/site-packages/") != path.npos || path.find("/dist-packages/") != path.npos) return true;
  return path.starts_with("<frozen ") || std::any_of(library_folders.begin(), library_folders.end(),
                                                     [&](const std::string& f) { return path.starts_with(f); });
}

/// Whether a frame is of this package, or of what is installed beside it, and its line unless it is ours.
struct Place {
  bool ours = false, installed = false;
  Loc where;
};

Place place_of(PyCodeObject* code, PyFrameObject* frame) {
  const char* file = PyUnicode_AsUTF8(code->co_filename);
  if (!file) PyErr_Clear();
  const std::string_view path = file ? file : "";
  if (!package_folder.empty() && path.starts_with(package_folder)) return {true, false, {}};
  const std::size_t slash = path.rfind('/');
  const auto* line = new SourceLine{slash == path.npos ? path.data() : path.data() + slash + 1, "",
                                    static_cast<unsigned>(PyFrame_GetLineNumber(frame)), 0};
  return {false, is_installed(path), std::bit_cast<Loc>(line)};
}

/// The place of a frame. Places are kept as long as the process lives, as tapes and plans keep them, and so are the
/// code objects that they are found by. The interpreter's lock guards them.
const Place& known_place(PyFrameObject* frame) {
  static auto& places = *new std::map<std::pair<PyCodeObject*, int>, Place>;
  PyCodeObject* const code = PyFrame_GetCode(frame);
#if PY_VERSION_HEX >= 0x030B0000
  const int position = PyFrame_GetLasti(frame);
#else
  const int position = PyFrame_GetLineNumber(frame);
#endif
  const auto found = places.find({code, position});
  if (found != places.end()) {
    Py_DECREF(code);
    return found->second;
  }
  return places.emplace(std::pair{code, position}, place_of(code, frame)).first->second;
}
}  // namespace

void set_folders(const std::string& package, const std::vector<std::string>& libraries) {
  package_folder = package;
  library_folders = libraries;
}

Loc here() {
  static const bool known = layout_is_known();
  PyFrameObject* frame = known && PyGILState_Check() ? PyEval_GetFrame() : nullptr;
  Py_XINCREF(frame);
  std::optional<Loc> library;  // the innermost line there, if no user's line is near
  for (int depth = 0; frame && depth < 32; ++depth) {
    const Place& place = known_place(frame);
    const bool users = !place.ours && !place.installed;
    PyFrameObject* const back = users ? nullptr : PyFrame_GetBack(frame);
    Py_DECREF(frame);
    if (users) return place.where;
    if (!place.ours && !library) library = place.where;
    frame = back;
  }
  Py_XDECREF(frame);
  return library.value_or(Loc::current());
}

}  // namespace reel::python
