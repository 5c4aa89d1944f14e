// PTX: what an image says of it, from the module that ptx/front has parsed.
#include "module/bytes.h"
#include "ptx/front/parse.h"

namespace cudasim {
namespace {

KernelImage kernel_image(const ptx::Program& program, const ptx::Function& function) {
  KernelImage kernel;
  kernel.name = function.name;
  for (const std::uint32_t index : function.parameters) {
    const ptx::Variable& parameter = program.variables[index];
    kernel.parameters.push_back(
        {static_cast<std::uint32_t>(parameter.offset), static_cast<std::uint32_t>(parameter.size)});
  }
  kernel.max_threads = function.max_threads;
  kernel.static_shared_bytes = function.static_shared_bytes;
  kernel.local_bytes = static_cast<std::uint32_t>(function.frame_bytes);
  return kernel;
}

}  // namespace

std::shared_ptr<const ptx::Program> parse_ptx(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  try {
    return ptx::parse(text.substr(0, text.find('\0')));
  } catch (const ptx::ParseError& problem) {
    throw ImageError(problem.is_ptx() ? CUDA_ERROR_INVALID_PTX : CUDA_ERROR_INVALID_IMAGE, problem.what());
  }
}

std::vector<GlobalImage> globals_of(const ptx::Program& program) {
  std::vector<GlobalImage> globals;
  for (const std::uint32_t index : program.module_variables) {
    const ptx::Variable& v = program.variables[index];
    if (v.external || (v.space != ptx::Space::kGlobal && v.space != ptx::Space::kConst)) continue;
    GlobalImage global{v.name, v.size, v.initial, v.space == ptx::Space::kConst, v.managed};
    globals.push_back(std::move(global));
  }
  return globals;
}

Image read_ptx(std::span<const std::byte> bytes) {
  Image image;
  image.form = Image::Form::kPtx;
  image.program = parse_ptx(bytes);
  image.arch = image.program->arch;
  image.arch_suffix = image.program->arch_suffix;
  for (const ptx::Function& function : image.program->functions) {
    if (function.is_kernel && function.is_defined) image.kernels.push_back(kernel_image(*image.program, function));
  }
  image.globals = globals_of(*image.program);
  return image;
}

}  // namespace cudasim
