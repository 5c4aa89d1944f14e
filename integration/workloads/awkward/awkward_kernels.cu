// The kernels of the awkward programs: each gets at a block in a way of its own. One thread, one word. Compiled to PTX
// alone beside machine code, so that a device or a simulator executes what nvcc made of them.
struct Two {
  unsigned* out;
  int count;
  const unsigned* in;
};

struct Node {
  Node* next;
  unsigned value;
  unsigned padding;
};

// Packed: the address stands at 4 modulo 8.
struct __attribute__((packed)) Entry {
  unsigned index;
  unsigned* address;
};

__device__ unsigned* awkward_global = nullptr;
__constant__ unsigned* awkward_constant[2] = {nullptr, nullptr};
__device__ unsigned awkward_counter = 0;
extern __shared__ unsigned awkward_shared[];

__device__ inline int this_word() { return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); }

using Operation = unsigned (*)(unsigned, unsigned);
__device__ unsigned plus(unsigned a, unsigned b) { return a + b; }
__device__ unsigned both(unsigned a, unsigned b) { return a ^ (b * 2654435761u); }
__device__ Operation awkward_operations[2] = {plus, both};

extern "C" {

__global__ void fill(unsigned* out, unsigned seed, int count) {
  const int i = this_word();
  if (i < count) out[i] = seed * 2654435761u + static_cast<unsigned>(i);
}

__global__ void add(unsigned* out, const unsigned* in, int count) {
  const int i = this_word();
  if (i < count) out[i] += in[i];
}

__global__ void add_two(Two two) {
  const int i = this_word();
  if (i < two.count) two.out[i] += two.in[i];
}

// The block ends where the address is.
__global__ void add_before(unsigned* end, unsigned value, int count) {
  const int i = this_word();
  if (i < count) end[i - count] += value;
}

// The block begins `bias` words behind the address, or before it.
__global__ void add_biased(unsigned* base, long long bias, unsigned value, int count) {
  const int i = this_word();
  if (i < count) base[i + bias] += value;
}

__global__ void gather(unsigned* out, const unsigned* const* table, int blocks, int count) {
  const int i = this_word();
  if (i >= count) return;
  unsigned sum = 0;
  for (int block = 0; block < blocks; ++block) sum += table[block][i];
  out[i] = sum;
}

__global__ void gather_packed(unsigned* out, const Entry* table, int blocks, int count) {
  const int i = this_word();
  if (i >= count) return;
  unsigned sum = 0;
  for (int block = 0; block < blocks; ++block) sum += table[block].address[i] * (table[block].index + 1);
  out[i] = sum;
}

__global__ void store(unsigned** table, int at, unsigned* block) {
  if (this_word() == 0) table[at] = block;
}

__global__ void store_global(unsigned* block) {
  if (this_word() == 0) awkward_global = block;
}

__global__ void add_to_global(unsigned value, int count) {
  const int i = this_word();
  if (i < count) awkward_global[i] += value;
}

__global__ void add_to_constant(unsigned value, int count) {
  const int i = this_word();
  if (i < count) {
    awkward_constant[0][i] += value;
    awkward_constant[1][i] ^= value;
  }
}

__global__ void make_node(Node* node, Node* next, unsigned value) {
  if (this_word() != 0) return;
  node->next = next;
  node->value = value;
}

__global__ void follow(unsigned* out, const Node* node) {
  if (this_word() != 0) return;
  unsigned sum = 0;
  for (; node != nullptr; node = node->next) sum = sum * 31 + node->value;
  *out = sum;
}

__global__ void apply(unsigned* out, const unsigned* in, int which, int count) {
  const int i = this_word();
  if (i < count) out[i] = awkward_operations[which & 1](out[i], in[i]);
}

__global__ void sum_of_block(unsigned* out, const unsigned* in, int count) {
  const int i = this_word();
  awkward_shared[threadIdx.x] = i < count ? in[i] : 0;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) awkward_shared[threadIdx.x] += awkward_shared[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = awkward_shared[0];
}

__global__ void count_calls(unsigned* seen) {
  if (this_word() == 0) *seen = ++awkward_counter;
}

// Nothing of a block is among the parameters: its distance from another one is.
__global__ void add_by_distance(unsigned* from, long long distance, unsigned value, int count) {
  const int i = this_word();
  if (i < count) from[distance + i] += value;
}

// Nor here, where the address is in disguise.
__global__ void add_disguised(unsigned long long address, unsigned value, int count) {
  const int i = this_word();
  if (i < count) reinterpret_cast<unsigned*>(address ^ 0x5555555555555555ull)[i] += value;
}

// Memory of the device's own heap, kept in a table of the program's.
__global__ void heap_fill(unsigned** kept, unsigned seed) {
  if (this_word() != 0) return;
  auto* const made = static_cast<unsigned*>(malloc(64 * sizeof(unsigned)));
  for (int i = 0; made != nullptr && i < 64; ++i) made[i] = seed + i;
  *kept = made;
}

__global__ void heap_read(unsigned* out, unsigned** kept) {
  if (this_word() != 0) return;
  unsigned sum = 0;
  for (int i = 0; *kept != nullptr && i < 64; ++i) sum += (*kept)[i];
  *out = sum;
  free(*kept);
  *kept = nullptr;
}

}  // extern "C"
