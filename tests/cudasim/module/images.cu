// Parameters, attributes and variables of every kind that images describe. image_test.cpp has the table of what must be
// found.
struct __align__(16) Wide {
  float4 v;
  int n;
  char c;
};
struct Odd {
  double d;
  char c[5];
};
struct Large {
  char c[5000];
};

__device__ int counter = 7;
__device__ float table[100];
__constant__ float coefficients[4] = {1.0f, 2.0f, 3.0f, 4.0f};

__global__ void mixed(const float* a, float* b, int n, Wide w, char c, Odd odd, const __grid_constant__ Wide constant) {
  b[threadIdx.x] = a[n] + w.n + c + odd.d + constant.n + coefficients[n & 3] + table[n];
  counter++;
}

__global__ void __launch_bounds__(256) bounded() {
  __shared__ int shared[128];
  shared[threadIdx.x & 127] = counter;
  __syncthreads();
  counter = shared[3];
}

__global__ void large(Large l, int n, int* out) { *out = l.c[n]; }

template <class T>
__global__ void instance(T x, short y, T* out) {
  *out = x + y;
}
template __global__ void instance<double>(double, short, double*);

extern "C" __global__ void plain(int i, long long j, bool b, int* out) { out[i] = static_cast<int>(j) + b; }
