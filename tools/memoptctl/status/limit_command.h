// `memoptctl limit`: sets, changes or takes away the limit of a process that runs.
#pragma once
#include <sys/types.h>

#include <string>

namespace memopt::tools {

struct LimitOptions {
  pid_t pid = 0;
  std::string value;  // shm::is_new_limit
};

// 0; 1 with a sentence on stderr where there is no such process under memopt, or it refuses.
int limit(const LimitOptions& options);

}  // namespace memopt::tools
