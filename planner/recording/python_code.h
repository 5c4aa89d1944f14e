// Where a recorded program's threads are in its Python code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "shm/record.h"

namespace memopt::planner {

class PythonCode {
 public:
  // A record of any kind, in the file's order; most are not looked at. False: there is more than is remembered (names
  // and stacks of 64 MiB together).
  bool add(std::uint32_t lane, const shm::RecordView& record);

  // The stack in which the thread is after the records so far; 0: in none.
  std::uint64_t at(std::uint32_t lane) const;

  // "function (file:line)", innermost first; none for a stack that was not recorded.
  std::vector<std::string> names(std::uint64_t stack) const;

 private:
  bool take(std::size_t bytes);

  std::unordered_map<std::uint64_t, std::string> frames_;                 // by id
  std::unordered_map<std::uint64_t, std::vector<std::uint64_t>> stacks_;  // by hash: ids
  std::unordered_map<std::uint32_t, std::uint64_t> at_;                   // by lane
  std::size_t bytes_ = 0;
};

}  // namespace memopt::planner
