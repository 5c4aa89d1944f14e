// Products of a matrix and a vector, operations on vectors, triangular systems.
#include "cublas/handle.h"

using namespace cudasim::libraries;
using namespace cudasim::libraries::cublas;

namespace {

// `count` elements, `increment` apart. A negative increment runs over the same bytes from the other end.
Part vector(const void* data, int64_t count, int64_t increment, uint64_t element) {
  const uint64_t step = static_cast<uint64_t>(increment < 0 ? -increment : increment) * element;
  return {const_cast<void*>(data), element, static_cast<uint64_t>(count), step, 1, 0, 0};
}

bool is_host_zero(const Handle& handle, const void* scalar, uint64_t bytes) {
  if (handle.pointer_mode != kHost) return false;
  for (uint64_t i = 0; i < bytes; ++i)
    if (static_cast<const unsigned char*>(scalar)[i]) return false;
  return true;
}

void take_scalar(Work& work, const Handle& handle, const void* scalar, uint64_t bytes) {
  if (handle.pointer_mode == kHost) {
    work.seed(scalar, bytes);
  } else {
    work.read(scalar, bytes);
  }
}

Status matrix_vector(Handle* handle, int operation, int64_t m, int64_t n, const void* alpha, const void* a,
                     int64_t leading, const void* x, int64_t step_x, const void* beta, void* y, int64_t step_y,
                     Type type) {
  if (!is_handle(handle)) return kNotInitialized;
  if (operation < kPlain || operation > kConjugate || m < 0 || n < 0 || leading < (m > 1 ? m : 1) || !step_x || !step_y)
    return kInvalidValue;
  if (!alpha || !beta) return kInvalidValue;
  if (!m || !n) return kSuccess;
  const uint64_t element = bytes_of(type);
  const Part result = vector(y, operation == kPlain ? m : n, step_y, element);
  Work work("cudasim_matrix_vector_product");
  take_scalar(work, *handle, alpha, element);
  take_scalar(work, *handle, beta, element);
  work.read(matrix(a, m, n, leading, element)).read(vector(x, operation == kPlain ? n : m, step_x, element));
  if (!is_host_zero(*handle, beta, element)) work.read(result);
  work.write(result).type(type).flops(2.0 * double(m) * double(n), rate_of(type, false));
  return status_of(work.launch(handle->stream));
}

// A scalar of two vectors (the second may be null). Into host memory it would be a wait and a number that nothing has
// computed: not supported.
Status reduce(Handle* handle, int64_t n, const void* x, int64_t step_x, const void* y, int64_t step_y, void* result,
              Type type, Type result_type) {
  if (!is_handle(handle)) return kNotInitialized;
  if (!result) return kInvalidValue;
  if (handle->pointer_mode == kHost) return kNotSupported;
  Work work("cudasim_vector_operation");
  if (n > 0) {
    work.read(vector(x, n, step_x, bytes_of(type)));
    if (y) work.read(vector(y, n, step_y, bytes_of(type)));
  }
  work.write(result, bytes_of(result_type)).type(result_type).flops(2.0 * double(n > 0 ? n : 0));
  return status_of(work.launch(handle->stream));
}

// y from x, alpha and, where `updates`, itself.
Status update(Handle* handle, int64_t n, const void* alpha, const void* x, int64_t step_x, void* y, int64_t step_y,
              bool updates, Type type) {
  if (!is_handle(handle)) return kNotInitialized;
  if (n <= 0) return kSuccess;
  Work work("cudasim_vector_operation");
  if (alpha) take_scalar(work, *handle, alpha, bytes_of(type));
  if (x) work.read(vector(x, n, step_x, bytes_of(type)));
  const Part result = vector(y, n, step_y, bytes_of(type));
  if (updates) work.read(result);
  work.write(result).type(type).flops(2.0 * double(n));
  return status_of(work.launch(handle->stream));
}

Status solve(Handle* handle, int side, int64_t m, int64_t n, const void* alpha, const void* a, int64_t lda, void* b,
             int64_t ldb, int64_t batch, bool tables, Type type) {
  if (!is_handle(handle)) return kNotInitialized;
  const int64_t order = side == kLeft ? m : n;
  if (m < 0 || n < 0 || batch < 0 || !alpha || lda < (order > 1 ? order : 1) || ldb < (m > 1 ? m : 1))
    return kInvalidValue;
  if (!m || !n || !batch) return kSuccess;
  const uint64_t element = bytes_of(type);
  Part triangle = matrix(a, order, order, lda, element), result = matrix(b, m, n, ldb, element);
  if (tables) {
    triangle.table = result.table = 1;
    triangle.planes = result.planes = static_cast<uint64_t>(batch);
  }
  Work work("cudasim_triangular_solve");
  take_scalar(work, *handle, alpha, element);
  work.read(triangle).read(result).write(result).type(type);
  work.flops(double(m) * double(n) * double(order) * double(batch), rate_of(type, false));
  return status_of(work.launch(handle->stream));
}

}  // namespace

#define CUDASIM_VECTORS(X)                                              \
  X(S, float, Type::kSingle, nrm2_v2, asum_v2, S, Type::kSingle)        \
  X(D, double, Type::kDouble, nrm2_v2, asum_v2, D, Type::kDouble)       \
  X(C, void, Type::kComplexSingle, nrm2_v2, asum_v2, Sc, Type::kSingle) \
  X(Z, void, Type::kComplexDouble, nrm2_v2, asum_v2, Dz, Type::kDouble)

#define CUDASIM_VECTOR(prefix, element, type, nrm2, asum, norm_prefix, norm_type)                                     \
  CUDASIM_EXPORT int cublas##prefix##gemv_v2(Handle* handle, int operation, int m, int n, const element* alpha,       \
                                             const element* a, int lda, const element* x, int incx,                   \
                                             const element* beta, element* y, int incy) {                             \
    return matrix_vector(handle, operation, m, n, alpha, a, lda, x, incx, beta, y, incy, type);                       \
  }                                                                                                                   \
  CUDASIM_EXPORT int cublas##prefix##axpy_v2(Handle* handle, int n, const element* alpha, const element* x, int incx, \
                                             element* y, int incy) {                                                  \
    return update(handle, n, alpha, x, incx, y, incy, true, type);                                                    \
  }                                                                                                                   \
  CUDASIM_EXPORT int cublas##prefix##scal_v2(Handle* handle, int n, const element* alpha, element* x, int incx) {     \
    return update(handle, n, alpha, nullptr, 1, x, incx, true, type);                                                 \
  }                                                                                                                   \
  CUDASIM_EXPORT int cublas##prefix##copy_v2(Handle* handle, int n, const element* x, int incx, element* y,           \
                                             int incy) {                                                              \
    return update(handle, n, nullptr, x, incx, y, incy, false, type);                                                 \
  }                                                                                                                   \
  CUDASIM_EXPORT int cublas##norm_prefix##nrm2(Handle* handle, int n, const element* x, int incx, void* result) {     \
    return reduce(handle, n, x, incx, nullptr, 1, result, type, norm_type);                                           \
  }                                                                                                                   \
  CUDASIM_EXPORT int cublas##norm_prefix##asum(Handle* handle, int n, const element* x, int incx, void* result) {     \
    return reduce(handle, n, x, incx, nullptr, 1, result, type, norm_type);                                           \
  }                                                                                                                   \
  CUDASIM_EXPORT int cublas##prefix##trsm_v2(Handle* handle, int side, int, int, int, int m, int n,                   \
                                             const element* alpha, const element* a, int lda, element* b, int ldb) {  \
    return solve(handle, side, m, n, alpha, a, lda, b, ldb, 1, false, type);                                          \
  }                                                                                                                   \
  CUDASIM_EXPORT int cublas##prefix##trsmBatched(Handle* handle, int side, int, int, int, int m, int n,               \
                                                 const element* alpha, const element* const a[], int lda,             \
                                                 element* const b[], int ldb, int batch) {                            \
    return solve(handle, side, m, n, alpha, a, lda, const_cast<element**>(b), ldb, batch, true, type);                \
  }

#define CUDASIM_DOT(name, element, type)                                                                         \
  CUDASIM_EXPORT int cublas##name(Handle* handle, int n, const element* x, int incx, const element* y, int incy, \
                                  element* result) {                                                             \
    return reduce(handle, n, x, incx, y, incy, result, type, type);                                              \
  }

extern "C" {
CUDASIM_VECTORS(CUDASIM_VECTOR)
CUDASIM_DOT(Sdot_v2, float, Type::kSingle)
CUDASIM_DOT(Ddot_v2, double, Type::kDouble)
CUDASIM_DOT(Cdotu_v2, void, Type::kComplexSingle)
CUDASIM_DOT(Cdotc_v2, void, Type::kComplexSingle)
CUDASIM_DOT(Zdotu_v2, void, Type::kComplexDouble)
CUDASIM_DOT(Zdotc_v2, void, Type::kComplexDouble)

CUDASIM_EXPORT int cublasDotEx(Handle* handle, int n, const void* x, cudaDataType type_x, int incx, const void* y,
                               cudaDataType type_y, int incy, void* result, cudaDataType result_type, cudaDataType) {
  Type type{}, out{};
  if (type_x != type_y || !type_of(type_x, &type) || !type_of(result_type, &out)) return kNotSupported;
  return reduce(handle, n, x, incx, y, incy, result, type, out);
}
}
