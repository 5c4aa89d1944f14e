// Which code runs on which device. Architectures are 10 * major + minor.
#pragma once

namespace cudasim {

// No nvcc from CUDA 13 on compiles for anything older. A device of an older preset takes such code as if it were of
// this architecture: its kernels are host functions anyway, and nobody could make an image for it otherwise.
inline constexpr int kOldestCompiled = 75;
inline int effective_arch(int device) { return device < kOldestCompiled ? kOldestCompiled : device; }

// Machine code: same major version, minor not later. `suffix` 'a': exactly this architecture; 'f': this family, so as
// without.
inline bool machine_code_fits(int code, char suffix, int device) {
  return suffix == 'a' ? code == device : code / 10 == device / 10 && code <= device;
}

// PTX is compiled for any later device, unless it is for one architecture ('a') or one family ('f').
inline bool ptx_fits(int code, char suffix, int device) {
  if (suffix != 0) return machine_code_fits(code, suffix, device);
  return code <= device;
}

}  // namespace cudasim
