// Matrix products: C = alpha op(A) op(B) + beta C, one, a strided batch, or a batch by tables of pointers.
#include "cublas/handle.h"

using namespace cudasim::libraries;
using namespace cudasim::libraries::cublas;

namespace {

struct Operand {
  const void* data;
  cudaDataType type;
  int64_t leading;
  int64_t stride;  // from one of the batch to the next
};

struct Product {
  int transpose_a, transpose_b;
  int64_t m, n, k;
  const void *alpha, *beta;
  Operand a, b, c;
  int64_t batch;
  bool tables;  // the data are tables of pointers in device memory
  cudaDataType scalars;
  int compute;  // ComputeType; 0: as the handle's mode says
};

bool is_operation(int value) { return value >= kPlain && value <= kConjugate; }

// Only scalars in host memory can be looked at: with those of the device, C counts as read.
bool is_zero(const Handle& handle, const void* scalar, uint64_t bytes) {
  if (handle.pointer_mode != kHost) return false;
  for (uint64_t i = 0; i < bytes; ++i)
    if (static_cast<const unsigned char*>(scalar)[i]) return false;
  return true;
}

Part part(const Product& product, const Operand& operand, int64_t rows, int64_t columns, Type type) {
  Part result = matrix(operand.data, rows, columns, operand.leading, bytes_of(type), product.batch, operand.stride);
  if (product.tables) {
    result.table = 1;
    result.planes = static_cast<uint64_t>(product.batch);
    result.plane_pitch = 0;
  }
  return result;
}

Status multiply(Handle* handle, const Product& p) {
  if (!is_handle(handle)) return kNotInitialized;
  if (!is_operation(p.transpose_a) || !is_operation(p.transpose_b) || p.m < 0 || p.n < 0 || p.k < 0 || p.batch < 0)
    return kInvalidValue;
  const int64_t rows_a = p.transpose_a == kPlain ? p.m : p.k, columns_a = p.transpose_a == kPlain ? p.k : p.m;
  const int64_t rows_b = p.transpose_b == kPlain ? p.k : p.n, columns_b = p.transpose_b == kPlain ? p.n : p.k;
  const auto at_least_one = [](int64_t value) { return value > 1 ? value : 1; };
  if (p.a.leading < at_least_one(rows_a) || p.b.leading < at_least_one(rows_b) || p.c.leading < at_least_one(p.m))
    return kInvalidValue;
  if (!p.alpha || !p.beta) return kInvalidValue;
  if (p.m == 0 || p.n == 0 || p.batch == 0) return kSuccess;
  if (!p.a.data || !p.b.data || !p.c.data) {
    if (p.k != 0 || !p.c.data) return kInvalidValue;
  }
  Type a{}, b{}, c{}, scalar{};
  if (!type_of(p.a.type, &a) || !type_of(p.b.type, &b) || !type_of(p.c.type, &c) || !type_of(p.scalars, &scalar))
    return kNotSupported;
  const bool overwrites = is_zero(*handle, p.beta, bytes_of(scalar));
  const bool tensor_float = p.compute == kCompute32FastTensorFloat || p.compute == kCompute32Fast16 ||
                            p.compute == kCompute32FastBrainFloat ||
                            (a == Type::kSingle && (handle->math_mode & 15) == kTensorFloatMath);
  const Workspace workspace = workspace_for(*handle, p.m, p.n, p.k, p.batch);
  const bool complex = a == Type::kComplexSingle || a == Type::kComplexDouble;

  Work work("cudasim_matrix_product");
  if (p.k != 0) work.read(part(p, p.a, rows_a, columns_a, a)).read(part(p, p.b, rows_b, columns_b, b));
  const Part result = part(p, p.c, p.m, p.n, c);
  if (!overwrites) work.read(result);
  work.write(result).write(workspace.data, workspace.bytes).type(c);
  if (handle->pointer_mode == kHost) work.seed(p.alpha, bytes_of(scalar)).seed(p.beta, bytes_of(scalar));
  const double flops = 2.0 * double(p.m) * double(p.n) * double(p.k) * double(p.batch) * (complex ? 4 : 1);
  work.flops(flops, rate_of(a, tensor_float));
  return status_of(work.launch(handle->stream));
}

}  // namespace

// Name of the plain product, of the batched ones, element, type. Suffix _64: 64-bit integers for all sizes.
#define CUDASIM_PRODUCTS(X)              \
  X(Sgemm_v2, Sgemm, float, CUDA_R_32F)  \
  X(Dgemm_v2, Dgemm, double, CUDA_R_64F) \
  X(Cgemm_v2, Cgemm, void, CUDA_C_32F)   \
  X(Zgemm_v2, Zgemm, void, CUDA_C_64F)   \
  X(Hgemm, Hgemm, void, CUDA_R_16F)

#define CUDASIM_PRODUCT(plain, name, element, type)                                     \
  CUDASIM_PRODUCT_SIZED(plain, name##StridedBatched, name##Batched, int, element, type) \
  CUDASIM_PRODUCT_SIZED(plain##_64, name##StridedBatched_64, name##Batched_64, int64_t, element, type)

#define CUDASIM_PRODUCT_SIZED(plain, strided, tables, size, element, type)                                           \
  CUDASIM_EXPORT int cublas##plain(Handle* handle, int ta, int tb, size m, size n, size k, const element* alpha,     \
                                   const element* a, size lda, const element* b, size ldb, const element* beta,      \
                                   element* c, size ldc) {                                                           \
    return multiply(                                                                                                 \
        handle,                                                                                                      \
        {ta, tb, m, n, k, alpha, beta, {a, type, lda, 0}, {b, type, ldb, 0}, {c, type, ldc, 0}, 1, false, type, 0}); \
  }                                                                                                                  \
  CUDASIM_EXPORT int cublas##strided(Handle* handle, int ta, int tb, size m, size n, size k, const element* alpha,   \
                                     const element* a, size lda, long long sa, const element* b, size ldb,           \
                                     long long sb, const element* beta, element* c, size ldc, long long sc,          \
                                     size batch) {                                                                   \
    return multiply(handle, {ta,                                                                                     \
                             tb,                                                                                     \
                             m,                                                                                      \
                             n,                                                                                      \
                             k,                                                                                      \
                             alpha,                                                                                  \
                             beta,                                                                                   \
                             {a, type, lda, sa},                                                                     \
                             {b, type, ldb, sb},                                                                     \
                             {c, type, ldc, sc},                                                                     \
                             batch,                                                                                  \
                             false,                                                                                  \
                             type,                                                                                   \
                             0});                                                                                    \
  }                                                                                                                  \
  CUDASIM_EXPORT int cublas##tables(Handle* handle, int ta, int tb, size m, size n, size k, const element* alpha,    \
                                    const element* const a[], size lda, const element* const b[], size ldb,          \
                                    const element* beta, element* const c[], size ldc, size batch) {                 \
    return multiply(handle, {ta,                                                                                     \
                             tb,                                                                                     \
                             m,                                                                                      \
                             n,                                                                                      \
                             k,                                                                                      \
                             alpha,                                                                                  \
                             beta,                                                                                   \
                             {a, type, lda, 0},                                                                      \
                             {b, type, ldb, 0},                                                                      \
                             {c, type, ldc, 0},                                                                      \
                             batch,                                                                                  \
                             true,                                                                                   \
                             type,                                                                                   \
                             0});                                                                                    \
  }

extern "C" {
CUDASIM_PRODUCTS(CUDASIM_PRODUCT)

CUDASIM_EXPORT int cublasSgemmEx(Handle* handle, int ta, int tb, int m, int n, int k, const float* alpha, const void* a,
                                 cudaDataType type_a, int lda, const void* b, cudaDataType type_b, int ldb,
                                 const float* beta, void* c, cudaDataType type_c, int ldc) {
  return multiply(handle, {ta,
                           tb,
                           m,
                           n,
                           k,
                           alpha,
                           beta,
                           {a, type_a, lda, 0},
                           {b, type_b, ldb, 0},
                           {c, type_c, ldc, 0},
                           1,
                           false,
                           CUDA_R_32F,
                           0});
}
}

namespace {

cudaDataType scalar_of(int compute, cudaDataType type_c) {
  const bool complex = type_c == CUDA_C_32F || type_c == CUDA_C_64F;
  switch (compute & ~1) {
    case kCompute16:
      return CUDA_R_16F;
    case kCompute64:
      return complex ? CUDA_C_64F : CUDA_R_64F;
    case kComputeInteger:
      return CUDA_R_32I;
    default:
      return complex ? CUDA_C_32F : CUDA_R_32F;
  }
}

}  // namespace

extern "C" {
CUDASIM_EXPORT int cublasGemmEx(Handle* handle, int ta, int tb, int m, int n, int k, const void* alpha, const void* a,
                                cudaDataType type_a, int lda, const void* b, cudaDataType type_b, int ldb,
                                const void* beta, void* c, cudaDataType type_c, int ldc, int compute, int) {
  return multiply(handle, {ta,
                           tb,
                           m,
                           n,
                           k,
                           alpha,
                           beta,
                           {a, type_a, lda, 0},
                           {b, type_b, ldb, 0},
                           {c, type_c, ldc, 0},
                           1,
                           false,
                           scalar_of(compute, type_c),
                           compute});
}

CUDASIM_EXPORT int cublasGemmStridedBatchedEx(Handle* handle, int ta, int tb, int m, int n, int k, const void* alpha,
                                              const void* a, cudaDataType type_a, int lda, long long sa, const void* b,
                                              cudaDataType type_b, int ldb, long long sb, const void* beta, void* c,
                                              cudaDataType type_c, int ldc, long long sc, int batch, int compute, int) {
  return multiply(handle, {ta,
                           tb,
                           m,
                           n,
                           k,
                           alpha,
                           beta,
                           {a, type_a, lda, sa},
                           {b, type_b, ldb, sb},
                           {c, type_c, ldc, sc},
                           batch,
                           false,
                           scalar_of(compute, type_c),
                           compute});
}

CUDASIM_EXPORT int cublasGemmBatchedEx(Handle* handle, int ta, int tb, int m, int n, int k, const void* alpha,
                                       const void* const a[], cudaDataType type_a, int lda, const void* const b[],
                                       cudaDataType type_b, int ldb, const void* beta, void* const c[],
                                       cudaDataType type_c, int ldc, int batch, int compute, int) {
  return multiply(handle, {ta,
                           tb,
                           m,
                           n,
                           k,
                           alpha,
                           beta,
                           {a, type_a, lda, 0},
                           {b, type_b, ldb, 0},
                           {c, type_c, ldc, 0},
                           batch,
                           true,
                           scalar_of(compute, type_c),
                           compute});
}
}
