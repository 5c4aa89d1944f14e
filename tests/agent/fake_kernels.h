// A driver that knows a few functions, their names and parameters, and nothing else. Takes the place of the agent's own
// table of driver functions.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <string>
#include <vector>

namespace memopt::test {

struct FakeParameter {
  std::size_t offset;
  std::size_t bytes;
};
// A function, or a kernel of a library: a kernel is not accepted where a function is asked for.
CUfunction make_function(std::string name, std::vector<FakeParameter> parameters);
CUfunction make_kernel(std::string name, std::vector<FakeParameter> parameters);
// The same handle means another function now.
void change_function(CUfunction function, std::string name, std::vector<FakeParameter> parameters);
// As before CUDA 12.4: names, but no parameters.
void hide_parameters(bool hide);
// Calls that reached the driver.
int driver_questions();
// Streams that capture.
void set_capturing(CUstream stream, bool capturing);

}  // namespace memopt::test
