// The C library's rounding mode for a while. Calls to it are opaque to the compiler, and what is computed in between
// comes from memory and goes there, so nothing moves across.
#pragma once
#include <cfenv>

#include "ptx/front/program.h"

namespace cudasim::ptx {

inline int rounding_of(const Instruction& i) {
  return i.has(Modifier::kRz)   ? FE_TOWARDZERO
         : i.has(Modifier::kRm) ? FE_DOWNWARD
         : i.has(Modifier::kRp) ? FE_UPWARD
                                : FE_TONEAREST;
}

class RoundingMode {
 public:
  explicit RoundingMode(int mode) : before_(std::fegetround()) {
    if (mode != before_) std::fesetround(mode);
  }
  ~RoundingMode() { std::fesetround(before_); }
  RoundingMode(const RoundingMode&) = delete;
  RoundingMode& operator=(const RoundingMode&) = delete;

 private:
  int before_;
};

}  // namespace cudasim::ptx
