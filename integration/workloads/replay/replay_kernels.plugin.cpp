// The kernels of replay for the simulated driver: the same source. A launch stands for one that reads or writes all of
// the bytes.
#include "replay_kernels.cuh"

#include <cudasim/kernel_plugin.h>

using cudasim::Cost;
using cudasim::Grid;

CUDASIM_KERNEL(replay_stamp, [](Grid, unsigned char*, unsigned long long, unsigned, replay::Content,
                                unsigned long long cost_bytes) { return Cost{.bytes = double(cost_bytes)}; });
CUDASIM_KERNEL(replay_verify, [](Grid, const unsigned char*, unsigned long long bytes, unsigned, replay::Content,
                                 replay::Findings*) { return Cost{.bytes = double(bytes)}; });
CUDASIM_KERNEL(replay_verify_range,
               [](Grid, const unsigned char* begin, const unsigned char* end, unsigned, replay::Content,
                  replay::Findings*) { return Cost{.bytes = double(end - begin)}; });
