#include "version.h"

namespace cudart {

// The only object that differs between libcudart.so.13 and libcudart.so.12.
const int kRuntimeVersion = CUDASIM_RUNTIME_VERSION;

}  // namespace cudart
