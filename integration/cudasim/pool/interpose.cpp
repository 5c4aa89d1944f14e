// The functions that stand in front of the runtime's. Those that bring work to a stream tell the pool; the allocating
// ones ask it.
//
// Each stream function exists twice: plain, where stream 0 is the legacy stream, and with a suffix, where it is the
// calling thread's own.
#include "pool.h"
#include "runtime.h"

using caching_pool::next;
using caching_pool::Pool;
using caching_pool::StreamName;

namespace real = caching_pool::real;

namespace {

// Copies to the host, or to an unknown place, are watched by the host.
bool to_host(cudaMemcpyKind kind) { return kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyHostToDevice; }

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

#define STREAM_FUNCTION_1(name, per_thread, stream, touches_host, parameters, arguments)                       \
  EXPORT cudaError_t name parameters;                                                                          \
  EXPORT cudaError_t name parameters {                                                                         \
    static auto* const function = next<cudaError_t parameters>(#name);                                         \
    return Pool::instance().on_stream({stream, per_thread}, touches_host, [&] { return function arguments; }); \
  }
#define STREAM_FUNCTION(name, suffix, stream, touches_host, parameters, arguments) \
  STREAM_FUNCTION_1(name, false, stream, touches_host, parameters, arguments)      \
  STREAM_FUNCTION_1(name##suffix, true, stream, touches_host, parameters, arguments)

// ---- work
// ---------------------------------------------------------------------------------------------------------------------------

STREAM_FUNCTION(cudaLaunchKernel, _ptsz, stream, false,
                (const void* function_, dim3 grid, dim3 block, void** args, size_t shared, cudaStream_t stream),
                (function_, grid, block, args, shared, stream))
STREAM_FUNCTION(__cudaLaunchKernel, _ptsz, stream, false,
                (cudaKernel_t kernel, dim3 grid, dim3 block, void** args, size_t shared, cudaStream_t stream),
                (kernel, grid, block, args, shared, stream))
STREAM_FUNCTION(cudaLaunchKernelExC, _ptsz, config != nullptr ? config->stream : nullptr, false,
                (const cudaLaunchConfig_t* config, const void* function_, void** args), (config, function_, args))
STREAM_FUNCTION(cudaLaunchCooperativeKernel, _ptsz, stream, false,
                (const void* function_, dim3 grid, dim3 block, void** args, size_t shared, cudaStream_t stream),
                (function_, grid, block, args, shared, stream))
STREAM_FUNCTION(cudaGraphLaunch, _ptsz, stream, true, (cudaGraphExec_t graph, cudaStream_t stream), (graph, stream))
STREAM_FUNCTION(cudaLaunchHostFunc, _ptsz, stream, true, (cudaStream_t stream, cudaHostFn_t callback, void* data),
                (stream, callback, data))
STREAM_FUNCTION(cudaStreamAddCallback, _ptsz, stream, true,
                (cudaStream_t stream, cudaStreamCallback_t callback, void* data, unsigned flags),
                (stream, callback, data, flags))

STREAM_FUNCTION(cudaMemcpyAsync, _ptsz, stream, to_host(kind),
                (void* to, const void* from, size_t count, cudaMemcpyKind kind, cudaStream_t stream),
                (to, from, count, kind, stream))
STREAM_FUNCTION(cudaMemcpy2DAsync, _ptsz, stream, to_host(kind),
                (void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                 cudaMemcpyKind kind, cudaStream_t stream),
                (to, to_pitch, from, from_pitch, width, height, kind, stream))
STREAM_FUNCTION(cudaMemcpy3DAsync, _ptsz, stream, copy == nullptr || to_host(copy->kind),
                (const cudaMemcpy3DParms* copy, cudaStream_t stream), (copy, stream))
STREAM_FUNCTION(cudaMemcpyPeerAsync, _ptsz, stream, false,
                (void* to, int to_device, const void* from, int from_device, size_t count, cudaStream_t stream),
                (to, to_device, from, from_device, count, stream))
STREAM_FUNCTION(cudaMemcpyToSymbolAsync, _ptsz, stream, false,
                (const void* symbol, const void* from, size_t count, size_t offset, cudaMemcpyKind kind,
                 cudaStream_t stream),
                (symbol, from, count, offset, kind, stream))
STREAM_FUNCTION(cudaMemcpyFromSymbolAsync, _ptsz, stream, to_host(kind),
                (void* to, const void* symbol, size_t count, size_t offset, cudaMemcpyKind kind, cudaStream_t stream),
                (to, symbol, count, offset, kind, stream))
STREAM_FUNCTION(cudaMemsetAsync, _ptsz, stream, false, (void* to, int value, size_t count, cudaStream_t stream),
                (to, value, count, stream))
STREAM_FUNCTION(cudaMemset2DAsync, _ptsz, stream, false,
                (void* to, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream),
                (to, pitch, value, width, height, stream))
STREAM_FUNCTION(cudaMemset3DAsync, _ptsz, stream, false,
                (cudaPitchedPtr to, int value, cudaExtent extent, cudaStream_t stream), (to, value, extent, stream))

// These wait for the host's part before they return, but a part on the device may still be under way.
STREAM_FUNCTION(cudaMemcpy, _ptds, nullptr, false, (void* to, const void* from, size_t count, cudaMemcpyKind kind),
                (to, from, count, kind))
STREAM_FUNCTION(cudaMemcpy2D, _ptds, nullptr, false,
                (void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                 cudaMemcpyKind kind),
                (to, to_pitch, from, from_pitch, width, height, kind))
STREAM_FUNCTION(cudaMemcpy3D, _ptds, nullptr, false, (const cudaMemcpy3DParms* copy), (copy))
STREAM_FUNCTION(cudaMemcpyToSymbol, _ptds, nullptr, false,
                (const void* symbol, const void* from, size_t count, size_t offset, cudaMemcpyKind kind),
                (symbol, from, count, offset, kind))
STREAM_FUNCTION(cudaMemcpyFromSymbol, _ptds, nullptr, false,
                (void* to, const void* symbol, size_t count, size_t offset, cudaMemcpyKind kind),
                (to, symbol, count, offset, kind))
STREAM_FUNCTION(cudaMemset, _ptds, nullptr, false, (void* to, int value, size_t count), (to, value, count))
STREAM_FUNCTION(cudaMemset2D, _ptds, nullptr, false, (void* to, size_t pitch, int value, size_t width, size_t height),
                (to, pitch, value, width, height))
STREAM_FUNCTION(cudaMemset3D, _ptds, nullptr, false, (cudaPitchedPtr to, int value, cudaExtent extent),
                (to, value, extent))

// ---- streams
// ------------------------------------------------------------------------------------------------------------------------

namespace {

cudaError_t synchronise(const char* name, cudaStream_t stream, bool per_thread) {
  const cudaError_t error = next<cudaError_t(cudaStream_t)>(name)(stream);
  if (error == cudaSuccess) Pool::instance().synchronised({stream, per_thread});
  return error;
}

}  // namespace

extern "C" {
cudaError_t cudaStreamSynchronize_ptsz(cudaStream_t stream);
cudaError_t cudaStreamBeginCapture_ptsz(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaFreeAsync_ptsz(void* pointer, cudaStream_t stream);
}

EXPORT cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return synchronise("cudaStreamSynchronize", stream, false);
}
EXPORT cudaError_t cudaStreamSynchronize_ptsz(cudaStream_t stream) {
  return synchronise("cudaStreamSynchronize_ptsz", stream, true);
}

EXPORT cudaError_t cudaDeviceSynchronize() {
  const cudaError_t error = real::device_synchronize();
  if (error == cudaSuccess) Pool::instance().all_synchronised();
  return error;
}

EXPORT cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  static auto* const function = next<cudaError_t(cudaStream_t)>("cudaStreamDestroy");
  if (const cudaError_t error = Pool::instance().before_destroy(stream); error != cudaSuccess) return error;
  return function(stream);
}

// The graph will name addresses for as long as it lives, which nobody tells the pool.
namespace {

cudaError_t begin_capture(const char* name, cudaStream_t stream, cudaStreamCaptureMode mode) {
  if (const cudaError_t error = Pool::instance().stop_reuse(); error != cudaSuccess) return error;
  return next<cudaError_t(cudaStream_t, cudaStreamCaptureMode)>(name)(stream, mode);
}

}  // namespace

EXPORT cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return begin_capture("cudaStreamBeginCapture", stream, mode);
}
EXPORT cudaError_t cudaStreamBeginCapture_ptsz(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return begin_capture("cudaStreamBeginCapture_ptsz", stream, mode);
}

EXPORT cudaError_t cudaDeviceReset() {
  static auto* const function = next<cudaError_t()>("cudaDeviceReset");
  const cudaError_t error = function();
  if (error == cudaSuccess) Pool::instance().forget_all();
  return error;
}

// ---- memory
// -------------------------------------------------------------------------------------------------------------------------

EXPORT cudaError_t cudaMalloc(void** pointer, size_t size) { return Pool::instance().allocate(pointer, size); }

EXPORT cudaError_t cudaFree(void* pointer) {
  Pool& pool = Pool::instance();
  if (pointer != nullptr && pool.owns(pointer)) return pool.release(pointer);
  return real::free(pointer);
}

// The fence of a free covers all streams, so this one's order too.
EXPORT cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  static auto* const function = next<cudaError_t(void*, cudaStream_t)>("cudaFreeAsync");
  Pool& pool = Pool::instance();
  return pool.owns(pointer) ? pool.release(pointer) : function(pointer, stream);
}
EXPORT cudaError_t cudaFreeAsync_ptsz(void* pointer, cudaStream_t stream) {
  static auto* const function = next<cudaError_t(void*, cudaStream_t)>("cudaFreeAsync_ptsz");
  Pool& pool = Pool::instance();
  return pool.owns(pointer) ? pool.release(pointer) : function(pointer, stream);
}

// What is cached can be had: it is given back to the runtime before the program is told that there is no memory.
EXPORT cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  const cudaError_t error = real::mem_get_info(free, total);
  if (error == cudaSuccess && free != nullptr) *free += Pool::instance().cached_bytes();
  return error;
}
