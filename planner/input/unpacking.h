// Bytes in order, as they lie somewhere or as they come out of a packed file.
#pragma once

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

namespace memopt::input {

// An input can't be opened or read. The message begins with its name.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Bytes {
 public:
  Bytes() = default;
  virtual ~Bytes() = default;
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;

  // The next bytes, `size` at most; 0 at the end only. Throws InputError.
  virtual std::size_t read(char* to, std::size_t size) = 0;
};

enum class Packing { kNone, kGzip, kZstd };

inline constexpr std::size_t kPackingBytes = 4;  // by so many it is known

Packing packing_of(std::string_view first_bytes);

// What `packed` holds, in memory of a fixed size (zstd: 128 MiB at most, as its own programs allow). Several packed
// files in a row are one, as for gzip and zstd themselves. `name` is for messages.
std::unique_ptr<Bytes> unpack(Packing packing, std::unique_ptr<Bytes> packed, const std::string& name);

}  // namespace memopt::input
