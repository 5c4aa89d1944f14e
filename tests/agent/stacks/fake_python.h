// CPython 3.13, played by a binary of tests: it has the interpreter's names, and objects as that version lays them out.
// For one source of a binary, which is linked with ENABLE_EXPORTS. Real ones, and what they say of themselves:
// tests/tools/memoptctl/recording/stack_names_test.py.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace fake_python {

struct Object {
  std::int64_t count = 1;
  const void* type = nullptr;
};
// 3.13: PyASCIIObject, then its characters.
struct Text {
  Object object;
  std::int64_t length = 0;
  std::int64_t hash = 0;
  std::uint32_t state = 0;
  std::array<char, 256> characters{};
};
struct Code {
  Object object;
  std::array<std::byte, 96> before{};
  const void* file = nullptr;  // 112
  const void* name = nullptr;
  const void* qualified_name = nullptr;  // 128
  std::array<std::byte, 64> after{};
  std::array<std::byte, 64> instructions{};  // 200
};
struct Frame {
  const void* code = nullptr;
  Frame* previous = nullptr;
  std::array<std::byte, 40> between{};
  const void* instruction = nullptr;  // 56
  std::int32_t top = 0;
  std::uint16_t offset = 0;
  std::uint8_t owner = 0;  // 70
};
struct Thread {
  std::array<std::byte, 72> before{};
  Frame* frame = nullptr;
};
static_assert(offsetof(Text, characters) >= 36 && offsetof(Code, file) == 112 && offsetof(Code, instructions) == 200);
static_assert(offsetof(Frame, instruction) == 56 && offsetof(Frame, owner) == 70 && offsetof(Thread, frame) == 72);

inline Thread g_thread;
inline Thread* g_current = &g_thread;
inline std::string g_version = "3.13.1 (main, Dec 3 2024) [GCC]";

}  // namespace fake_python

extern "C" {
[[gnu::visibility("default")]] fake_python::Object PyCode_Type, PyUnicode_Type;
[[gnu::visibility("default")]] const char* Py_GetVersion() { return fake_python::g_version.c_str(); }
[[gnu::visibility("default")]] void* PyGILState_GetThisThreadState() { return fake_python::g_current; }
[[gnu::visibility("default")]] int PyCode_Addr2Line(const void*, int instruction) { return 100 + instruction; }
}

namespace fake_python {

inline constexpr std::uint32_t kCompactAscii = 1u << 2 | 1u << 5 | 1u << 6;

// 40 bytes of header in 3.13, whatever this compiler makes of the struct.
inline void set(Text& text, std::string_view characters) {
  text.object.type = &PyUnicode_Type;
  text.length = static_cast<std::int64_t>(characters.size());
  text.state = kCompactAscii;
  std::memcpy(reinterpret_cast<char*>(&text) + 40, characters.data(), characters.size());
}

}  // namespace fake_python
