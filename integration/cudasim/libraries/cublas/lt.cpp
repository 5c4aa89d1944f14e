// cuBLASLt: products described by descriptors, with what follows them (bias, activation).
//
// The descriptors are what the public header lets a program keep on its own stack: 64 bytes for a layout and a
// preference, 256 for an operation. So they are laid out here, and no pointers to memory of ours.
#include <stdlib.h>
#include <string.h>

#include <initializer_list>

#include "cublas/values.h"

using namespace cudasim::libraries;
using namespace cudasim::libraries::cublas;

namespace {

struct Layout {
  int32_t type, order;
  uint64_t rows, columns;
  int64_t leading;
  int32_t batch, mode;
  int64_t stride;
};
static_assert(sizeof(Layout) <= 64);

// Every attribute is kept in eight bytes, which is the longest one; those that mean nothing here, too.
constexpr int kAttributes = 30;
struct Description {
  uint64_t values[kAttributes];
};
static_assert(sizeof(Description) <= 256);

struct Preference {
  uint64_t workspace;
};

struct Algorithm {
  uint64_t data[8];
};

struct Heuristic {
  Algorithm algorithm;
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
};
static_assert(sizeof(Heuristic) == 96);

enum LayoutAttribute { kType, kOrder, kRows, kColumns, kLeading, kBatchCount, kBatchStride, kPlaneOffset, kBatchMode };
enum Order { kColumnMajor = 0, kRowMajor = 1 };
enum Attribute {
  kComputeTypeAttribute = 0,
  kScaleType = 1,
  kPointerMode = 2,
  kTransposeA = 3,
  kTransposeB = 4,
  kEpilogue = 7,
  kBias = 8,
  kAuxiliary = 11,
  kAuxiliaryLeading = 12,
  kAuxiliaryStride = 13,
  kScaleA = 17,
  kScaleB = 18,
  kScaleC = 19,
  kScaleD = 20,
  kAmaxD = 21,
  kAuxiliaryType = 22,
  kBiasType = 26,
};
enum Epilogue {
  kNone = 1,
  kRelu = 2,
  kBiased = 4,
  kGelu = 32,
  kAux = 128,
  kGradientOfBias = 16,
  kGradientA = 256,
  kGradientB = 512
};
constexpr int kWorkspaceAttribute = 1;

constexpr int kLastAttribute = 38;
// A place in Description for each attribute that has one; the scales' modes share what is left.
constexpr int place_of(int attribute) { return attribute < kAttributes ? attribute : -1; }

uint64_t as_number(const void* data, size_t bytes) {
  uint64_t value = 0;
  memcpy(&value, data, bytes < 8 ? bytes : 8);
  return value;
}

// A handle of cuBLAS serves cuBLASLt as well, as documented: neither is looked into.
struct Context {
  uint32_t magic;
};

void* pointer(const Description& d, int attribute) { return reinterpret_cast<void*>(d.values[attribute]); }

Part part(const void* data, const Layout& l, Type type) {
  const bool rows_first = l.order == kRowMajor;
  return matrix(data, static_cast<int64_t>(rows_first ? l.columns : l.rows),
                static_cast<int64_t>(rows_first ? l.rows : l.columns), l.leading, bytes_of(type), l.batch, l.stride);
}

struct Sizes {
  int64_t m, n, k;
  bool fit;
};

Sizes sizes_of(const Description& d, const Layout& a, const Layout& b, const Layout& c) {
  const bool ta = d.values[kTransposeA] != kPlain, tb = d.values[kTransposeB] != kPlain;
  const uint64_t m = ta ? a.columns : a.rows, k = ta ? a.rows : a.columns;
  const uint64_t kb = tb ? b.columns : b.rows, n = tb ? b.rows : b.columns;
  return {static_cast<int64_t>(m), static_cast<int64_t>(n), static_cast<int64_t>(k),
          kb == k && c.rows == m && c.columns == n};
}

bool orders_fit(const Layout& l) { return l.order == kColumnMajor || l.order == kRowMajor; }

}  // namespace

extern "C" {

CUDASIM_EXPORT int cublasLtCreate(Context** out) {
  if (!out) return kInvalidValue;
  *out = nullptr;
  if (cudaFree(nullptr) != cudaSuccess) {
    cudaGetLastError();
    return kNotInitialized;
  }
  *out = static_cast<Context*>(calloc(1, sizeof(Context)));
  return *out ? kSuccess : kAllocationFailed;
}

CUDASIM_EXPORT int cublasLtDestroy(Context* context) {
  if (!context) return kNotInitialized;
  free(context);
  return kSuccess;
}

CUDASIM_EXPORT size_t cublasLtGetVersion() { return kVersion; }
CUDASIM_EXPORT size_t cublasLtGetCudartVersion() { return CUDART_VERSION; }
CUDASIM_EXPORT int cublasLtGetProperty(int type, int* value) {
  if (!value || type < 0 || type > 2) return kInvalidValue;
  *value = type == 0 ? kVersion / 10000 : type == 1 ? kVersion / 100 % 100 : kVersion % 100;
  return kSuccess;
}

CUDASIM_EXPORT int cublasLtMatrixLayoutInit_internal(Layout* layout, size_t size, int type, uint64_t rows,
                                                     uint64_t columns, int64_t leading) {
  if (!layout || size < sizeof(Layout)) return kInvalidValue;
  memset(layout, 0, size);
  *layout = {type, kColumnMajor, rows, columns, leading, 1, 0, 0};
  return kSuccess;
}

CUDASIM_EXPORT int cublasLtMatrixLayoutCreate(Layout** out, int type, uint64_t rows, uint64_t columns,
                                              int64_t leading) {
  if (!out) return kInvalidValue;
  *out = static_cast<Layout*>(calloc(1, 64));
  return *out ? cublasLtMatrixLayoutInit_internal(*out, 64, type, rows, columns, leading) : kAllocationFailed;
}

CUDASIM_EXPORT int cublasLtMatrixLayoutDestroy(Layout* layout) {
  free(layout);
  return kSuccess;
}

CUDASIM_EXPORT int cublasLtMatrixLayoutSetAttribute(Layout* layout, int attribute, const void* data, size_t bytes) {
  if (!layout || !data) return kInvalidValue;
  const uint64_t value = as_number(data, bytes);
  switch (attribute) {
    case kType:
      layout->type = static_cast<int32_t>(value);
      return kSuccess;
    case kOrder:
      layout->order = static_cast<int32_t>(value);
      return kSuccess;
    case kRows:
      layout->rows = value;
      return kSuccess;
    case kColumns:
      layout->columns = value;
      return kSuccess;
    case kLeading:
      layout->leading = static_cast<int64_t>(value);
      return kSuccess;
    case kBatchCount:
      layout->batch = static_cast<int32_t>(value);
      return kSuccess;
    case kBatchStride:
      layout->stride = static_cast<int64_t>(value);
      return kSuccess;
    case kBatchMode:
      layout->mode = static_cast<int32_t>(value);
      return value == 0 ? kSuccess : kNotSupported;  // tables of pointers and grouped products
    case kPlaneOffset:
      return value == 0 ? kSuccess : kNotSupported;
    default:
      return kInvalidValue;
  }
}

CUDASIM_EXPORT int cublasLtMatmulDescInit_internal(Description* description, size_t size, int compute, int scale) {
  if (!description || size < sizeof(Description)) return kInvalidValue;
  memset(description, 0, size);
  description->values[kComputeTypeAttribute] = static_cast<uint64_t>(compute);
  description->values[kScaleType] = static_cast<uint64_t>(scale);
  description->values[kEpilogue] = kNone;
  return kSuccess;
}

CUDASIM_EXPORT int cublasLtMatmulDescCreate(Description** out, int compute, int scale) {
  if (!out) return kInvalidValue;
  *out = static_cast<Description*>(calloc(1, 256));
  return *out ? cublasLtMatmulDescInit_internal(*out, 256, compute, scale) : kAllocationFailed;
}

CUDASIM_EXPORT int cublasLtMatmulDescDestroy(Description* description) {
  free(description);
  return kSuccess;
}

CUDASIM_EXPORT int cublasLtMatmulDescSetAttribute(Description* description, int attribute, const void* data,
                                                  size_t bytes) {
  if (!description || !data || attribute < 0 || attribute > kLastAttribute || bytes > 8) return kInvalidValue;
  const uint64_t value = as_number(data, bytes);
  const int place = place_of(attribute);
  if (place >= 0) description->values[place] = value;
  // Beyond the table: how scales are laid out, which only changes numbers, and the output's scales, which are written.
  return place >= 0 || value == 0 || (attribute >= 31 && attribute <= 35) ? kSuccess : kNotSupported;
}

CUDASIM_EXPORT int cublasLtMatmulDescGetAttribute(const Description* description, int attribute, void* data,
                                                  size_t bytes, size_t* written) {
  if (!description || attribute < 0 || place_of(attribute) < 0 || bytes > 8) return kInvalidValue;
  if (data) memcpy(data, &description->values[attribute], bytes);
  if (written) *written = bytes;
  return kSuccess;
}

CUDASIM_EXPORT int cublasLtMatmulPreferenceInit_internal(Preference* preference, size_t size) {
  if (!preference || size < sizeof(Preference)) return kInvalidValue;
  memset(preference, 0, size);
  return kSuccess;
}

CUDASIM_EXPORT int cublasLtMatmulPreferenceCreate(Preference** out) {
  if (!out) return kInvalidValue;
  *out = static_cast<Preference*>(calloc(1, 64));
  return *out ? kSuccess : kAllocationFailed;
}

CUDASIM_EXPORT int cublasLtMatmulPreferenceDestroy(Preference* preference) {
  free(preference);
  return kSuccess;
}

CUDASIM_EXPORT int cublasLtMatmulPreferenceSetAttribute(Preference* preference, int attribute, const void* data,
                                                        size_t bytes) {
  if (!preference || !data) return kInvalidValue;
  if (attribute == kWorkspaceAttribute) preference->workspace = as_number(data, bytes);
  return kSuccess;  // the others choose between algorithms, of which there is one
}

CUDASIM_EXPORT int cublasLtMatmulAlgoGetHeuristic(Context* context, const Description* d, const Layout* a,
                                                  const Layout* b, const Layout* c, const Layout* result,
                                                  const Preference* preference, int asked, Heuristic* out, int* found) {
  if (!context) return kNotInitialized;
  if (!d || !a || !b || !c || !result || !preference || asked < 1 || !out || !found) return kInvalidValue;
  *found = 0;
  const Sizes sizes = sizes_of(*d, *a, *b, *result);
  Type type{};
  if (!sizes.fit) return kInvalidValue;
  if (!orders_fit(*a) || !orders_fit(*b) || !orders_fit(*c) || !orders_fit(*result) ||
      !type_of(static_cast<cudaDataType>(a->type), &type) || !type_of(static_cast<cudaDataType>(result->type), &type))
    return kNotSupported;
  memset(out, 0, sizeof(Heuristic));
  out->workspace = split_workspace(sizes.m, sizes.n, sizes.k, a->batch, preference->workspace);
  out->algorithm.data[0] = out->workspace;
  out->state = kSuccess;
  out->waves = 1;
  *found = 1;
  return kSuccess;
}

CUDASIM_EXPORT int cublasLtMatmulAlgoInit(Context* context, int, int, int, int, int, int, int, Algorithm* out) {
  if (!context) return kNotInitialized;
  if (!out) return kInvalidValue;
  memset(out, 0, sizeof(Algorithm));
  return kSuccess;
}

CUDASIM_EXPORT int cublasLtMatmulAlgoCheck(Context* context, const Description* d, const Layout* a, const Layout* b,
                                           const Layout*, const Layout* result, const Algorithm* algorithm,
                                           Heuristic* out) {
  if (!context) return kNotInitialized;
  if (!d || !a || !b || !result || !algorithm || !out) return kInvalidValue;
  if (!sizes_of(*d, *a, *b, *result).fit) return kInvalidValue;
  memset(out, 0, sizeof(Heuristic));
  out->algorithm = *algorithm;
  out->workspace = algorithm->data[0];
  out->waves = 1;
  return kSuccess;
}

// One algorithm: its configuration is accepted, and read back as zero.
CUDASIM_EXPORT int cublasLtMatmulAlgoConfigSetAttribute(Algorithm* algorithm, int, const void* data, size_t) {
  return algorithm && data ? kSuccess : kInvalidValue;
}

CUDASIM_EXPORT int cublasLtMatmulAlgoConfigGetAttribute(const Algorithm* algorithm, int, void* data, size_t bytes,
                                                        size_t* written) {
  if (!algorithm || !data) return kInvalidValue;
  memset(data, 0, bytes);
  if (written) *written = bytes;
  return kSuccess;
}

CUDASIM_EXPORT int cublasLtMatmul(Context* context, const Description* d, const void* alpha, const void* a_data,
                                  const Layout* a, const void* b_data, const Layout* b, const void* beta,
                                  const void* c_data, const Layout* c, void* result, const Layout* result_layout,
                                  const Algorithm* algorithm, void* workspace, size_t workspace_bytes,
                                  cudaStream_t stream) {
  if (!context) return kNotInitialized;
  if (!d || !alpha || !a || !b || !beta || !c || !result_layout) return kInvalidValue;
  const Sizes sizes = sizes_of(*d, *a, *b, *result_layout);
  if (!sizes.fit) return kInvalidValue;
  if (!sizes.m || !sizes.n) return kSuccess;
  Type type_a{}, type_b{}, type_c{}, type_d{}, scalar{};
  if (!type_of(static_cast<cudaDataType>(a->type), &type_a) || !type_of(static_cast<cudaDataType>(b->type), &type_b) ||
      !type_of(static_cast<cudaDataType>(c->type), &type_c) ||
      !type_of(static_cast<cudaDataType>(result_layout->type), &type_d) ||
      !type_of(static_cast<cudaDataType>(d->values[kScaleType]), &scalar) || !orders_fit(*a) || !orders_fit(*b) ||
      !orders_fit(*c) || !orders_fit(*result_layout))
    return kNotSupported;
  const uint64_t needed = algorithm ? algorithm->data[0] : 0;
  if (needed > workspace_bytes || (needed && !workspace)) return kInvalidValue;

  const bool host_scalars = d->values[kPointerMode] == kHost;
  const uint64_t epilogue = d->values[kEpilogue];
  const bool overwrites = host_scalars && as_number(beta, bytes_of(scalar)) == 0;
  Work work("cudasim_matrix_product");
  if (host_scalars) work.seed(alpha, bytes_of(scalar)).seed(beta, bytes_of(scalar));
  work.seed(&epilogue, sizeof(epilogue));
  work.read(part(a_data, *a, type_a)).read(part(b_data, *b, type_b));
  if (!overwrites) work.read(part(c_data, *c, type_c));
  for (const int scale : {kScaleA, kScaleB, kScaleC, kScaleD}) work.read(pointer(*d, scale), sizeof(float));

  Type bias_type = type_d;
  if (d->values[kBiasType]) type_of(static_cast<cudaDataType>(d->values[kBiasType]), &bias_type);
  const uint64_t row_bias = static_cast<uint64_t>(sizes.m) * bytes_of(bias_type);
  const uint64_t column_bias = static_cast<uint64_t>(sizes.n) * bytes_of(bias_type);
  const bool gradient_of_activation = (epilogue & kAux) && !(epilogue & (kRelu | kGelu));
  // What the activation's gradient needs: bits for ReLU, the values before it for GELU.
  const bool bits = (epilogue & kRelu) || (epilogue & 8);
  const Part auxiliary =
      matrix(pointer(*d, kAuxiliary), bits ? (sizes.m + 7) / 8 : sizes.m, sizes.n,
             bits ? static_cast<int64_t>(d->values[kAuxiliaryLeading] + 7) / 8
                  : static_cast<int64_t>(d->values[kAuxiliaryLeading]),
             bits ? 1 : bytes_of(type_d), a->batch, static_cast<int64_t>(d->values[kAuxiliaryStride]));
  if (epilogue & kBiased) work.read(pointer(*d, kBias), row_bias);
  if (gradient_of_activation) work.read(auxiliary);
  work.write(part(result, *result_layout, type_d));
  if ((epilogue & kAux) && !gradient_of_activation) work.write(auxiliary);
  if (epilogue & (kGradientOfBias | kGradientA)) work.write(pointer(*d, kBias), row_bias);
  if (epilogue & kGradientB) work.write(pointer(*d, kBias), column_bias);
  if (d->values[kAmaxD]) work.write(pointer(*d, kAmaxD), sizeof(float));
  work.write(workspace, needed).type(type_d);
  const double batch = a->batch > 1 ? a->batch : 1;
  const uint64_t compute = d->values[kComputeTypeAttribute];
  work.flops(2.0 * double(sizes.m) * double(sizes.n) * double(sizes.k) * batch,
             rate_of(type_a, compute == kCompute32FastTensorFloat || compute == kCompute32Fast16 ||
                                 compute == kCompute32FastBrainFloat));
  return status_of(work.launch(stream));
}
}
