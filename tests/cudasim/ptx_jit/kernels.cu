extern "C" __global__ void vector_add(const float* a, const float* b, float* c, unsigned n) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}
extern "C" __global__ void block_sum(const float* a, float* out, unsigned n) {
  __shared__ float s[256];
  unsigned t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  s[t] = i < n ? a[i] : 0.f;
  __syncthreads();
  for (unsigned k = blockDim.x / 2; k > 0; k /= 2) {
    if (t < k) s[t] += s[t + k];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = s[0];
}
extern "C" __global__ void collatz(const unsigned* a, unsigned* out, unsigned n) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned v = a[i] % 1000 + 1, steps = 0;
  while (v != 1) {
    if (v & 1) {
      if (v > 100000) break;
      v = 3 * v + 1;
    } else
      v /= 2;
    ++steps;
    if (steps % 7 == 3) continue;
    if (v % 5 == 0) steps += 2;
  }
  out[i] = steps;
}
extern "C" __global__ void warp_sum(const int* a, int* out, unsigned n) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  int v = i < n ? a[i] : 0;
  for (int k = 16; k; k /= 2) v += __shfl_down_sync(~0u, v, k);
  if (threadIdx.x % 32 == 0) {
    out[i / 32] = v;
  }
  unsigned m = __ballot_sync(~0u, v & 1);
  if (threadIdx.x % 32 == 1) atomicAdd(out + 64, (int)m);
}
__device__ __noinline__ int twice(int x, int depth) { return depth ? twice(x * 2 + (x & 3), depth - 1) : x; }
extern "C" __global__ void calls(const int* a, int* out, unsigned n) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = twice(a[i], (int)(i % 5)) + (a[i] < 0 ? 3 : 4);
}
extern "C" __global__ void transpose(const float* a, float* out, unsigned n) {
  __shared__ float tile[16][17];
  unsigned x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  if (x < n && y < n) tile[threadIdx.y][threadIdx.x] = a[y * n + x];
  __syncthreads();
  unsigned tx = blockIdx.y * 16 + threadIdx.x, ty = blockIdx.x * 16 + threadIdx.y;
  if (tx < n && ty < n) out[ty * n + tx] = tile[threadIdx.x][threadIdx.y];
}
extern "C" __global__ void locals(const unsigned* a, unsigned* out, unsigned n) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned x[8];
  for (unsigned k = 0; k < 8; ++k) x[k] = a[i] + k * i;
  for (unsigned k = 0; k < 8; ++k) {
    unsigned j = (a[i] >> k) & 7;
    unsigned t = x[k];
    x[k] = x[j];
    x[j] = t;
  }
  out[i] = x[a[i] & 7] ^ x[3];
}
extern "C" __global__ void bytes(const unsigned char* a, short* out, unsigned n) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = (short)((int)(signed char)a[i] * (int)a[(i * 7) % n] - (short)i);
}
extern "C" __global__ void choose(const unsigned* a, float* out, unsigned n) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = (float)a[i], r;
  switch (a[i] % 9) {
    case 0:
      r = sinf(v);
      break;
    case 1:
      r = v * 2.f;
      break;
    case 2:
      r = expf(v / 1e9f);
      break;
    case 3:
      r = sqrtf(v);
      break;
    case 4:
      r = v / 3.f;
      break;
    case 5:
      r = (float)((double)v * 1.7);
      break;
    case 6:
      r = fmaxf(v, 3.f);
      break;
    case 7:
      r = __fdividef(v, 7.f);
      break;
    default:
      r = (float)(int)(v * 0.001f);
      break;
  }
  out[i] = r;
}
