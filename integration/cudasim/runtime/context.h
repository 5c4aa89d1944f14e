#pragma once

// Which context a call works in: the one that is current to the thread, whoever made it so, else the primary context of
// the thread's device, retained at the first call that needs it.

#include <cuda.h>
#include <driver_types.h>

#include "driver.h"

namespace cudart {

// Makes sure that a context is current. Cheap after the first time: the driver is asked again only after a device
// reset.
cudaError_t enter_context();

// A call came back with CUDA_ERROR_INVALID_CONTEXT: true if that was because none was current (the program popped it,
// say) and one is now, so that the call is worth repeating.
bool rebind_context();

// Makes the primary context of `device` current and the device the thread's.
cudaError_t select_device(int device);

// Creates the primary context of `device` without making it current.
cudaError_t retain_primary(int device, CUcontext* context);

// Destroys the primary context of the current device; all threads bind anew at their next call.
cudaError_t reset_device();

// The device of the current context, or of the thread where none is current.
cudaError_t current_device(int* device);

// cudaErrorInvalidDevice unless `device` exists.
cudaError_t check_device(int device);

}  // namespace cudart
