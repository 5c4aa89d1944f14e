// The Python code that the calling thread is in, read from the interpreter's memory: its lock is neither needed nor
// taken, and nothing of it changes. What the calling thread's frames are does not change under it, whichever thread has
// the lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "agent/stacks/python_layout.h"

namespace memopt::agent {

struct PythonFrame {
  const void* code = nullptr;     // the code object
  std::uint32_t instruction = 0;  // byte of its code
};

// Of a process with one CPython that exports its names (its own program, or libpython). Any thread.
class PythonInterpreter {
 public:
  static constexpr std::size_t kMaxText = 1024;

  // By the names of all loaded objects. Takes the dynamic linker's lock. Check with `found`.
  static PythonInterpreter find() noexcept;
  constexpr PythonInterpreter() = default;

  bool found() const noexcept { return layout_ != nullptr; }

  // The calling thread's frames, innermost first; returns how many, 0 where it runs no Python. Of more than there is
  // room for, the innermost.
  //
  // The first frames of a process that are asked for are checked, each word before it is read. If one is not what this
  // version's should be, the layout is another one's, and there is nothing from then on.
  std::size_t frames(std::span<PythonFrame> frames) noexcept;

  // "name (file:line)", in UTF-8, cut where `text` ends. Each word is checked before it is read; "" if something is
  // not what it should be. The frame must be one of the calling thread's present ones: its code could be gone
  // otherwise.
  std::size_t describe(const PythonFrame& frame, std::span<char> text) const noexcept;

 private:
  enum class Trust : std::uint8_t { kUnknown, kChecked, kRefused };

  const void* innermost() const noexcept;
  bool is_code(const void* object) const noexcept;
  template <typename To>
  bool copy_text(const void* object, To* to) const noexcept;
  template <bool kGuarded>
  std::size_t walk(std::span<PythonFrame> frames, bool* right) const noexcept;

  const PythonLayout* layout_ = nullptr;
  void* (*thread_state_)() = nullptr;  // PyGILState_GetThisThreadState: may be called without the lock
  int (*line_)(const void* code, int instruction) = nullptr;  // PyCode_Addr2Line: reads only
  const void* code_type_ = nullptr;
  const void* text_type_ = nullptr;
  Trust trust_ = Trust::kUnknown;
};

}  // namespace memopt::agent
