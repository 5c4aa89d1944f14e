// Convolutions: algorithms with their workspaces, forward, and backward to data, filter and bias.
//
// Which algorithms there are, and what each wants: cuDNN's own choices are in no document, so these are what the
// algorithms need by their nature. Explicit products want the unfolded input, Winograd's with transforms of their own
// (not fused) both operands and the result in its 36 points for 16 results, precomputed indices one number per element
// of a filter. FFT is left out.
#include <string.h>

#include "cudnn/values.h"

using namespace cudasim::libraries;
using namespace cudasim::libraries::cudnn;

namespace {

constexpr int kMostSpatial = kMostDimensions - 2;

struct Convolution {
  int spatial;  // dimensions; 0: not set
  int padding[kMostSpatial], stride[kMostSpatial], dilation[kMostSpatial];
  int mode, compute, math, groups, reorder;
};

struct Performance {
  int algorithm, status;
  float milliseconds;
  size_t workspace;
  int determinism, math;
  int reserved[3];
};
static_assert(sizeof(Performance) == 48);

enum class Pass { kForward, kData, kFilter };

enum class Method { kImplicit, kPrecomputed, kExplicit, kWinograd, kWinogradApart };

struct Algorithm {
  int number;  // cuDNN's
  Method method;
  bool deterministic;
};

// In the order of preference where the method fits.
constexpr Algorithm kForward[] = {{7, Method::kWinogradApart, true},
                                  {6, Method::kWinograd, true},
                                  {1, Method::kPrecomputed, true},
                                  {0, Method::kImplicit, true},
                                  {2, Method::kExplicit, true}};
constexpr Algorithm kData[] = {{5, Method::kWinogradApart, true},
                               {4, Method::kWinograd, true},
                               {1, Method::kPrecomputed, true},
                               {0, Method::kImplicit, false}};
constexpr Algorithm kFilter[] = {{5, Method::kWinogradApart, true},
                                 {1, Method::kPrecomputed, true},
                                 {0, Method::kImplicit, false},
                                 {3, Method::kExplicit, false}};
constexpr int kForwardCount = 8, kDataCount = 6, kFilterCount = 7;

struct Algorithms {
  const Algorithm* list;
  int count, documented;
};

Algorithms algorithms_of(Pass pass) {
  switch (pass) {
    case Pass::kForward:
      return {kForward, 5, kForwardCount};
    case Pass::kData:
      return {kData, 4, kDataCount};
    default:
      return {kFilter, 4, kFilterCount};
  }
}

const Algorithm* find(Pass pass, int number) {
  const Algorithms all = algorithms_of(pass);
  for (int i = 0; i < all.count; ++i)
    if (all.list[i].number == number) return &all.list[i];
  return nullptr;
}

struct Shapes {
  const Tensor *input, *output;
  const Filter* filter;
  const Convolution* convolution;
};

int check(const Shapes& s) {
  if (!s.input || !s.output || !s.filter || !s.convolution) return kNullPointer;
  const int count = s.input->count;
  if (count < 3 || s.output->count != count || s.filter->count != count || s.convolution->spatial != count - 2)
    return kBadParameter;
  if (s.convolution->groups < 1 || s.filter->size[1] * s.convolution->groups != s.input->size[1] ||
      s.filter->size[0] != s.output->size[1] || s.input->size[0] != s.output->size[0])
    return kShapeMismatch;
  for (int i = 0; i < s.convolution->spatial; ++i) {
    const int reach = s.convolution->dilation[i] * (s.filter->size[i + 2] - 1) + 1;
    if ((s.input->size[i + 2] + 2 * s.convolution->padding[i] - reach) / s.convolution->stride[i] + 1 !=
        s.output->size[i + 2])
      return kShapeMismatch;
  }
  return kSuccess;
}

double flops_of(const Shapes& s) {
  double per_result = 2.0 * s.filter->size[1];
  for (int i = 2; i < s.filter->count; ++i) per_result *= s.filter->size[i];
  return per_result * double(elements(*s.output));
}

bool fits_winograd(const Shapes& s) {
  const Convolution& c = *s.convolution;
  if (c.spatial != 2 || c.groups != 1 || s.filter->size[2] != 3 || s.filter->size[3] != 3) return false;
  for (int i = 0; i < 2; ++i)
    if (c.stride[i] != 1 || c.dilation[i] != 1) return false;
  return s.filter->size[0] >= 16 && s.filter->size[1] >= 16;
}

bool fits(const Shapes& s, Method method) {
  return (method != Method::kWinograd && method != Method::kWinogradApart) || fits_winograd(s);
}

uint64_t workspace_of(const Shapes& s, Pass pass, Method method) {
  const uint64_t element = element_bytes(s.input->type);
  const uint64_t weights = elements(*s.filter) * element;
  switch (method) {
    case Method::kPrecomputed: {
      if (pass == Pass::kForward) return elements(*s.filter) / static_cast<uint64_t>(s.filter->size[0]) * 8;
      // Backward: partial sums in single precision, one set for the filter, the weights turned round for the data.
      return pass == Pass::kFilter ? elements(*s.filter) * sizeof(float) : weights;
    }
    case Method::kExplicit: {
      // One image, unfolded.
      const uint64_t images = static_cast<uint64_t>(s.output->size[0]) * static_cast<uint64_t>(s.output->size[1]);
      const uint64_t places = images ? elements(*s.output) / images : 0;
      return elements(*s.filter) / static_cast<uint64_t>(s.filter->size[0]) *
             static_cast<uint64_t>(s.convolution->groups) * places * element;
    }
    case Method::kWinograd:
      return weights * 16 / 9;
    case Method::kWinogradApart:
      return (elements(*s.input) + elements(*s.output)) * element * 36 / 16 + weights * 36 / 9;
    default:
      return 0;
  }
}

// A third of the products and some transforms: less arithmetic, more bytes.
double speed_up(Method method) { return method == Method::kWinograd || method == Method::kWinogradApart ? 2.25 : 1; }

// Half precision on tensor cores; single precision as the descriptor allows: TensorFloat-32 unless it asks for FMA.
double rate(const Shapes& s) {
  const Type type = element_type(s.input->type);
  const bool half = type == Type::kHalf || type == Type::kBrainFloat;
  if (half && s.convolution->math == kFmaMath) return 1;
  return rate_of(type, s.convolution->math != kFmaMath);
}

struct Call {
  Pass pass;
  const Algorithm* algorithm;
  const void *alpha, *beta;
  const void *first, *second;  // what it reads
  void* result;
  void* workspace;
};

constexpr const char* kNames[] = {"cudasim_convolution_forward", "cudasim_convolution_backward_data",
                                  "cudasim_convolution_backward_filter"};

int run(const Handle& handle, const Shapes& s, const Call& call) {
  Part input{}, output{}, filter = part_of(*s.filter, nullptr);
  if (!part_of(*s.input, nullptr, &input) || !part_of(*s.output, nullptr, &output)) return kNotSupported;
  Part &first = call.pass == Pass::kData ? filter : input, &second = call.pass == Pass::kForward ? filter : output,
       &result = call.pass == Pass::kForward ? output
                 : call.pass == Pass::kData  ? input
                                             : filter;
  first.data = const_cast<void*>(call.first);
  second.data = const_cast<void*>(call.second);
  result.data = call.result;
  Work work(kNames[static_cast<int>(call.pass)]);
  work.read(first).read(second);
  const double alpha = scalar(call.alpha, s.input->type), beta = scalar(call.beta, s.input->type);
  work.seed(&alpha, sizeof(alpha)).seed(&beta, sizeof(beta));
  if (beta != 0) work.read(result);
  work.write(result).write(call.workspace, workspace_of(s, call.pass, call.algorithm->method));
  work.type(element_type(s.input->type)).flops(flops_of(s) / speed_up(call.algorithm->method), rate(s));
  return status_of(work.launch(handle.stream));
}

int convolve(const Handle* handle, const Shapes& s, Call call, int number, size_t workspace_bytes) {
  if (!handle) return kNullPointer;
  if (const int status = check(s); status != kSuccess) return status;
  if (!call.first || !call.second || !call.result) return kNullPointer;
  call.algorithm = find(call.pass, number);
  if (!call.algorithm || !fits(s, call.algorithm->method)) return kNotSupported;
  const uint64_t needed = workspace_of(s, call.pass, call.algorithm->method);
  if (needed > workspace_bytes || (needed && !call.workspace)) return kSizeInsufficient;
  return run(*handle, s, call);
}

// Rates of a device that nothing is asked about: only the order of the results means something.
float milliseconds(const Shapes& s, Method method) {
  constexpr double kFlopsPerMillisecond = 2e10;
  double time = flops_of(s) / rate(s) / speed_up(method) / kFlopsPerMillisecond;
  if (method == Method::kImplicit) time *= 1.2;
  if (method == Method::kExplicit) time *= 1.5;
  if (method == Method::kWinogradApart && element_bytes(s.input->type) < 4) time *= 3;
  return static_cast<float>(time);
}

// Fills in what fits within the limit, the fastest first, and then the other documented algorithms as not supported.
int list(const Shapes& s, Pass pass, int asked, int* returned, Performance* out, uint64_t limit) {
  if (!returned || !out) return kNullPointer;
  if (asked < 1) return kBadParameter;
  if (const int status = check(s); status != kSuccess) return status;
  const Algorithms all = algorithms_of(pass);
  int count = 0;
  bool listed[kForwardCount] = {};
  Performance best[kForwardCount];
  for (int i = 0; i < all.count; ++i) {
    const Algorithm& algorithm = all.list[i];
    const uint64_t workspace = fits(s, algorithm.method) ? workspace_of(s, pass, algorithm.method) : 0;
    if (!fits(s, algorithm.method) || workspace > limit) continue;
    Performance mine{
        algorithm.number,    kSuccess, milliseconds(s, algorithm.method), workspace, algorithm.deterministic,
        s.convolution->math, {0, 0, 0}};
    listed[algorithm.number] = true;
    int at = count++;
    for (; at > 0 && best[at - 1].milliseconds > mine.milliseconds; --at) best[at] = best[at - 1];
    best[at] = mine;
  }
  for (int number = 0; number < all.documented && count < all.documented; ++number)
    if (!listed[number]) best[count++] = {number, kNotSupported, -1, 0, 0, 0, {0, 0, 0}};
  *returned = count < asked ? count : asked;
  memcpy(out, best, static_cast<size_t>(*returned) * sizeof(Performance));
  return kSuccess;
}

// What a search does: it runs each once.
int search(const Handle* handle, const Shapes& s, Call call, int asked, int* returned, Performance* out,
           size_t workspace_bytes) {
  if (!handle) return kNullPointer;
  const int status = list(s, call.pass, asked, returned, out, call.workspace ? workspace_bytes : 0);
  for (int i = 0; status == kSuccess && i < *returned; ++i) {
    if (out[i].status != kSuccess) continue;
    call.algorithm = find(call.pass, out[i].algorithm);
    out[i].status = run(*handle, s, call);
  }
  return status;
}

int workspace(const Shapes& s, Pass pass, int number, size_t* bytes) {
  if (!bytes) return kNullPointer;
  if (const int status = check(s); status != kSuccess) return status;
  const Algorithm* const algorithm = find(pass, number);
  if (!algorithm || !fits(s, algorithm->method)) return kNotSupported;
  *bytes = workspace_of(s, pass, algorithm->method);
  return kSuccess;
}

// Searches by rule look at no memory: the program checks the workspaces itself.
constexpr uint64_t kAny = ~uint64_t{0};

}  // namespace

extern "C" {

CUDASIM_EXPORT int cudnnCreateConvolutionDescriptor(Convolution** out) {
  const int status = create(out);
  if (status == kSuccess) (*out)->groups = 1;
  return status;
}
CUDASIM_EXPORT int cudnnDestroyConvolutionDescriptor(Convolution* convolution) { return destroy(convolution); }

CUDASIM_EXPORT int cudnnSetConvolutionNdDescriptor(Convolution* c, int count, const int padding[], const int stride[],
                                                   const int dilation[], int mode, int compute) {
  if (!c || !padding || !stride || !dilation) return kNullPointer;
  if (count < 1 || count > kMostSpatial) return kNotSupported;
  for (int i = 0; i < count; ++i)
    if (padding[i] < 0 || stride[i] < 1 || dilation[i] < 1) return kBadParameter;
  c->spatial = count;
  for (int i = 0; i < count; ++i) c->padding[i] = padding[i], c->stride[i] = stride[i], c->dilation[i] = dilation[i];
  c->mode = mode;
  c->compute = compute;
  return kSuccess;
}

CUDASIM_EXPORT int cudnnSetConvolution2dDescriptor(Convolution* c, int pad_h, int pad_w, int stride_h, int stride_w,
                                                   int dilation_h, int dilation_w, int mode, int compute) {
  const int padding[] = {pad_h, pad_w}, stride[] = {stride_h, stride_w}, dilation[] = {dilation_h, dilation_w};
  return cudnnSetConvolutionNdDescriptor(c, 2, padding, stride, dilation, mode, compute);
}

CUDASIM_EXPORT int cudnnSetConvolutionMathType(Convolution* c, int math) {
  if (!c) return kNullPointer;
  if (math < kDefaultMath || math > kFmaMath) return kBadParameter;
  c->math = math;
  return kSuccess;
}
CUDASIM_EXPORT int cudnnGetConvolutionMathType(Convolution* c, int* math) {
  if (!c || !math) return kNullPointer;
  *math = c->math;
  return kSuccess;
}
CUDASIM_EXPORT int cudnnSetConvolutionGroupCount(Convolution* c, int groups) {
  if (!c) return kNullPointer;
  if (groups < 1) return kBadParameter;
  c->groups = groups;
  return kSuccess;
}
CUDASIM_EXPORT int cudnnGetConvolutionGroupCount(Convolution* c, int* groups) {
  if (!c || !groups) return kNullPointer;
  *groups = c->groups;
  return kSuccess;
}
CUDASIM_EXPORT int cudnnSetConvolutionReorderType(Convolution* c, int reorder) {
  if (!c) return kNullPointer;
  c->reorder = reorder;
  return kSuccess;
}

CUDASIM_EXPORT int cudnnGetConvolutionForwardAlgorithmMaxCount(Handle*, int* count) {
  return count ? (*count = kForwardCount, kSuccess) : kNullPointer;
}
CUDASIM_EXPORT int cudnnGetConvolutionBackwardDataAlgorithmMaxCount(Handle*, int* count) {
  return count ? (*count = kDataCount, kSuccess) : kNullPointer;
}
CUDASIM_EXPORT int cudnnGetConvolutionBackwardFilterAlgorithmMaxCount(Handle*, int* count) {
  return count ? (*count = kFilterCount, kSuccess) : kNullPointer;
}

CUDASIM_EXPORT int cudnnGetConvolutionForwardAlgorithm_v7(Handle*, const Tensor* x, const Filter* w,
                                                          const Convolution* c, const Tensor* y, int asked,
                                                          int* returned, Performance* out) {
  return list({x, y, w, c}, Pass::kForward, asked, returned, out, kAny);
}
CUDASIM_EXPORT int cudnnGetConvolutionBackwardDataAlgorithm_v7(Handle*, const Filter* w, const Tensor* dy,
                                                               const Convolution* c, const Tensor* dx, int asked,
                                                               int* returned, Performance* out) {
  return list({dx, dy, w, c}, Pass::kData, asked, returned, out, kAny);
}
CUDASIM_EXPORT int cudnnGetConvolutionBackwardFilterAlgorithm_v7(Handle*, const Tensor* x, const Tensor* dy,
                                                                 const Convolution* c, const Filter* dw, int asked,
                                                                 int* returned, Performance* out) {
  return list({x, dy, dw, c}, Pass::kFilter, asked, returned, out, kAny);
}

CUDASIM_EXPORT int cudnnFindConvolutionForwardAlgorithmEx(Handle* handle, const Tensor* x_desc, const void* x,
                                                          const Filter* w_desc, const void* w, const Convolution* c,
                                                          const Tensor* y_desc, void* y, int asked, int* returned,
                                                          Performance* out, void* space, size_t bytes) {
  return search(handle, {x_desc, y_desc, w_desc, c}, {Pass::kForward, nullptr, nullptr, nullptr, x, w, y, space}, asked,
                returned, out, bytes);
}
CUDASIM_EXPORT int cudnnFindConvolutionBackwardDataAlgorithmEx(Handle* handle, const Filter* w_desc, const void* w,
                                                               const Tensor* dy_desc, const void* dy,
                                                               const Convolution* c, const Tensor* dx_desc, void* dx,
                                                               int asked, int* returned, Performance* out, void* space,
                                                               size_t bytes) {
  return search(handle, {dx_desc, dy_desc, w_desc, c}, {Pass::kData, nullptr, nullptr, nullptr, w, dy, dx, space},
                asked, returned, out, bytes);
}
CUDASIM_EXPORT int cudnnFindConvolutionBackwardFilterAlgorithmEx(Handle* handle, const Tensor* x_desc, const void* x,
                                                                 const Tensor* dy_desc, const void* dy,
                                                                 const Convolution* c, const Filter* dw_desc, void* dw,
                                                                 int asked, int* returned, Performance* out,
                                                                 void* space, size_t bytes) {
  return search(handle, {x_desc, dy_desc, dw_desc, c}, {Pass::kFilter, nullptr, nullptr, nullptr, x, dy, dw, space},
                asked, returned, out, bytes);
}

CUDASIM_EXPORT int cudnnGetConvolutionForwardWorkspaceSize(Handle*, const Tensor* x, const Filter* w,
                                                           const Convolution* c, const Tensor* y, int algorithm,
                                                           size_t* bytes) {
  return workspace({x, y, w, c}, Pass::kForward, algorithm, bytes);
}
CUDASIM_EXPORT int cudnnGetConvolutionBackwardDataWorkspaceSize(Handle*, const Filter* w, const Tensor* dy,
                                                                const Convolution* c, const Tensor* dx, int algorithm,
                                                                size_t* bytes) {
  return workspace({dx, dy, w, c}, Pass::kData, algorithm, bytes);
}
CUDASIM_EXPORT int cudnnGetConvolutionBackwardFilterWorkspaceSize(Handle*, const Tensor* x, const Tensor* dy,
                                                                  const Convolution* c, const Filter* dw, int algorithm,
                                                                  size_t* bytes) {
  return workspace({x, dy, dw, c}, Pass::kFilter, algorithm, bytes);
}

CUDASIM_EXPORT int cudnnConvolutionForward(Handle* handle, const void* alpha, const Tensor* x_desc, const void* x,
                                           const Filter* w_desc, const void* w, const Convolution* c, int algorithm,
                                           void* space, size_t bytes, const void* beta, const Tensor* y_desc, void* y) {
  return convolve(handle, {x_desc, y_desc, w_desc, c}, {Pass::kForward, nullptr, alpha, beta, x, w, y, space},
                  algorithm, bytes);
}
CUDASIM_EXPORT int cudnnConvolutionBackwardData(Handle* handle, const void* alpha, const Filter* w_desc, const void* w,
                                                const Tensor* dy_desc, const void* dy, const Convolution* c,
                                                int algorithm, void* space, size_t bytes, const void* beta,
                                                const Tensor* dx_desc, void* dx) {
  return convolve(handle, {dx_desc, dy_desc, w_desc, c}, {Pass::kData, nullptr, alpha, beta, w, dy, dx, space},
                  algorithm, bytes);
}
CUDASIM_EXPORT int cudnnConvolutionBackwardFilter(Handle* handle, const void* alpha, const Tensor* x_desc,
                                                  const void* x, const Tensor* dy_desc, const void* dy,
                                                  const Convolution* c, int algorithm, void* space, size_t bytes,
                                                  const void* beta, const Filter* dw_desc, void* dw) {
  return convolve(handle, {x_desc, dy_desc, dw_desc, c}, {Pass::kFilter, nullptr, alpha, beta, x, dy, dw, space},
                  algorithm, bytes);
}

CUDASIM_EXPORT int cudnnConvolutionBackwardBias(Handle* handle, const void*, const Tensor* dy_desc, const void* dy,
                                                const void* beta, const Tensor* db_desc, void* db) {
  if (!handle || !dy_desc || !dy || !db_desc || !db) return kNullPointer;
  Part gradient{}, bias{};
  if (!part_of(*dy_desc, dy, &gradient) || !part_of(*db_desc, db, &bias)) return kNotSupported;
  Work work("cudasim_convolution_backward_bias");
  work.read(gradient);
  if (scalar(beta, dy_desc->type) != 0) work.read(bias);
  work.write(bias).type(element_type(db_desc->type)).flops(double(elements(*dy_desc)));
  return status_of(work.launch(handle->stream));
}

CUDASIM_EXPORT int cudnnConvolutionBiasActivationForward(Handle* handle, const void*, const Tensor* x_desc,
                                                         const void* x, const Filter* w_desc, const void* w,
                                                         const Convolution* c, int number, void* space, size_t bytes,
                                                         const void* alpha_z, const Tensor* z_desc, const void* z,
                                                         const Tensor* bias_desc, const void* bias, const Activation*,
                                                         const Tensor* y_desc, void* y) {
  const Shapes s{x_desc, y_desc, w_desc, c};
  if (!handle || !bias_desc || !bias || !x || !w || !y) return kNullPointer;
  if (const int status = check(s); status != kSuccess) return status;
  const Algorithm* const algorithm = find(Pass::kForward, number);
  if (!algorithm || !fits(s, algorithm->method)) return kNotSupported;
  const uint64_t needed = workspace_of(s, Pass::kForward, algorithm->method);
  if (needed > bytes || (needed && !space)) return kSizeInsufficient;
  Part input{}, output{}, addend{}, biases{};
  if (!part_of(*x_desc, x, &input) || !part_of(*y_desc, y, &output) || !part_of(*bias_desc, bias, &biases))
    return kNotSupported;
  Work work("cudasim_convolution_forward");
  work.read(input).read(part_of(*w_desc, w)).read(biases);
  if (z_desc && z && scalar(alpha_z, x_desc->type) != 0) {
    if (!part_of(*z_desc, z, &addend)) return kNotSupported;
    work.read(addend);
  }
  work.write(output).write(space, needed).type(element_type(y_desc->type));
  work.flops(flops_of(s) / speed_up(algorithm->method), rate(s));
  return status_of(work.launch(handle->stream));
}
}
