// Compiled, never run: the stand-ins' numbers against a toolkit's headers.
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cudnn.h>

#include "integration/cudasim/libraries/cublas/values.h"
#include "integration/cudasim/libraries/cudnn/values.h"

namespace cublas = cudasim::libraries::cublas;
namespace cudnn = cudasim::libraries::cudnn;

#define CUDASIM_SAME(ours, theirs) static_assert(static_cast<int>(ours) == static_cast<int>(theirs))
CUDASIM_SAME(cublas::kNotInitialized, CUBLAS_STATUS_NOT_INITIALIZED);
CUDASIM_SAME(cublas::kAllocationFailed, CUBLAS_STATUS_ALLOC_FAILED);
CUDASIM_SAME(cublas::kInvalidValue, CUBLAS_STATUS_INVALID_VALUE);
CUDASIM_SAME(cublas::kArchitectureMismatch, CUBLAS_STATUS_ARCH_MISMATCH);
CUDASIM_SAME(cublas::kMappingError, CUBLAS_STATUS_MAPPING_ERROR);
CUDASIM_SAME(cublas::kExecutionFailed, CUBLAS_STATUS_EXECUTION_FAILED);
CUDASIM_SAME(cublas::kInternalError, CUBLAS_STATUS_INTERNAL_ERROR);
CUDASIM_SAME(cublas::kNotSupported, CUBLAS_STATUS_NOT_SUPPORTED);
CUDASIM_SAME(cublas::kLicenseError, CUBLAS_STATUS_LICENSE_ERROR);
CUDASIM_SAME(cublas::kTransposed, CUBLAS_OP_T);
CUDASIM_SAME(cublas::kConjugate, CUBLAS_OP_C);
CUDASIM_SAME(cublas::kDevice, CUBLAS_POINTER_MODE_DEVICE);
CUDASIM_SAME(cublas::kRight, CUBLAS_SIDE_RIGHT);
CUDASIM_SAME(cublas::kTensorFloatMath, CUBLAS_TF32_TENSOR_OP_MATH);
CUDASIM_SAME(cublas::kCompute16, CUBLAS_COMPUTE_16F);
CUDASIM_SAME(cublas::kCompute32, CUBLAS_COMPUTE_32F);
CUDASIM_SAME(cublas::kCompute32Fast16, CUBLAS_COMPUTE_32F_FAST_16F);
CUDASIM_SAME(cublas::kCompute32FastBrainFloat, CUBLAS_COMPUTE_32F_FAST_16BF);
CUDASIM_SAME(cublas::kCompute32FastTensorFloat, CUBLAS_COMPUTE_32F_FAST_TF32);
CUDASIM_SAME(cublas::kCompute64, CUBLAS_COMPUTE_64F);
CUDASIM_SAME(cublas::kComputeInteger, CUBLAS_COMPUTE_32I);
CUDASIM_SAME(cudnn::kNotInitialized, CUDNN_STATUS_NOT_INITIALIZED);
CUDASIM_SAME(cudnn::kBadParameter, CUDNN_STATUS_BAD_PARAM);
CUDASIM_SAME(cudnn::kNullPointer, CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
CUDASIM_SAME(cudnn::kSizeInsufficient, CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT);
CUDASIM_SAME(cudnn::kShapeMismatch, CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH);
CUDASIM_SAME(cudnn::kNotSupported, CUDNN_STATUS_NOT_SUPPORTED);
CUDASIM_SAME(cudnn::kHostAllocationFailed, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
CUDASIM_SAME(cudnn::kExecutionFailed, CUDNN_STATUS_EXECUTION_FAILED);
CUDASIM_SAME(cudnn::kDouble, CUDNN_DATA_DOUBLE);
CUDASIM_SAME(cudnn::kHalf, CUDNN_DATA_HALF);
CUDASIM_SAME(cudnn::kInt8, CUDNN_DATA_INT8);
CUDASIM_SAME(cudnn::kInt32, CUDNN_DATA_INT32);
CUDASIM_SAME(cudnn::kUint8, CUDNN_DATA_UINT8);
CUDASIM_SAME(cudnn::kBfloat16, CUDNN_DATA_BFLOAT16);
CUDASIM_SAME(cudnn::kInt64, CUDNN_DATA_INT64);
CUDASIM_SAME(cudnn::kChannelsLast, CUDNN_TENSOR_NHWC);
CUDASIM_SAME(cudnn::kTensorOpMathWithConversion, CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION);
CUDASIM_SAME(cudnn::kFmaMath, CUDNN_FMA_MATH);
static_assert(sizeof(cudnnConvolutionFwdAlgoPerf_t) == 48 && sizeof(cublasLtMatmulHeuristicResult_t) == 96);
static_assert(sizeof(cublasLtMatrixLayoutOpaque_t) == 64 && sizeof(cublasLtMatmulDescOpaque_t) == 256 &&
              sizeof(cublasLtMatmulPreferenceOpaque_t) == 64);
