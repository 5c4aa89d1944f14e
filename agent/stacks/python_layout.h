// Where CPython keeps what runs, by version: offsets in its structures, as its headers have them on 64-bit machines
// (Include/cpython/pystate.h, frameobject.h, code.h, unicodeobject.h, internal/pycore_frame.h; 3.8 to 3.13).
//
// Frames are read, and not asked for by CPython's functions: most allocations are made with the interpreter's lock
// given up, and without it these functions may not be called.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace memopt::agent {

struct PythonLayout {
  // How a frame says which instruction it is at.
  enum class At : std::uint8_t {
    kByte,     // int: byte of the code
    kUnit,     // int: number of the instruction, two bytes each
    kPointer,  // to the instruction, in the code object
  };

  std::uint16_t thread_frame;  // in PyThreadState: the innermost frame, or what points to it
  std::int16_t holder_frame;   // in that (_PyCFrame); -1: thread_frame is the frame itself
  std::uint16_t previous;      // in a frame
  std::uint16_t code;
  std::uint16_t instruction;
  At at;
  std::int16_t owner;          // byte of a frame that says what it belongs to; -1: there is none
  std::uint16_t instructions;  // in PyCodeObject, for kPointer
  std::uint16_t file;          // str
  std::uint16_t name;          // str: with the names of what it lies in, from 3.11 on
  std::uint16_t ascii_header;  // sizeof PyASCIIObject, behind which the characters of an ASCII string are
  std::uint16_t other_header;  // sizeof PyCompactUnicodeObject, of others
};

// The same in all of these versions.
inline constexpr std::size_t kPythonType = 8;         // of any object
inline constexpr std::size_t kPythonTextLength = 16;  // characters of a str
inline constexpr std::size_t kPythonTextState = 32;   // bits: 2 interned, 3 bytes of a character, compact, ASCII
inline constexpr std::uint8_t kPythonFrameOfC = 3;    // `owner` of a frame that is none of the program's

// `version`: what Py_GetVersion() returns, "3.11.7 (main, ...". Null: frames of this version can't be read
// (free-threaded ones have other objects).
const PythonLayout* python_layout(std::string_view version) noexcept;

}  // namespace memopt::agent
