#include "module/load.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace cudasim {

CUresult JitLog::read(unsigned count, const CUjit_option* options, void* const* values) {
  if (count != 0 && (options == nullptr || values == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count; ++i) {
    // Sizes travel as the value of the pointer itself.
    const auto number = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(values[i]));
    void** const back = const_cast<void**>(&values[i]);
    switch (options[i]) {
      case CU_JIT_ERROR_LOG_BUFFER:
        errors_.text = static_cast<char*>(values[i]);
        break;
      case CU_JIT_INFO_LOG_BUFFER:
        info_.text = static_cast<char*>(values[i]);
        break;
      case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
        errors_.size = number;
        errors_.size_value = back;
        break;
      case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
        info_.size = number;
        info_.size_value = back;
        break;
      default:
        break;
    }
  }
  return CUDA_SUCCESS;
}

void JitLog::write(const Buffer& buffer, const std::string& text) {
  std::size_t written = 0;
  if (buffer.text != nullptr && buffer.size != 0) {
    written = std::min(text.size(), buffer.size - 1);
    std::memcpy(buffer.text, text.data(), written);
    buffer.text[written] = 0;
  }
  if (buffer.size_value != nullptr) *buffer.size_value = reinterpret_cast<void*>(written);
}

void JitLog::error(const std::string& text) const {
  write(errors_, text);
  write(info_, "");
}

void JitLog::nothing() const {
  write(errors_, "");
  write(info_, "");
}

CUresult with_image_errors(const char* symbol, const JitLog& log, const std::function<CUresult()>& load) {
  try {
    const CUresult result = load();
    log.nothing();
    return result;
  } catch (const ImageError& problem) {
    std::fprintf(stderr, "cudasim: %s: %s\n", symbol, problem.what());
    log.error(problem.what());
    return problem.error();
  }
}

CUresult read_file(const char* path, std::vector<std::byte>& bytes) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path, "rb"), &std::fclose);
  if (file == nullptr) return CUDA_ERROR_FILE_NOT_FOUND;
  std::byte part[1 << 16];
  std::size_t size;
  while ((size = std::fread(part, 1, sizeof part, file.get())) != 0) bytes.insert(bytes.end(), part, part + size);
  return std::ferror(file.get()) != 0 ? CUDA_ERROR_FILE_NOT_FOUND : CUDA_SUCCESS;
}

}  // namespace cudasim
