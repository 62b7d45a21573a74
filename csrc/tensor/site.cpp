#include "tensor/site.h"

#include <cctype>
#include <cstring>

extern "C" PyCodeObject* rl_next_frame(void** cursor, int* offset);

namespace rl {

bool g_sites_enabled = true;

namespace {

std::string g_library;  // "/…/rushlight/"

struct FileKind {
  PyObject* file = nullptr;  // owned, so that the address stays its own
  bool library = false;
};
FileKind g_files[256];

}  // namespace

bool Site::is_library(PyCodeObject* code) {
  PyObject* file = code->co_filename;
  FileKind& slot = g_files[(reinterpret_cast<uintptr_t>(file) >> 4) & 255];
  if (slot.file == file) return slot.library;
  const char* path = PyUnicode_AsUTF8(file);
  if (!path) PyErr_Clear();
  bool library = path && ((!g_library.empty() && std::strncmp(path, g_library.c_str(), g_library.size()) == 0) ||
                          std::strncmp(path, "<frozen", 7) == 0);
  Py_INCREF(file);
  Py_XDECREF(slot.file);
  slot = {file, library};
  return library;
}

namespace {

std::string utf8(PyObject* text) {
  const char* s = text ? PyUnicode_AsUTF8(text) : nullptr;
  if (!s) PyErr_Clear();
  return s ? s : "";
}

}  // namespace

void Site::set_library_prefix(const char* path) { g_library = path; }
void Site::enable(bool on) { g_sites_enabled = on; }
bool Site::enabled() { return g_sites_enabled; }

Site Site::here() {
  if (!g_sites_enabled) return {};
  void* cursor = nullptr;
  int offset = 0;
  while (PyCodeObject* code = rl_next_frame(&cursor, &offset))
    if (!is_library(code)) return Site(code, offset);
  return {};
}

int Site::line() const { return code_ ? PyCode_Addr2Line(code_, offset_) : 0; }
std::string Site::file() const { return code_ ? utf8(code_->co_filename) : ""; }
std::string Site::function() const { return code_ ? utf8(code_->co_name) : ""; }

std::string Site::source() const {
  if (!code_) return "";
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  std::string result;
  if (PyObject* linecache = PyImport_ImportModule("linecache")) {
    PyObject* text = PyObject_CallMethod(linecache, "getline", "Oi", code_->co_filename, line());
    PyObject* stripped = text ? PyObject_CallMethod(text, "strip", nullptr) : nullptr;
    result = utf8(stripped);
    Py_XDECREF(stripped);
    Py_XDECREF(text);
    Py_DECREF(linecache);
  }
  PyErr_Clear();
  PyErr_Restore(type, value, trace);
  return result;
}

std::string Site::assigned() const {
  std::string line = source();
  size_t eq = line.find('=');
  if (eq == std::string::npos || eq == 0 || line[eq + 1] == '=') return "";
  std::string name = line.substr(0, line.find_last_not_of(" ", eq - 1) + 1);
  for (char c : name)
    if (!(std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == ',' || c == ' ')) return "";
  return name;
}

std::string Site::describe() const {
  if (!code_) return "";
  std::string s = file() + ":" + std::to_string(line());
  if (std::string name = function(); !name.empty() && name != "<module>") s += ", in " + name;
  if (std::string text = source(); !text.empty()) s += ": `" + text + "`";
  return s;
}

}  // namespace rl
