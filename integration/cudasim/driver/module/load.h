// What cuModuleLoad* and cuLibraryLoad* share: where the image comes from, and how the program is told what is wrong
// with it.
#pragma once
#include <cuda.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "module/modules_impl.h"

namespace cudasim {

// The two message buffers that a program may give with its JIT options.
class JitLog {
 public:
  // Other options say how to compile, which nobody does here. CUDA_ERROR_INVALID_VALUE for options without values.
  CUresult read(unsigned count, const CUjit_option* options, void* const* values);
  // Into the error buffer, cut to its size, and its size back into the option's value.
  void error(const std::string& text) const;
  // Nothing to say: both buffers are empty.
  void nothing() const;

 private:
  struct Buffer {
    char* text = nullptr;
    std::size_t size = 0;
    void** size_value = nullptr;  // where the driver says how much it has written
  };
  static void write(const Buffer& buffer, const std::string& text);

  Buffer errors_;
  Buffer info_;
};

// Runs `load`, which may throw ImageError: then its text goes to stderr and into the log, and its code is returned.
CUresult with_image_errors(const char* symbol, const JitLog& log, const std::function<CUresult()>& load);

// CUDA_ERROR_FILE_NOT_FOUND when it can't be read.
CUresult read_file(const char* path, std::vector<std::byte>& bytes);

}  // namespace cudasim
