// Which file an address of the recorded program lies in.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace memopt::planner {

class Modules {
 public:
  // As a kModule record has it: where the file was loaded, then its path and, behind a line feed, what identifies it.
  void add(std::uint64_t base, std::string_view text);

  // The program's own file may be named /proc/self/exe in the records.
  void set_program(std::string_view path) { program_ = path; }

  // A file that was loaded. Valid until the next one is added.
  struct File {
    std::uint64_t base = 0;  // what was added to its own addresses
    std::string_view path;
    std::string_view build_id;  // hexadecimal; empty: it has none
  };
  // The one that the address lies in, as name() means it.
  std::optional<File> file(std::uint64_t address) const;

  bool empty() const { return files_.empty(); }

  // "libtorch.so+0x1234", or the bare address where no file was loaded below it. The recording does not say where a
  // file ends, so that an address far behind the last one is named after it.
  std::string name(std::uint64_t address) const;

 private:
  struct Loaded {
    std::string path;
    std::string build_id;
  };
  std::map<std::uint64_t, Loaded> files_;  // by base
  std::string program_;
};

}  // namespace memopt::planner
