// What a program's code image says: kernels with their parameters, variables with their initial bytes. Images are
// hostile: every reader is bounds-checked, and garbage ends in ImageError.
#pragma once
#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace cudasim {

namespace ptx {
struct Program;
}

// The bytes can't be used; the code is what the driver's function returns, the text says what is wrong and where.
class ImageError : public std::runtime_error {
 public:
  ImageError(CUresult error, const std::string& text) : std::runtime_error(text), error_(error) {}
  CUresult error() const { return error_; }

 private:
  CUresult error_;
};

struct KernelParameter {
  std::uint32_t offset;  // in the packed parameter buffer
  std::uint32_t size;
  friend bool operator==(const KernelParameter&, const KernelParameter&) = default;
};

struct KernelImage {
  std::string name;                         // mangled
  std::vector<KernelParameter> parameters;  // by ordinal
  std::uint32_t max_threads = 1024;         // __launch_bounds__
  std::uint32_t registers = 0;              // 0: not known (PTX)
  std::uint32_t static_shared_bytes = 0;
  std::uint32_t local_bytes = 0;
  std::uint32_t constant_bytes = 0;

  // Bytes of the packed buffer.
  std::uint32_t parameter_bytes() const {
    std::uint32_t end = 0;
    for (const KernelParameter& p : parameters) end = p.offset + p.size > end ? p.offset + p.size : end;
    return end;
  }
};

struct GlobalImage {
  std::string name;
  std::uint64_t size = 0;
  std::vector<std::byte> initial;  // the first bytes; the rest, up to `size`, is zero
  bool constant = false;
  bool managed = false;
};

struct Image {
  enum class Form { kCubin, kPtx };
  Form form = Form::kCubin;
  int arch = 0;          // 10 * major + minor
  char arch_suffix = 0;  // PTX: 'a' runs on exactly `arch`, 'f' on its family, 0 on everything later too
  std::vector<KernelImage> kernels;
  std::vector<GlobalImage> globals;
  std::shared_ptr<const ptx::Program> program;  // of PTX: what the kernels do
  // Of machine code from a fatbin that has PTX for this device, too: the same, parsed when it is asked for. Throws
  // ImageError.
  std::function<std::shared_ptr<const ptx::Program>()> later_program;
};

// Any form that cuModuleLoadData takes: fatbin, cubin, PTX text. `arch` is the device's. Of a fatbin the entry that the
// driver would choose. CUDA_ERROR_NO_BINARY_FOR_GPU or CUDA_ERROR_INVALID_PTX when it is not for this device.
Image read_image(std::span<const std::byte> bytes, int arch);

// The forms one by one. PTX need not end in a zero.
Image read_fatbin(std::span<const std::byte> bytes, int arch);
Image read_cubin(std::span<const std::byte> bytes);
Image read_ptx(std::span<const std::byte> bytes);
// The text alone, and the device memory that it declares.
std::shared_ptr<const ptx::Program> parse_ptx(std::span<const std::byte> bytes);
std::vector<GlobalImage> globals_of(const ptx::Program& program);

// The image that `data` points at, for the entry points that get no size: nvcc's wrapper is followed, the length is
// what the image's own headers say (PTX: up to its terminating zero). Nothing beyond headers is looked at.
std::span<const std::byte> image_at(const void* data);

}  // namespace cudasim
