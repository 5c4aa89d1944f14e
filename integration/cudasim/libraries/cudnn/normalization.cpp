// Batch normalisation.
#include "cudnn/values.h"

using namespace cudasim::libraries;
using namespace cudasim::libraries::cudnn;

namespace {

enum Mode { kPerActivation = 0, kSpatial = 1, kSpatialPersistent = 2 };
enum Operations { kNormalizeOnly = 0, kWithActivation = 1, kWithSumAndActivation = 2 };

// What is normalised is read twice: for the statistics and for the result. About eight operations for each number.
constexpr double kOperationsPerElement = 8;

Part statistics(const Tensor& desc, const void* data) {
  Part part{};
  part_of(desc, data, &part);
  return part;
}

// Persistent kernels exchange sums between multiprocessors: two for each channel, in single precision, of each of them.
uint64_t training_workspace(int mode, const Tensor& parameters) {
  if (mode != kSpatialPersistent) return 0;
  return 2 * elements(parameters) * sizeof(float) * static_cast<uint64_t>(multiprocessors());
}

// With an activation the backward pass needs to know what it cut off: a bit for each number.
uint64_t reserve_bytes(int operations, const Tensor& x) {
  return operations == kNormalizeOnly ? 0 : (elements(x) + 7) / 8;
}

}  // namespace

extern "C" {

CUDASIM_EXPORT int cudnnDeriveBNTensorDescriptor(Tensor* out, const Tensor* x, int mode) {
  if (!out || !x) return kNullPointer;
  *out = *x;
  out->type = x->type == kDouble ? kDouble : kFloat;
  int step = 1;
  for (int i = x->count - 1; i >= 0; --i) {
    if (i == 0 || (mode != kPerActivation && i != 1)) out->size[i] = 1;
    out->stride[i] = step;
    step *= out->size[i];
  }
  return kSuccess;
}

CUDASIM_EXPORT int cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(Handle* handle, int mode, int,
                                                                            const Tensor*, const Tensor*, const Tensor*,
                                                                            const Tensor* parameters, const Activation*,
                                                                            size_t* bytes) {
  if (!handle || !parameters || !bytes) return kNullPointer;
  *bytes = training_workspace(mode, *parameters);
  return kSuccess;
}

CUDASIM_EXPORT int cudnnGetBatchNormalizationBackwardExWorkspaceSize(Handle* handle, int mode, int, const Tensor*,
                                                                     const Tensor*, const Tensor*, const Tensor*,
                                                                     const Tensor*, const Tensor* parameters,
                                                                     const Activation*, size_t* bytes) {
  if (!handle || !parameters || !bytes) return kNullPointer;
  *bytes = training_workspace(mode, *parameters);
  return kSuccess;
}

CUDASIM_EXPORT int cudnnGetBatchNormalizationTrainingExReserveSpaceSize(Handle* handle, int, int operations,
                                                                        const Activation*, const Tensor* x,
                                                                        size_t* bytes) {
  if (!handle || !x || !bytes) return kNullPointer;
  *bytes = reserve_bytes(operations, *x);
  return kSuccess;
}

CUDASIM_EXPORT int cudnnBatchNormalizationForwardTrainingEx(
    Handle* handle, int mode, int operations, const void*, const void* beta, const Tensor* x_desc, const void* x,
    const Tensor* z_desc, const void* z, const Tensor* y_desc, void* y, const Tensor* parameters, const void* scale,
    const void* bias, double factor, void* running_mean, void* running_variance, double epsilon, void* saved_mean,
    void* saved_inverse, const Activation*, void* workspace, size_t workspace_bytes, void* reserve,
    size_t reserve_size) {
  if (!handle || !x_desc || !x || !y_desc || !y || !parameters || !scale || !bias) return kNullPointer;
  if (elements(*x_desc) != elements(*y_desc)) return kShapeMismatch;
  if (training_workspace(mode, *parameters) > workspace_bytes || reserve_bytes(operations, *x_desc) > reserve_size)
    return kSizeInsufficient;
  Part input{}, output{}, addend{};
  if (!part_of(*x_desc, x, &input) || !part_of(*y_desc, y, &output)) return kNotSupported;
  Work work("cudasim_batch_normalization_forward");
  work.seed(&epsilon, sizeof(epsilon)).seed(&factor, sizeof(factor));
  work.read(input).read(statistics(*parameters, scale)).read(statistics(*parameters, bias));
  if (operations == kWithSumAndActivation && z_desc && z && part_of(*z_desc, z, &addend)) work.read(addend);
  if (scalar(beta, x_desc->type) != 0) work.read(output);
  if (factor != 1.0) work.read(statistics(*parameters, running_mean)).read(statistics(*parameters, running_variance));
  work.write(output).write(statistics(*parameters, running_mean)).write(statistics(*parameters, running_variance));
  work.write(statistics(*parameters, saved_mean)).write(statistics(*parameters, saved_inverse));
  work.write(workspace, training_workspace(mode, *parameters)).write(reserve, reserve_bytes(operations, *x_desc));
  work.type(element_type(y_desc->type)).flops(kOperationsPerElement * double(elements(*x_desc)));
  return status_of(work.launch(handle->stream));
}

CUDASIM_EXPORT int cudnnBatchNormalizationForwardTraining(Handle* handle, int mode, const void* alpha, const void* beta,
                                                          const Tensor* x_desc, const void* x, const Tensor* y_desc,
                                                          void* y, const Tensor* parameters, const void* scale,
                                                          const void* bias, double factor, void* running_mean,
                                                          void* running_variance, double epsilon, void* saved_mean,
                                                          void* saved_inverse) {
  return cudnnBatchNormalizationForwardTrainingEx(handle, mode == kSpatialPersistent ? kSpatial : mode, kNormalizeOnly,
                                                  alpha, beta, x_desc, x, nullptr, nullptr, y_desc, y, parameters,
                                                  scale, bias, factor, running_mean, running_variance, epsilon,
                                                  saved_mean, saved_inverse, nullptr, nullptr, 0, nullptr, 0);
}

CUDASIM_EXPORT int cudnnBatchNormalizationForwardInference(Handle* handle, int, const void*, const void* beta,
                                                           const Tensor* x_desc, const void* x, const Tensor* y_desc,
                                                           void* y, const Tensor* parameters, const void* scale,
                                                           const void* bias, const void* mean, const void* variance,
                                                           double epsilon) {
  if (!handle || !x_desc || !x || !y_desc || !y || !parameters) return kNullPointer;
  Part input{}, output{};
  if (!part_of(*x_desc, x, &input) || !part_of(*y_desc, y, &output)) return kNotSupported;
  Work work("cudasim_batch_normalization_inference");
  work.seed(&epsilon, sizeof(epsilon)).read(input);
  for (const void* statistic : {scale, bias, mean, variance}) work.read(statistics(*parameters, statistic));
  if (scalar(beta, x_desc->type) != 0) work.read(output);
  work.write(output).type(element_type(y_desc->type)).flops(kOperationsPerElement / 2 * double(elements(*x_desc)));
  return status_of(work.launch(handle->stream));
}

CUDASIM_EXPORT int cudnnBatchNormalizationBackwardEx(
    Handle* handle, int mode, int operations, const void*, const void* beta_data, const void*, const void* beta_param,
    const Tensor* x_desc, const void* x, const Tensor* y_desc, const void* y, const Tensor* dy_desc, const void* dy,
    const Tensor* dz_desc, void* dz, const Tensor* dx_desc, void* dx, const Tensor* parameters, const void* scale,
    const void* bias, void* dscale, void* dbias, double epsilon, const void* saved_mean, const void* saved_inverse,
    const Activation*, void* workspace, size_t workspace_bytes, void* reserve, size_t reserve_size) {
  if (!handle || !x_desc || !x || !dy_desc || !dy || !dx_desc || !dx || !parameters || !scale) return kNullPointer;
  if (training_workspace(mode, *parameters) > workspace_bytes || reserve_bytes(operations, *x_desc) > reserve_size)
    return kSizeInsufficient;
  Part input{}, gradient{}, output{}, result{}, addend{};
  if (!part_of(*x_desc, x, &input) || !part_of(*dy_desc, dy, &gradient) || !part_of(*dx_desc, dx, &result))
    return kNotSupported;
  Work work("cudasim_batch_normalization_backward");
  work.seed(&epsilon, sizeof(epsilon)).read(input).read(gradient).read(statistics(*parameters, scale));
  work.read(statistics(*parameters, saved_mean)).read(statistics(*parameters, saved_inverse));
  if (operations != kNormalizeOnly) {
    if (y_desc && y && part_of(*y_desc, y, &output)) work.read(output);
    work.read(statistics(*parameters, bias)).read(reserve, reserve_bytes(operations, *x_desc));
  }
  if (scalar(beta_data, x_desc->type) != 0) work.read(result);
  if (scalar(beta_param, x_desc->type) != 0)
    work.read(statistics(*parameters, dscale)).read(statistics(*parameters, dbias));
  work.write(result).write(statistics(*parameters, dscale)).write(statistics(*parameters, dbias));
  if (operations == kWithSumAndActivation && dz_desc && dz && part_of(*dz_desc, dz, &addend)) work.write(addend);
  work.write(workspace, training_workspace(mode, *parameters));
  work.type(element_type(dx_desc->type)).flops(kOperationsPerElement * double(elements(*x_desc)));
  return status_of(work.launch(handle->stream));
}

CUDASIM_EXPORT int cudnnBatchNormalizationBackward(Handle* handle, int mode, const void* alpha_data,
                                                   const void* beta_data, const void* alpha_param,
                                                   const void* beta_param, const Tensor* x_desc, const void* x,
                                                   const Tensor* dy_desc, const void* dy, const Tensor* dx_desc,
                                                   void* dx, const Tensor* parameters, const void* scale, void* dscale,
                                                   void* dbias, double epsilon, const void* saved_mean,
                                                   const void* saved_inverse) {
  return cudnnBatchNormalizationBackwardEx(
      handle, mode == kSpatialPersistent ? kSpatial : mode, kNormalizeOnly, alpha_data, beta_data, alpha_param,
      beta_param, x_desc, x, nullptr, nullptr, dy_desc, dy, nullptr, nullptr, dx_desc, dx, parameters, scale, nullptr,
      dscale, dbias, epsilon, saved_mean, saved_inverse, nullptr, nullptr, 0, nullptr, 0);
}
}
