// Which words of a kernel's parameters can be addresses: asked of the driver once per function, then a look-up without
// a lock.
//
// Any thread; noexcept. Layouts live as long as the process: memory grows by mapping, and only with the number of
// functions.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>

#include "agent/operations/tensor_lists.h"

namespace memopt::agent {

// A word of eight bytes that lies, aligned to eight, in the parameters as the kernel sees them.
struct ParameterWord {
  std::uint32_t parameter;  // position in kernelParams
  std::uint32_t offset;     // within that parameter
};
struct ParameterExtent {
  std::uint32_t offset;  // within all parameters
  std::uint32_t bytes;
};

struct FunctionLayout {
  bool known = false;    // false: the driver cannot say (before 12.4); what the function is given cannot be read
  std::uint32_t id = 0;  // of the function's name: equal names, equal numbers; from 1
  std::uint32_t word_count = 0;
  std::uint32_t parameter_count = 0;
  std::uint32_t parameter_bytes = 0;  // of all parameters, packed
  const ParameterWord* words = nullptr;
  const ParameterExtent* parameters = nullptr;
  const char* name = "";  // NUL-terminated
  // One parameter is such a structure: the first, or of a concatenation the second. Its words are `list_words` from
  // `first_list_word` on.
  const TensorLists* lists = nullptr;
  const CatInputs* inputs = nullptr;
  std::uint32_t first_list_word = 0;
  std::uint32_t list_words = 0;
  // For functions_were_unloaded(): asked of the driver at this count of unloads.
  mutable std::uint64_t checked_at = 0;
  // For the recorder: the recording in which the name was last written (launch_parameters keeps it, nobody reads it).
  mutable std::uint32_t named_in = 0;
};

// Of a CUfunction, or of a CUkernel that is launched as one. Never null; `known` false where memory is short, too.
const FunctionLayout& launch_layout(CUfunction function) noexcept;

// What launches of graphs are recorded by; they have no parameters. `known` false where memory is short.
const FunctionLayout& layout_of_graphs() noexcept;

// A module or library goes: its handles may come back and mean other functions. After the driver's call.
void functions_were_unloaded() noexcept;

// In a forked child: what was learnt holds no longer, locks are free.
void forget_functions_after_fork() noexcept;

}  // namespace memopt::agent
