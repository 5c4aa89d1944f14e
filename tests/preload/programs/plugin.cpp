// A library that is linked to the driver, and opened with or without RTLD_DEEPBIND.
#include <cuda.h>

extern "C" __attribute__((visibility("default"))) int plugin_call() { return cuStreamSynchronize(nullptr); }
