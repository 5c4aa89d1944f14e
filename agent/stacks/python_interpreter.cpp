#include "agent/stacks/python_interpreter.h"

#include <dlfcn.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>

#include "agent/stacks/readable_memory.h"

namespace memopt::agent {
namespace {

// More frames than a program has: a ring of them is not walked for ever.
constexpr std::size_t kMaxWalked = 4096;

const std::byte* at(const void* object, std::size_t offset) noexcept {
  return static_cast<const std::byte*>(object) + offset;
}

template <typename Value>
Value load(const std::byte* from) noexcept {
  Value value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

// False: it can't be read.
template <bool kGuarded, typename Value>
bool read(const void* object, std::size_t offset, Value* value) noexcept {
  const std::byte* const from = at(object, offset);
  if constexpr (kGuarded) {
    if (object == nullptr || !is_readable(from) || !is_readable(from + sizeof(Value) - 1)) return false;
  }
  *value = load<Value>(from);
  return true;
}

bool is_readable(const std::byte* from, std::size_t bytes) noexcept {
  constexpr std::size_t kPage = 4096;
  for (std::size_t done = 0; done < bytes; done += kPage) {
    if (!agent::is_readable(from + done)) return false;
  }
  return bytes == 0 || agent::is_readable(from + bytes - 1);
}

// What no longer fits is left out, and all that comes behind it.
struct Text {
  std::span<char> to;
  std::size_t end = 0;
  bool full = false;

  void put(std::string_view bytes) noexcept {
    full = full || to.size() - end < bytes.size();
    if (full) return;
    std::copy(bytes.begin(), bytes.end(), to.begin() + static_cast<std::ptrdiff_t>(end));
    end += bytes.size();
  }
  void put_character(std::uint32_t character) noexcept {
    char bytes[4];
    std::size_t count = 0;
    const auto follow = [&](int shift) { bytes[count++] = static_cast<char>(0x80 | (character >> shift & 0x3F)); };
    if (character < 0x80) {
      bytes[count++] = static_cast<char>(character);
    } else if (character < 0x800) {
      bytes[count++] = static_cast<char>(0xC0 | character >> 6);
      follow(0);
    } else if (character < 0x10000) {
      bytes[count++] = static_cast<char>(0xE0 | character >> 12);
      follow(6), follow(0);
    } else {
      bytes[count++] = static_cast<char>(0xF0 | (character >> 18 & 7));
      follow(12), follow(6), follow(0);
    }
    put({bytes, count});
  }
};

template <typename Name>
bool find_name(const char* name, Name* to) noexcept {
  *to = reinterpret_cast<Name>(dlsym(RTLD_DEFAULT, name));
  return *to != nullptr;
}

}  // namespace

PythonInterpreter PythonInterpreter::find() noexcept {
  PythonInterpreter found;
  const char* (*version)() = nullptr;
  if (!find_name("Py_GetVersion", &version) || !find_name("PyGILState_GetThisThreadState", &found.thread_state_) ||
      !find_name("PyCode_Addr2Line", &found.line_) || !find_name("PyCode_Type", &found.code_type_) ||
      !find_name("PyUnicode_Type", &found.text_type_)) {
    return {};
  }
  found.layout_ = python_layout(version());
  return found;
}

const void* PythonInterpreter::innermost() const noexcept {
  const void* const thread = thread_state_();
  if (thread == nullptr) return nullptr;
  const void* frame = nullptr;
  // A thread's state is where the function says, and large enough in all versions.
  read<false>(thread, layout_->thread_frame, &frame);
  if (layout_->holder_frame < 0 || frame == nullptr) return frame;
  const void* held = nullptr;
  return read<true>(frame, static_cast<std::size_t>(layout_->holder_frame), &held) ? held : nullptr;
}

bool PythonInterpreter::is_code(const void* object) const noexcept {
  const void* type = nullptr;
  return read<true>(object, kPythonType, &type) && type == code_type_;
}

template <bool kGuarded>
std::size_t PythonInterpreter::walk(std::span<PythonFrame> frames, bool* right) const noexcept {
  const PythonLayout& layout = *layout_;
  std::size_t count = 0, walked = 0;
  *right = false;
  for (const void* frame = innermost(); frame != nullptr && count < frames.size(); ++walked) {
    const void* code = nullptr;
    const void* next = nullptr;
    std::uint8_t owner = 0;
    if (walked == kMaxWalked) return count;
    if (!read<kGuarded>(frame, layout.code, &code) || !read<kGuarded>(frame, layout.previous, &next)) return count;
    if (layout.owner >= 0 && !read<kGuarded>(frame, static_cast<std::size_t>(layout.owner), &owner)) return count;
    if (owner != kPythonFrameOfC) {
      std::uint64_t instruction = 0;
      if (layout.at == PythonLayout::At::kPointer) {
        std::uint64_t pointer = 0;
        if (!read<kGuarded>(frame, layout.instruction, &pointer)) return count;
        const auto first = reinterpret_cast<std::uint64_t>(at(code, layout.instructions));
        // One before the first instruction: it has not begun.
        instruction = pointer < first ? 0 : pointer - first;
      } else {
        std::int32_t number = 0;
        if (!read<kGuarded>(frame, layout.instruction, &number)) return count;
        instruction = number < 0                             ? 0
                      : layout.at == PythonLayout::At::kUnit ? 2 * static_cast<std::uint64_t>(number)
                                                             : static_cast<std::uint64_t>(number);
      }
      if constexpr (kGuarded) {
        const void* text[2] = {};
        const void* type = nullptr;
        if (!is_code(code) || instruction > std::uint64_t{1} << 30 || !read<true>(code, layout.file, &text[0]) ||
            !read<true>(code, layout.name, &text[1])) {
          return count;
        }
        for (const void* const object : text) {
          if (!read<true>(object, kPythonType, &type) || type != text_type_) return count;
        }
      }
      frames[count++] = {code, static_cast<std::uint32_t>(instruction)};
    }
    frame = next;
  }
  *right = true;
  return count;
}

std::size_t PythonInterpreter::frames(std::span<PythonFrame> frames) noexcept {
  if (layout_ == nullptr) return 0;
  bool right = true;
  switch (__atomic_load_n(&trust_, __ATOMIC_RELAXED)) {
    case Trust::kChecked:
      return walk<false>(frames, &right);
    case Trust::kRefused:
      return 0;
    case Trust::kUnknown:
      break;
  }
  const std::size_t count = walk<true>(frames, &right);
  if (right && count == 0) return 0;  // no Python runs here: nothing was learnt
  __atomic_store_n(&trust_, right ? Trust::kChecked : Trust::kRefused, __ATOMIC_RELAXED);
  return right ? count : 0;
}

// False: it is no text.
template <typename To>
bool PythonInterpreter::copy_text(const void* object, To* to) const noexcept {
  const void* type = nullptr;
  std::int64_t length = 0;
  std::uint32_t state = 0;
  if (!read<true>(object, kPythonType, &type) || type != text_type_) return false;
  if (!read<true>(object, kPythonTextLength, &length) || !read<true>(object, kPythonTextState, &state)) return false;
  const std::uint32_t bytes = state >> 2 & 7;
  const bool compact = (state >> 5 & 1) != 0, ascii = (state >> 6 & 1) != 0;
  if (!compact || length < 0 || (bytes != 1 && bytes != 2 && bytes != 4)) return false;
  // What is longer is cut at its beginning: the end of a path says more.
  const std::int64_t kept = std::min<std::int64_t>(length, static_cast<std::int64_t>(kMaxText / 2));
  const std::byte* const characters =
      at(object, ascii ? layout_->ascii_header : layout_->other_header) + (length - kept) * bytes;
  if (!is_readable(characters, static_cast<std::size_t>(kept) * bytes)) return false;
  for (std::int64_t i = 0; i < kept && !to->full; ++i) {
    std::uint32_t character = 0;
    std::memcpy(&character, characters + i * bytes, bytes);
    to->put_character(character);
  }
  return true;
}

std::size_t PythonInterpreter::describe(const PythonFrame& frame, std::span<char> text) const noexcept {
  if (layout_ == nullptr || !is_code(frame.code)) return 0;
  const void* name = nullptr;
  const void* file = nullptr;
  if (!read<true>(frame.code, layout_->name, &name) || !read<true>(frame.code, layout_->file, &file)) return 0;
  Text to{text};
  if (!copy_text(name, &to)) return 0;
  to.put(" (");
  if (!copy_text(file, &to)) return 0;
  char line[16];
  const auto [last, error] =
      std::to_chars(line, line + sizeof(line), line_(frame.code, static_cast<int>(frame.instruction)));
  to.put(":");
  if (error == std::errc()) to.put({line, static_cast<std::size_t>(last - line)});
  to.put(")");
  return to.end;
}

}  // namespace memopt::agent
