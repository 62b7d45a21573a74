// The running Python frames, read without making frame objects. C, because CPython's internal headers are.
#define Py_BUILD_CORE 1
#include <Python.h>
#if PY_VERSION_HEX < 0x030d0000
#include <internal/pycore_frame.h>
#endif

// Steps through the frames of this thread, innermost first: *cursor starts null. Returns a borrowed code
// object and the offset of its current instruction, or null at the end.
PyCodeObject* rl_next_frame(void** cursor, int* offset) {
#if PY_VERSION_HEX < 0x030d0000
  PyThreadState* state = PyThreadState_GET();
  _PyInterpreterFrame* frame = *cursor ? ((_PyInterpreterFrame*)*cursor)->previous : state->cframe->current_frame;
  while (frame && _PyFrame_IsIncomplete(frame)) frame = frame->previous;
  *cursor = frame;
  if (!frame) return NULL;
  *offset = _PyInterpreterFrame_LASTI(frame) * (int)sizeof(_Py_CODEUNIT);
  return frame->f_code;
#else
  PyFrameObject* frame =
      *cursor ? PyFrame_GetBack((PyFrameObject*)*cursor) : PyThreadState_GetFrame(PyThreadState_Get());
  *cursor = frame;
  if (!frame) return NULL;
  PyCodeObject* code = PyFrame_GetCode(frame);
  *offset = PyFrame_GetLasti(frame);
  Py_DECREF(code);   // kept alive by the frame
  Py_DECREF(frame);  // kept alive by the thread while it runs
  return code;
#endif
}
