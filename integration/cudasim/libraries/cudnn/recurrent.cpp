// Recurrent networks by the interface of cuDNN 8: plain cells, LSTM, GRU; several layers, both directions.
//
// The weights lie as cuDNN documents them for cudnnGetRNNWeightParams: for each layer and direction the matrices of the
// input, then those of the state, then a projection; the biases of all of them behind all matrices. Sizes of workspace
// and reserve are what the passes need to keep, cuDNN's own are in no document.
#include "cudnn/values.h"

using namespace cudasim::libraries;
using namespace cudasim::libraries::cudnn;

namespace {

enum Cell { kRelu = 0, kTanh = 1, kLstm = 2, kGru = 3 };
enum Bias { kNoBias = 0, kInputBias = 1, kBothBiases = 2, kStateBias = 3 };
enum Input { kLinear = 0, kSkip = 1 };
enum Layout { kPacked = 1 };
constexpr int kTraining = 1, kAddGradients = 0, kTf32 = kTensorOpMathWithConversion;

struct Network {
  int cell, bias, directions, input_mode, type, compute, math;
  int64_t input, hidden, projection, layers;
  float dropout;
  void* states;
  uint64_t state_bytes;
};

struct Sequences {
  int type, layout;
  int64_t longest, batch, width;
  int64_t steps;  // in all sequences together
};

int gates(const Network& n) { return n.cell == kLstm ? 4 : n.cell == kGru ? 3 : 1; }
int64_t output_width(const Network& n) { return n.projection > 0 ? n.projection : n.hidden; }
int64_t input_width(const Network& n, int64_t pseudo_layer) {
  return pseudo_layer < n.directions ? n.input : output_width(n) * n.directions;
}
bool has_input_matrices(const Network& n, int64_t pseudo_layer) {
  return n.input_mode == kLinear || pseudo_layer >= n.directions;
}
bool has_projection(const Network& n) { return n.cell == kLstm && output_width(n) != n.hidden; }

int64_t matrix_elements(const Network& n, int64_t pseudo_layer) {
  int64_t count = gates(n) * n.hidden * output_width(n);
  if (has_input_matrices(n, pseudo_layer)) count += gates(n) * n.hidden * input_width(n, pseudo_layer);
  return has_projection(n) ? count + n.hidden * n.projection : count;
}

int bias_sets(const Network& n) { return n.bias == kNoBias ? 0 : n.bias == kBothBiases ? 2 : 1; }

int64_t weights(const Network& n) {
  int64_t count = n.layers * n.directions * bias_sets(n) * gates(n) * n.hidden;
  for (int64_t layer = 0; layer < n.layers * n.directions; ++layer) count += matrix_elements(n, layer);
  return count;
}

uint64_t padded_steps(const Sequences& s) { return static_cast<uint64_t>(s.longest * s.batch); }

// For each layer, direction and step the gates and what follows from them; a mask between layers with dropout.
uint64_t reserve_bytes(const Network& n, const Sequences& s) {
  const uint64_t element = element_bytes(n.type);
  const int kept = gates(n) + (n.cell == kLstm ? 2 : n.cell == kGru ? 2 : 1);
  uint64_t bytes = static_cast<uint64_t>(n.layers * n.directions * n.hidden * kept) * padded_steps(s) * element;
  if (n.dropout > 0 && n.layers > 1)
    bytes += static_cast<uint64_t>((n.layers - 1) * n.directions * n.hidden) * padded_steps(s) / 8 + 8;
  return bytes;
}

// The products of one layer's input for all steps, and the sums of a step.
uint64_t workspace_bytes(const Network& n, const Sequences& s) {
  const auto one = static_cast<uint64_t>(n.directions * gates(n) * n.hidden);
  return one * padded_steps(s) * element_bytes(n.type) +
         one * static_cast<uint64_t>(s.batch * n.layers) * sizeof(float);
}

double flops_of(const Network& n, const Sequences& s) {
  double count = 0;
  for (int64_t layer = 0; layer < n.layers * n.directions; ++layer) count += 2.0 * double(matrix_elements(n, layer));
  return count * double(s.steps);
}

double rate(const Network& n) {
  const Type type = element_type(n.type);
  return rate_of(type, n.math == kTf32);
}

Part data_part(const Sequences& s, const void* data) {
  const int64_t steps = s.layout == kPacked ? s.steps : s.longest * s.batch;
  const uint64_t bytes = static_cast<uint64_t>(steps * s.width) * element_bytes(s.type);
  return {const_cast<void*>(data), bytes, 1, bytes, 1, 0, 0};
}

Part state_part(const Tensor* desc, const void* data) {
  Part part{};
  if (desc && data) part_of(*desc, data, &part);
  return part;
}

struct Spaces {
  size_t weight_bytes, work_bytes;
  void* workspace;
  size_t reserve_bytes;
  void* reserve;
};

int check(const Handle* handle, const Network* n, const Sequences* x, const Spaces& spaces, bool training) {
  if (!handle || !n || !x) return kNullPointer;
  if (spaces.weight_bytes < static_cast<uint64_t>(weights(*n)) * element_bytes(n->type) ||
      spaces.work_bytes < workspace_bytes(*n, *x) || (training && spaces.reserve_bytes < reserve_bytes(*n, *x)))
    return kSizeInsufficient;
  if (!spaces.workspace || (training && !spaces.reserve)) return kNullPointer;
  return kSuccess;
}

}  // namespace

extern "C" {

CUDASIM_EXPORT int cudnnCreateRNNDescriptor(Network** out) { return create(out); }
CUDASIM_EXPORT int cudnnDestroyRNNDescriptor(Network* network) { return destroy(network); }

CUDASIM_EXPORT int cudnnSetRNNDescriptor_v8(Network* n, int, int cell, int bias, int direction, int input_mode,
                                            int type, int compute, int math, int32_t input, int32_t hidden,
                                            int32_t projection, int32_t layers, const Dropout* dropout, uint32_t) {
  if (!n) return kNullPointer;
  Type known{};
  if (!type_of(type, &known) || cell < kRelu || cell > kGru) return kNotSupported;
  if (input < 1 || hidden < 1 || layers < 1 || projection < 0 || projection > hidden) return kBadParameter;
  *n = {cell, bias, direction + 1, input_mode, type, compute, math, input, hidden, projection, layers, 0, nullptr, 0};
  if (dropout) n->dropout = dropout->probability, n->states = dropout->states, n->state_bytes = dropout->state_bytes;
  return kSuccess;
}

CUDASIM_EXPORT int cudnnCreateRNNDataDescriptor(Sequences** out) { return create(out); }
CUDASIM_EXPORT int cudnnDestroyRNNDataDescriptor(Sequences* sequences) { return destroy(sequences); }

CUDASIM_EXPORT int cudnnSetRNNDataDescriptor(Sequences* s, int type, int layout, int longest, int batch, int width,
                                             const int lengths[], void*) {
  if (!s || !lengths) return kNullPointer;
  if (longest < 1 || batch < 1 || width < 1) return kBadParameter;
  *s = {type, layout, longest, batch, width, 0};
  for (int i = 0; i < batch; ++i) {
    if (lengths[i] < 0 || lengths[i] > longest) return kBadParameter;
    s->steps += lengths[i];
  }
  return kSuccess;
}

CUDASIM_EXPORT int cudnnGetRNNTempSpaceSizes(Handle* handle, const Network* n, int mode, const Sequences* x,
                                             size_t* workspace, size_t* reserve) {
  if (!handle || !n || !x) return kNullPointer;
  if (workspace) *workspace = workspace_bytes(*n, *x);
  if (reserve) *reserve = mode == kTraining ? reserve_bytes(*n, *x) : 0;
  return kSuccess;
}

CUDASIM_EXPORT int cudnnGetRNNWeightSpaceSize(Handle* handle, const Network* n, size_t* bytes) {
  if (!handle || !n || !bytes) return kNullPointer;
  *bytes = static_cast<uint64_t>(weights(*n)) * element_bytes(n->type);
  return kSuccess;
}

CUDASIM_EXPORT int cudnnGetRNNWeightParams(Handle* handle, const Network* n, int32_t pseudo_layer, size_t bytes,
                                           const void* space, int32_t linear, Tensor* matrix_desc, void** matrix,
                                           Tensor* bias_desc, void** bias) {
  // Programs ask for the matrix or the bias alone and leave out the other's descriptor and address.
  if (!handle || !n || !matrix_desc != !matrix || !bias_desc != !bias) return kNullPointer;
  const int count = gates(*n), last = 2 * count + (has_projection(*n) ? 1 : 0);
  if (pseudo_layer < 0 || pseudo_layer >= n->layers * n->directions || linear < 0 || linear >= last)
    return kBadParameter;
  if (bytes < static_cast<uint64_t>(weights(*n)) * element_bytes(n->type)) return kSizeInsufficient;

  int64_t offset = 0;
  for (int64_t layer = 0; layer < pseudo_layer; ++layer) offset += matrix_elements(*n, layer);
  const int64_t input = has_input_matrices(*n, pseudo_layer) ? input_width(*n, pseudo_layer) : 0;
  int64_t rows = n->hidden, columns = 0;
  if (linear < count) {
    columns = input;
    offset += linear * n->hidden * input;
  } else if (linear < 2 * count) {
    columns = output_width(*n);
    offset += count * n->hidden * input + (linear - count) * n->hidden * columns;
  } else {
    rows = n->projection, columns = n->hidden;
    offset += count * n->hidden * (input + output_width(*n));
  }
  const auto describe = [&](Tensor& desc, int64_t height, int64_t width) {
    desc = {n->type, 3, {1, int(height), int(width)}, {int(height * width), int(width), 1}};
  };
  // Addresses are offsets where the program asks with a null space.
  const auto at = [&](int64_t element) {
    return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(space) +
                                   static_cast<uint64_t>(element) * element_bytes(n->type));
  };
  if (matrix) {
    *matrix = columns ? at(offset) : nullptr;
    matrix_desc->count = 0;
    if (columns) describe(*matrix_desc, rows, columns);
  }
  if (!bias) return kSuccess;
  *bias = nullptr;
  bias_desc->count = 0;
  const bool biased = linear < count ? n->bias == kInputBias || n->bias == kBothBiases
                                     : linear < 2 * count && (n->bias == kStateBias || n->bias == kBothBiases);
  if (biased) {
    int64_t place = 0;
    for (int64_t layer = 0; layer < n->layers * n->directions; ++layer) place += matrix_elements(*n, layer);
    const int within = n->bias == kBothBiases || linear < count ? linear : linear - count;
    place += (pseudo_layer * bias_sets(*n) * count + within) * n->hidden;
    describe(*bias_desc, n->hidden, 1);
    *bias = at(place);
  }
  return kSuccess;
}

CUDASIM_EXPORT int cudnnRNNForward(Handle* handle, const Network* n, int mode, const int32_t*, const Sequences* x_desc,
                                   const void* x, const Sequences* y_desc, void* y, const Tensor* h_desc,
                                   const void* hx, void* hy, const Tensor* c_desc, const void* cx, void* cy,
                                   size_t weight_bytes, const void* weight, size_t work_size, void* workspace,
                                   size_t reserve_size, void* reserve) {
  const Spaces spaces{weight_bytes, work_size, workspace, reserve_size, reserve};
  const bool training = mode == kTraining;
  if (const int status = check(handle, n, x_desc, spaces, training); status != kSuccess) return status;
  if (!x || !y_desc || !y || !weight) return kNullPointer;
  const bool drops = training && n->dropout > 0 && n->layers > 1 && n->states;
  Work work("cudasim_recurrent_forward");
  work.read(data_part(*x_desc, x)).read(state_part(h_desc, hx)).read(state_part(c_desc, cx)).read(weight, weight_bytes);
  if (drops) work.read(n->states, n->state_bytes);
  work.write(data_part(*y_desc, y)).write(state_part(h_desc, hy)).write(state_part(c_desc, cy));
  work.write(workspace, workspace_bytes(*n, *x_desc));
  if (training) work.write(reserve, reserve_bytes(*n, *x_desc));
  if (drops) work.write(n->states, n->state_bytes);
  work.type(element_type(n->type)).flops(flops_of(*n, *x_desc), rate(*n));
  return status_of(work.launch(handle->stream));
}

CUDASIM_EXPORT int cudnnRNNBackwardData_v8(Handle* handle, const Network* n, const int32_t*, const Sequences* y_desc,
                                           const void* y, const void* dy, const Sequences* x_desc, void* dx,
                                           const Tensor* h_desc, const void* hx, const void* dhy, void* dhx,
                                           const Tensor* c_desc, const void* cx, const void* dcy, void* dcx,
                                           size_t weight_bytes, const void* weight, size_t work_size, void* workspace,
                                           size_t reserve_size, void* reserve) {
  const Spaces spaces{weight_bytes, work_size, workspace, reserve_size, reserve};
  if (const int status = check(handle, n, x_desc, spaces, true); status != kSuccess) return status;
  if (!y_desc || !y || !dy || !dx || !weight) return kNullPointer;
  Work work("cudasim_recurrent_backward_data");
  work.read(data_part(*y_desc, y)).read(data_part(*y_desc, dy)).read(state_part(h_desc, hx));
  work.read(state_part(h_desc, dhy)).read(state_part(c_desc, cx)).read(state_part(c_desc, dcy));
  work.read(weight, weight_bytes).read(reserve, reserve_bytes(*n, *x_desc));
  work.write(data_part(*x_desc, dx)).write(state_part(h_desc, dhx)).write(state_part(c_desc, dcx));
  work.write(workspace, workspace_bytes(*n, *x_desc)).write(reserve, reserve_bytes(*n, *x_desc));
  work.type(element_type(n->type)).flops(flops_of(*n, *x_desc), rate(*n));
  return status_of(work.launch(handle->stream));
}

CUDASIM_EXPORT int cudnnRNNBackwardWeights_v8(Handle* handle, const Network* n, int mode, const int32_t*,
                                              const Sequences* x_desc, const void* x, const Tensor* h_desc,
                                              const void* hx, const Sequences* y_desc, const void* y,
                                              size_t weight_bytes, void* gradient, size_t work_size, void* workspace,
                                              size_t reserve_size, void* reserve) {
  const Spaces spaces{weight_bytes, work_size, workspace, reserve_size, reserve};
  if (const int status = check(handle, n, x_desc, spaces, true); status != kSuccess) return status;
  if (!x || !y_desc || !y || !gradient) return kNullPointer;
  Work work("cudasim_recurrent_backward_weights");
  work.read(data_part(*x_desc, x)).read(state_part(h_desc, hx)).read(data_part(*y_desc, y));
  work.read(reserve, reserve_bytes(*n, *x_desc)).read(workspace, workspace_bytes(*n, *x_desc));
  if (mode == kAddGradients) work.read(gradient, weight_bytes);
  work.write(gradient, weight_bytes).type(element_type(n->type)).flops(flops_of(*n, *x_desc), rate(*n));
  return status_of(work.launch(handle->stream));
}
}
