#pragma once

// The CUDA version that this build of the runtime stands for, as major * 1000 + minor * 10.

namespace cudart {

extern const int kRuntimeVersion;

}  // namespace cudart
