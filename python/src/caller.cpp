// The line of Python code that called, as a std::source_location, so that Reel's errors name it.
#include <bit>
#include <map>
#include <mutex>

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

/// One SourceLine for each line that ever called; they live as long as the process, as tapes and plans keep them.
Loc interned(const char* file, unsigned line) {
  static std::mutex mutex;
  static auto& files = *new std::map<std::string, std::map<unsigned, SourceLine>, std::less<>>;
  const std::lock_guard lock(mutex);
  auto found = files.find(std::string_view(file));
  if (found == files.end()) found = files.try_emplace(file).first;
  const auto at = found->second.try_emplace(line, SourceLine{found->first.c_str(), "", line, 0}).first;
  return std::bit_cast<Loc>(static_cast<const SourceLine*>(&at->second));
}
}  // namespace

void set_package_folder(const std::string& folder) { package_folder = folder; }

Loc here() {
  static const bool known = layout_is_known();
  PyFrameObject* frame = known && PyGILState_Check() ? PyEval_GetFrame() : nullptr;
  Py_XINCREF(frame);
  while (frame) {
    PyCodeObject* const code = PyFrame_GetCode(frame);
    const char* file = PyUnicode_AsUTF8(code->co_filename);
    if (!file) PyErr_Clear();
    const std::string_view path = file ? file : "";
    if (package_folder.empty() || !path.starts_with(package_folder)) {
      const std::size_t slash = path.rfind('/');
      const Loc where = interned(slash == path.npos ? path.data() : path.data() + slash + 1,
                                 static_cast<unsigned>(PyFrame_GetLineNumber(frame)));
      Py_DECREF(code);
      Py_DECREF(frame);
      return where;
    }
    Py_DECREF(code);
    PyFrameObject* const back = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = back;
  }
  return Loc::current();
}

}  // namespace reel::python
