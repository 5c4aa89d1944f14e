// Kernels of launch_test.cpp and plugin_test.cpp, for nvcc and for the plug-in.
#pragma once

struct Record {
  float4 scale;
  int offset;
  char tag;
};

struct Packed {
  double d;
  char c[5];
};

__global__ void add_vectors(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ sum, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) sum[i] = a[i] + b[i];
}

// Every parameter's bytes, so that a shift by one shows.
__global__ void by_value(float* out, Record record, char c, Packed packed, long long j) {
  out[0] = record.scale.x;
  out[1] = record.scale.w;
  out[2] = static_cast<float>(record.offset);
  out[3] = record.tag;
  out[4] = c;
  out[5] = static_cast<float>(packed.d);
  out[6] = packed.c[4];
  out[7] = static_cast<float>(j);
}

// The coordinates that each thread of each block sees.
__global__ void coordinates(unsigned* out) {
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
  out[block * threads + thread] = (blockIdx.x << 20) | (blockIdx.y << 16) | (blockIdx.z << 12) | (threadIdx.x << 8) |
                                  (threadIdx.y << 4) | threadIdx.z;
}

// Transcendental functions and a reduction in a fixed order: what a compiler could be tempted to reorder.
__global__ void numbers(const float* x, float* out, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  float sum = 0.0f;
  for (int j = 0; j < n; ++j) sum += x[j] * x[(i + j) % n];
  out[i] = sqrtf(fabsf(sum)) + expf(x[i]) * rsqrtf(1.0f + x[i] * x[i]) + fmaxf(x[i], 0.25f) / (1.0f + fabsf(sum));
}

__global__ void store_at(int* p, int value) { *p = value; }

__global__ void load_from(const int* p, int* out) { *out = *p; }

__global__ void nothing() {}

template <class T>
__global__ void scaled(T* p, T factor) {
  p[threadIdx.x] *= factor;
}
