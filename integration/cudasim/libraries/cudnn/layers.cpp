// Pooling, activations, softmax, dropout, and sums of tensors.
#include "cudnn/values.h"

using namespace cudasim::libraries;
using namespace cudasim::libraries::cudnn;

namespace {

struct Operand {
  const Tensor* desc;
  const void* data;
};

struct Window {
  int mode, count;
  int size[kMostDimensions], padding[kMostDimensions], stride[kMostDimensions];
};

// The last operand is written, and read where beta is not zero.
template <size_t N>
int run(const Handle* handle, const char* kernel, const Operand (&operands)[N], const void* beta, double per_element) {
  if (!handle) return kNullPointer;
  Work work(kernel);
  for (size_t i = 0; i < N; ++i) {
    if (!operands[i].desc || !operands[i].data) return kNullPointer;
    Part part{};
    if (!part_of(*operands[i].desc, operands[i].data, &part)) return kNotSupported;
    if (i + 1 < N || scalar(beta, operands[i].desc->type) != 0) work.read(part);
    if (i + 1 == N) work.write(part).type(element_type(operands[i].desc->type));
  }
  work.flops(per_element * double(elements(*operands[0].desc)));
  return status_of(work.launch(handle->stream));
}

// A generator's state for each of so many threads of each multiprocessor.
uint64_t dropout_states() {
  constexpr uint64_t kState = 48, kThreads = 256;
  return kState * kThreads * static_cast<uint64_t>(multiprocessors());
}

// What was dropped: a bit for each number.
uint64_t dropout_reserve(const Tensor& x) { return (elements(x) + 7) / 8; }

}  // namespace

extern "C" {

CUDASIM_EXPORT int cudnnCreatePoolingDescriptor(Window** out) { return create(out); }
CUDASIM_EXPORT int cudnnDestroyPoolingDescriptor(Window* window) { return destroy(window); }

CUDASIM_EXPORT int cudnnSetPoolingNdDescriptor(Window* window, int mode, int, int count, const int size[],
                                               const int padding[], const int stride[]) {
  if (!window || !size || !padding || !stride) return kNullPointer;
  if (count < 1 || count > kMostDimensions - 2) return kNotSupported;
  window->mode = mode;
  window->count = count;
  for (int i = 0; i < count; ++i)
    window->size[i] = size[i], window->padding[i] = padding[i], window->stride[i] = stride[i];
  return kSuccess;
}

CUDASIM_EXPORT int cudnnSetPooling2dDescriptor(Window* window, int mode, int nan, int height, int width, int pad_h,
                                               int pad_w, int stride_h, int stride_w) {
  const int size[] = {height, width}, padding[] = {pad_h, pad_w}, stride[] = {stride_h, stride_w};
  return cudnnSetPoolingNdDescriptor(window, mode, nan, 2, size, padding, stride);
}

CUDASIM_EXPORT int cudnnPoolingForward(Handle* handle, const Window* window, const void*, const Tensor* x_desc,
                                       const void* x, const void* beta, const Tensor* y_desc, void* y) {
  if (!window || !window->count) return kBadParameter;
  return run(handle, "cudasim_pooling_forward", {{x_desc, x}, {y_desc, y}}, beta, 1);
}

CUDASIM_EXPORT int cudnnPoolingBackward(Handle* handle, const Window* window, const void*, const Tensor* y_desc,
                                        const void* y, const Tensor* dy_desc, const void* dy, const Tensor* x_desc,
                                        const void* x, const void* beta, const Tensor* dx_desc, void* dx) {
  if (!window || !window->count) return kBadParameter;
  return run(handle, "cudasim_pooling_backward", {{y_desc, y}, {dy_desc, dy}, {x_desc, x}, {dx_desc, dx}}, beta, 1);
}

CUDASIM_EXPORT int cudnnCreateActivationDescriptor(Activation** out) { return create(out); }
CUDASIM_EXPORT int cudnnDestroyActivationDescriptor(Activation* activation) { return destroy(activation); }
CUDASIM_EXPORT int cudnnSetActivationDescriptor(Activation* activation, int mode, int nan, double coefficient) {
  if (!activation) return kNullPointer;
  *activation = {mode, nan, coefficient};
  return kSuccess;
}

CUDASIM_EXPORT int cudnnActivationForward(Handle* handle, const Activation* activation, const void*,
                                          const Tensor* x_desc, const void* x, const void* beta, const Tensor* y_desc,
                                          void* y) {
  if (!activation) return kNullPointer;
  return run(handle, "cudasim_elementwise", {{x_desc, x}, {y_desc, y}}, beta, 4);
}
CUDASIM_EXPORT int cudnnActivationBackward(Handle* handle, const Activation* activation, const void*,
                                           const Tensor* y_desc, const void* y, const Tensor* dy_desc, const void* dy,
                                           const Tensor* x_desc, const void* x, const void* beta, const Tensor* dx_desc,
                                           void* dx) {
  if (!activation) return kNullPointer;
  return run(handle, "cudasim_elementwise", {{y_desc, y}, {dy_desc, dy}, {x_desc, x}, {dx_desc, dx}}, beta, 4);
}

CUDASIM_EXPORT int cudnnSoftmaxForward(Handle* handle, int, int, const void*, const Tensor* x_desc, const void* x,
                                       const void* beta, const Tensor* y_desc, void* y) {
  return run(handle, "cudasim_softmax_forward", {{x_desc, x}, {y_desc, y}}, beta, 8);
}
CUDASIM_EXPORT int cudnnSoftmaxBackward(Handle* handle, int, int, const void*, const Tensor* y_desc, const void* y,
                                        const Tensor* dy_desc, const void* dy, const void* beta, const Tensor* dx_desc,
                                        void* dx) {
  return run(handle, "cudasim_softmax_backward", {{y_desc, y}, {dy_desc, dy}, {dx_desc, dx}}, beta, 8);
}

CUDASIM_EXPORT int cudnnAddTensor(Handle* handle, const void*, const Tensor* a_desc, const void* a, const void* beta,
                                  const Tensor* c_desc, void* c) {
  return run(handle, "cudasim_elementwise", {{a_desc, a}, {c_desc, c}}, beta, 2);
}
CUDASIM_EXPORT int cudnnTransformTensor(Handle* handle, const void*, const Tensor* x_desc, const void* x,
                                        const void* beta, const Tensor* y_desc, void* y) {
  return run(handle, "cudasim_elementwise", {{x_desc, x}, {y_desc, y}}, beta, 1);
}

CUDASIM_EXPORT int cudnnCreateDropoutDescriptor(Dropout** out) { return create(out); }
CUDASIM_EXPORT int cudnnDestroyDropoutDescriptor(Dropout* dropout) { return destroy(dropout); }

CUDASIM_EXPORT int cudnnDropoutGetStatesSize(Handle* handle, size_t* bytes) {
  if (!handle || !bytes) return kNullPointer;
  *bytes = dropout_states();
  return kSuccess;
}
CUDASIM_EXPORT int cudnnDropoutGetReserveSpaceSize(const Tensor* x, size_t* bytes) {
  if (!x || !bytes) return kNullPointer;
  *bytes = dropout_reserve(*x);
  return kSuccess;
}

CUDASIM_EXPORT int cudnnRestoreDropoutDescriptor(Dropout* dropout, Handle* handle, float probability, void* states,
                                                 size_t state_bytes, unsigned long long) {
  if (!dropout || !handle) return kNullPointer;
  if (states && state_bytes < dropout_states()) return kSizeInsufficient;
  *dropout = {probability, states, state_bytes};
  return kSuccess;
}

CUDASIM_EXPORT int cudnnSetDropoutDescriptor(Dropout* dropout, Handle* handle, float probability, void* states,
                                             size_t state_bytes, unsigned long long seed) {
  const int status = cudnnRestoreDropoutDescriptor(dropout, handle, probability, states, state_bytes, seed);
  if (status != kSuccess || !states) return status;
  Work work("cudasim_dropout_states");
  work.seed(&seed, sizeof(seed)).write(states, dropout_states()).type(Type::kInteger32);
  return status_of(work.launch(handle->stream));
}

CUDASIM_EXPORT int cudnnDropoutForward(Handle* handle, const Dropout* dropout, const Tensor* x_desc, const void* x,
                                       const Tensor* y_desc, void* y, void* reserve, size_t reserve_bytes) {
  if (!handle || !dropout || !x_desc || !x || !y_desc || !y || !reserve) return kNullPointer;
  if (reserve_bytes < dropout_reserve(*x_desc)) return kSizeInsufficient;
  Part input{}, output{};
  if (!part_of(*x_desc, x, &input) || !part_of(*y_desc, y, &output)) return kNotSupported;
  Work work("cudasim_dropout_forward");
  work.read(input).read(dropout->states, dropout->states ? dropout_states() : 0);
  work.write(output)
      .write(reserve, dropout_reserve(*x_desc))
      .write(dropout->states, dropout->states ? dropout_states() : 0);
  work.type(element_type(y_desc->type)).flops(double(elements(*x_desc)));
  return status_of(work.launch(handle->stream));
}

CUDASIM_EXPORT int cudnnDropoutBackward(Handle* handle, const Dropout* dropout, const Tensor* dy_desc, const void* dy,
                                        const Tensor* dx_desc, void* dx, void* reserve, size_t reserve_bytes) {
  if (!handle || !dropout || !dy_desc || !dy || !dx_desc || !dx || !reserve) return kNullPointer;
  if (reserve_bytes < dropout_reserve(*dy_desc)) return kSizeInsufficient;
  Part input{}, output{};
  if (!part_of(*dy_desc, dy, &input) || !part_of(*dx_desc, dx, &output)) return kNotSupported;
  Work work("cudasim_dropout_backward");
  work.read(input).read(reserve, dropout_reserve(*dy_desc));
  work.write(output).type(element_type(dx_desc->type)).flops(double(elements(*dy_desc)));
  return status_of(work.launch(handle->stream));
}
}
