// The parts of ELF and of NVIDIA's additions that cubins use. Offsets are those of the 64-bit little-endian form.
#pragma once
#include <cstdint>

namespace cudasim::elf {

inline constexpr std::uint32_t kMagic = 0x464c457f;  // "\x7fELF"
inline constexpr std::uint16_t kMachineCuda = 190;

// File header.
inline constexpr std::uint64_t kHeaderSize = 64;
inline constexpr std::uint64_t kClass = 4;  // u8: 2 is 64-bit
inline constexpr std::uint64_t kAbiVersion =
    8;  // u8: from 8 on the architecture sits in bits 8..15 of the flags, before in 0..7
inline constexpr std::uint64_t kMachine = 18;                                                          // u16
inline constexpr std::uint64_t kProgramHeaders = 32;                                                   // u64
inline constexpr std::uint64_t kSectionHeaders = 40;                                                   // u64
inline constexpr std::uint64_t kFlags = 48;                                                            // u32
inline constexpr std::uint64_t kProgramHeaderSize = 54, kProgramHeaderCount = 56;                      // u16
inline constexpr std::uint64_t kSectionHeaderSize = 58, kSectionHeaderCount = 60, kSectionNames = 62;  // u16

inline constexpr std::uint32_t kSectionSymbols = 2, kSectionNoBits = 8;
// Relocatable cubins have types of their own for variables: .nv.global, .nv.local and .nv.shared have no bytes in the
// file.
inline constexpr std::uint32_t kSectionCudaGlobal = 0x70000007, kSectionCudaLocal = 0x70000009,
                               kSectionCudaShared = 0x7000000a;
inline constexpr bool has_bytes(std::uint32_t type) {
  return type != 0 && type != kSectionNoBits && type != kSectionCudaGlobal && type != kSectionCudaLocal &&
         type != kSectionCudaShared;
}
inline constexpr std::uint8_t kSymbolObject = 1, kSymbolFunction = 2, kSymbolCudaObject = 13;  // low nibble of st_info
inline constexpr std::uint8_t kOtherEntry = 0x10;                                              // st_other: a kernel
inline constexpr std::uint8_t kOtherManaged = 0x04;  // st_other: a managed variable
inline constexpr std::uint64_t kSymbolSize = 24;

// .nv.info: records { u8 format, u8 attribute, u16 value or size, [size bytes] }.
inline constexpr std::uint8_t kFormatSized = 4;
inline constexpr std::uint8_t kMaxThreads = 0x05;     // three u32
inline constexpr std::uint8_t kFrameSize = 0x11;      // { u32 symbol, u32 bytes }
inline constexpr std::uint8_t kParameterInfo = 0x17;  // { u32 index, u16 ordinal, u16 offset, u32 size << 18 | … }
inline constexpr std::uint8_t kParameterInfoV2 =
    0x45;  // { u32 index, u16 ordinal, u16 offset, u32 size in bits 0..23 }: kernels with more than 4 KiB of parameters
inline constexpr std::uint8_t kRegisterCount = 0x2f;  // { u32 symbol, u32 registers }

}  // namespace cudasim::elf
