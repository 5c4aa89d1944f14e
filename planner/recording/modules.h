// Which file an address of the recorded program lies in.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace memopt::planner {

class Modules {
 public:
  // As a kModule record has it: where the file was loaded, then its path and, behind a line feed, what identifies it.
  void add(std::uint64_t base, std::string_view text);

  // The program's own file may be named /proc/self/exe in the records.
  void set_program(std::string_view path) { program_ = path; }

  bool empty() const { return paths_.empty(); }

  // "libtorch.so+0x1234", or the bare address where no file was loaded below it. The recording does not say where a
  // file ends, so that an address far behind the last one is named after it.
  std::string name(std::uint64_t address) const;

 private:
  std::map<std::uint64_t, std::string> paths_;  // by base
  std::string program_;
};

}  // namespace memopt::planner
