// A function that has no implementation: it says so once and answers with the library's own error.
#pragma once

#define CUDASIM_EXPORT __attribute__((visibility("default")))

namespace cudasim::libraries {

int refuse(const char* function, int status, char& said);

}  // namespace cudasim::libraries
