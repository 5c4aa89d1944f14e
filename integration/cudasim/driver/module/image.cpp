#include "module/image.h"

#include <algorithm>

#include "module/bytes.h"
#include "module/compatibility.h"
#include "module/elf_format.h"

namespace cudasim {
namespace {

constexpr std::uint32_t kWrapperMagic = 0x466243b1;
constexpr std::uint32_t kFatbinMagic = 0xba55ed50;

// nvcc's __fatBinC_Wrapper_t (fatbinary_section.h).
struct Wrapper {
  std::uint32_t magic;
  std::uint32_t version;
  const void* data;
  const void* more;
};

std::uint32_t first_word(std::span<const std::byte> bytes) {
  return bytes.size() < 4 ? 0 : Bytes(bytes, "image").read<std::uint32_t>(0);
}

// Text up to its end; comments, directives and whitespace begin a PTX file, nothing else does.
bool looks_like_text(std::span<const std::byte> bytes) {
  for (const std::byte b : bytes.first(std::min<std::size_t>(bytes.size(), 64))) {
    const auto c = static_cast<unsigned char>(b);
    if (c == 0) break;
    if (c < 9 || (c > 13 && c < 32) || c > 126) return false;
  }
  return !bytes.empty() && bytes.front() != std::byte{0};
}

std::size_t elf_size(const std::byte* data) {
  const Bytes header({data, elf::kHeaderSize}, "cubin header");
  std::uint64_t end = elf::kHeaderSize;
  const auto extend = [&](std::uint64_t offset, std::uint64_t size) {
    if (offset > SIZE_MAX / 4 || size > SIZE_MAX / 4)
      throw ImageError(CUDA_ERROR_INVALID_IMAGE, "cubin: a size in its headers is absurd");
    end = std::max(end, offset + size);
  };
  const auto sections = header.read<std::uint64_t>(elf::kSectionHeaders);
  const std::uint64_t entry = header.read<std::uint16_t>(elf::kSectionHeaderSize);
  const std::uint64_t count = header.read<std::uint16_t>(elf::kSectionHeaderCount);
  extend(sections, entry * count);
  extend(header.read<std::uint64_t>(elf::kProgramHeaders),
         std::uint64_t{header.read<std::uint16_t>(elf::kProgramHeaderSize)} *
             header.read<std::uint16_t>(elf::kProgramHeaderCount));
  if (entry < 64) return end;
  const Bytes table({data + sections, entry * count}, "cubin section headers");
  for (std::uint64_t at = 0; at < table.size(); at += entry) {
    const auto type = table.read<std::uint32_t>(at + 4);
    if (elf::has_bytes(type)) extend(table.read<std::uint64_t>(at + 24), table.read<std::uint64_t>(at + 32));
  }
  return end;
}

}  // namespace

std::span<const std::byte> image_at(const void* data) {
  std::uint32_t magic;
  std::memcpy(&magic, data, sizeof magic);
  if (magic == kWrapperMagic) {
    Wrapper wrapper;
    std::memcpy(&wrapper, data, sizeof wrapper);
    if (wrapper.data == nullptr) throw ImageError(CUDA_ERROR_INVALID_IMAGE, "fatbin wrapper: it points at nothing");
    data = wrapper.data;
    std::memcpy(&magic, data, sizeof magic);
    if (magic != kFatbinMagic)
      throw ImageError(CUDA_ERROR_INVALID_IMAGE, "fatbin wrapper: it does not point at a fatbin");
  }
  const auto* bytes = static_cast<const std::byte*>(data);
  if (magic == kFatbinMagic) {
    std::uint16_t header;
    std::uint64_t entries;
    std::memcpy(&header, bytes + 6, sizeof header);
    std::memcpy(&entries, bytes + 8, sizeof entries);
    if (entries > SIZE_MAX / 4) throw ImageError(CUDA_ERROR_INVALID_IMAGE, "fatbin: the size in its header is absurd");
    return {bytes, header + entries};
  }
  if (magic == elf::kMagic) return {bytes, elf_size(bytes)};
  return {bytes, std::strlen(reinterpret_cast<const char*>(bytes))};
}

Image read_image(std::span<const std::byte> bytes, int arch) {
  const std::uint32_t magic = first_word(bytes);
  if (magic == kFatbinMagic) return read_fatbin(bytes, arch);
  const int device = effective_arch(arch);
  if (magic == elf::kMagic) {
    Image image = read_cubin(bytes);
    if (!machine_code_fits(image.arch, image.arch_suffix, device)) {
      throw ImageError(CUDA_ERROR_NO_BINARY_FOR_GPU,
                       "cubin: for sm_" + std::to_string(image.arch) + ", the device is sm_" + std::to_string(arch));
    }
    return image;
  }
  if (!looks_like_text(bytes)) throw ImageError(CUDA_ERROR_INVALID_IMAGE, "image: neither fatbin, ELF nor PTX text");
  Image image = read_ptx(bytes);
  if (!ptx_fits(image.arch, image.arch_suffix, device)) {
    throw ImageError(CUDA_ERROR_INVALID_PTX,
                     "PTX: for sm_" + std::to_string(image.arch) + ", the device is sm_" + std::to_string(arch));
  }
  return image;
}

}  // namespace cudasim
