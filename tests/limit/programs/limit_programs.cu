// Programs of other kinds than training: what they compute must be the same within a limit as natively. Each repeats
// iterations, as kernels that nvcc has compiled, and prints a sum over all that it has at the end.
//
//   limit_programs PROGRAM ITERATIONS
//
//   pipeline         stages on three streams in turn, ordered by events
//   double-buffer    batches are copied on a stream of their own, one ahead
//   ping-pong        fields of two generations, which change their roles each time; nothing large is allocated
//   workspace        one large block, of which each operation uses another part
//   pointer-table    kernels that follow addresses in a table, which the host writes anew each time
//   queue            a thread makes batches, the other one frees them
//   recursive        divide and conquer, each call with a block
//   streams-anew     streams of each iteration's own
//   doubling         a block that is copied into one twice as large, again and again
//   two-phases       from the middle on an iteration is longer, and its blocks are larger
//   late-free        what an iteration makes is freed in the next one
//   optimizer        blocks that are used at the end of each iteration only
//   loop             blocks that live for good, each used once an iteration, always in the same order; nothing is
//   allocated graph            a part of each iteration is a graph, captured once, on blocks of its own
#include <cuda_runtime.h>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using Word = unsigned int;
constexpr std::size_t kMib = std::size_t{1} << 20;

void check(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "limit_programs: %s: %s\n", what, cudaGetErrorString(result));
  std::exit(3);
}

// A word of each 256 bytes, at changing places: enough to tell where any page comes from.
__host__ __device__ constexpr std::size_t place(std::size_t i) { return i * 64 + i % 64; }
__device__ std::size_t this_word() { return blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x; }

__global__ void fill(Word* out, std::size_t count, Word seed) {
  const std::size_t i = this_word();
  if (i < count) out[place(i)] = static_cast<Word>(i) * 2654435761U + seed;
}
__global__ void mix(Word* out, const Word* in, std::size_t count, Word salt) {
  const std::size_t i = this_word();
  if (i < count) out[place(i)] = out[place(i)] * 3 + in[place((i + salt) % count)] + salt;
}
__global__ void combine(Word* out, const Word* a, const Word* b, std::size_t count, Word salt) {
  const std::size_t i = this_word();
  if (i < count) out[place(i)] = a[place(i)] * 5 + b[place((i + salt) % count)] * 7 + salt;
}
__global__ void gather(Word* out, Word* const* table, int blocks, std::size_t count) {
  const std::size_t i = this_word();
  if (i >= count) return;
  Word sum = 0;
  for (int k = 0; k < blocks; ++k) sum = sum * 3 + table[k][place(i)];
  out[place(i)] = sum;
}
__global__ void sum_up(Word* sum, const Word* in, std::size_t count) {
  const std::size_t i = this_word();
  if (i < count) atomicAdd(sum, in[place(i)] * static_cast<Word>(2 * i + 1));
}

struct Block {
  Word* words;
  std::size_t bytes;
  std::size_t count() const { return bytes / 256; }
};

unsigned grid(std::size_t count) { return static_cast<unsigned>((count + 255) / 256); }

Block make(std::size_t bytes) {
  Block block{nullptr, bytes};
  check(cudaMalloc(&block.words, bytes), "cudaMalloc");
  return block;
}
void free(const Block& block) { check(cudaFree(block.words), "cudaFree"); }

void queue_fill(const Block& block, Word seed, cudaStream_t stream) {
  fill<<<grid(block.count()), 256, 0, stream>>>(block.words, block.count(), seed);
  check(cudaGetLastError(), "fill");
}
void queue_mix(const Block& out, const Block& in, Word salt, cudaStream_t stream) {
  const std::size_t count = std::min(out.count(), in.count());
  mix<<<grid(count), 256, 0, stream>>>(out.words, in.words, count, salt);
  check(cudaGetLastError(), "mix");
}
void queue_combine(const Block& out, const Block& a, const Block& b, Word salt, cudaStream_t stream) {
  const std::size_t count = std::min(out.count(), std::min(a.count(), b.count()));
  combine<<<grid(count), 256, 0, stream>>>(out.words, a.words, b.words, count, salt);
  check(cudaGetLastError(), "combine");
}

cudaStream_t make_stream() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  return stream;
}
cudaEvent_t make_event() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  return event;
}
// What follows on `then` is behind what `first` has so far.
void order(cudaStream_t first, cudaStream_t then) {
  cudaEvent_t event = make_event();
  check(cudaEventRecord(event, first), "cudaEventRecord");
  check(cudaStreamWaitEvent(then, event, 0), "cudaStreamWaitEvent");
  check(cudaEventDestroy(event), "cudaEventDestroy");
}
void wait(cudaStream_t stream) { check(cudaStreamSynchronize(stream), "cudaStreamSynchronize"); }

// Blocks that live through all iterations, and a network over them.
class Weights {
 public:
  explicit Weights(int count = 8, std::size_t bytes = 5 * kMib) : stream(make_stream()) {
    for (int i = 0; i < count; ++i) {
      blocks.push_back(make(bytes));
      queue_fill(blocks.back(), static_cast<Word>(i), stream);
    }
    wait(stream);
  }

  std::vector<Block> forward(int layers, std::size_t bytes = 5 * kMib) {
    std::vector<Block> made;
    for (int i = 0; i < layers; ++i) {
      const Block block = make(bytes);
      queue_combine(block, i == 0 ? blocks.back() : made.back(), (*this)[i], static_cast<Word>(i), stream);
      made.push_back(block);
    }
    return made;
  }
  void backward(const std::vector<Block>& made, Word salt) {
    for (int i = static_cast<int>(made.size()); i-- > 0;) {
      queue_mix((*this)[i], made[i], salt, stream);
      free(made[i]);
    }
  }
  const Block& operator[](int i) const { return blocks[static_cast<std::size_t>(i) % blocks.size()]; }

  std::vector<Block> blocks;
  cudaStream_t stream;
};

void say(const std::vector<Block>& blocks) {
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  Word* sum = nullptr;
  check(cudaMalloc(&sum, sizeof(Word)), "cudaMalloc");
  check(cudaMemset(sum, 0, sizeof(Word)), "cudaMemset");
  for (const Block& block : blocks) sum_up<<<grid(block.count()), 256>>>(sum, block.words, block.count());
  Word seen = 0;
  check(cudaMemcpy(&seen, sum, sizeof(seen), cudaMemcpyDeviceToHost), "cudaMemcpy");
  std::printf("%08x\n", seen);
}

void pipeline(Word iterations) {
  Weights weights(6, 4 * kMib);
  const cudaStream_t streams[3] = {make_stream(), make_stream(), make_stream()};
  for (Word now = 0; now < iterations; ++now) {
    std::vector<Block> made;
    for (int i = 0; i < 12; ++i) {
      const cudaStream_t stream = streams[i % 3];
      made.push_back(make((4 + static_cast<std::size_t>(i) % 3) * kMib));
      queue_fill(made.back(), now * 100 + static_cast<Word>(i), stream);
      if (i == 0) continue;
      order(streams[(i - 1) % 3], stream);
      queue_mix(made[i], made[i - 1], static_cast<Word>(i), stream);
      queue_mix(made[i], weights[i], 3, stream);
    }
    for (int i = 12; i-- > 0;) {
      const cudaStream_t stream = streams[i % 3];
      for (const cudaStream_t other : streams) {
        if (other != stream) order(other, stream);
      }
      queue_mix(weights[i], made[i], now, stream);
      wait(stream);
      free(made[i]);
    }
  }
  say(weights.blocks);
}

void double_buffer(Word iterations) {
  Weights weights;
  const cudaStream_t copies = make_stream();
  Block batches[2] = {make(6 * kMib), make(6 * kMib)};
  Word* host[2] = {nullptr, nullptr};
  cudaEvent_t full[2] = {make_event(), make_event()}, used[2] = {make_event(), make_event()};
  for (Word*& words : host) check(cudaMallocHost(&words, 6 * kMib), "cudaMallocHost");
  for (Word now = 0; now < iterations; ++now) {
    const int side = static_cast<int>(now % 2);
    check(cudaEventSynchronize(full[side]), "cudaEventSynchronize");
    for (std::size_t i = 0; i < 6 * kMib / sizeof(Word); i += 7) host[side][i] = now * 31 + static_cast<Word>(i);
    check(cudaStreamWaitEvent(copies, used[side], 0), "cudaStreamWaitEvent");
    check(cudaMemcpyAsync(batches[side].words, host[side], 6 * kMib, cudaMemcpyHostToDevice, copies),
          "cudaMemcpyAsync");
    check(cudaEventRecord(full[side], copies), "cudaEventRecord");
    check(cudaStreamWaitEvent(weights.stream, full[side], 0), "cudaStreamWaitEvent");
    const std::vector<Block> made = weights.forward(8);
    queue_mix(made[0], batches[side], now, weights.stream);
    check(cudaEventRecord(used[side], weights.stream), "cudaEventRecord");
    weights.backward(made, now);
  }
  say(weights.blocks);
}

void ping_pong(Word iterations) {
  Weights fields(20);
  for (Word now = 0; now < iterations; ++now) {
    const int from = now % 2 == 0 ? 0 : 10, to = 10 - from;
    const Block halo = make(2 * kMib + 512);
    queue_fill(halo, now, fields.stream);
    for (int i = 0; i < 10; ++i) {
      queue_combine(fields[to + i], fields[from + i], fields[from + (i + 1) % 10], now, fields.stream);
    }
    queue_mix(fields[to], halo, 1, fields.stream);
    free(halo);
  }
  say(fields.blocks);
}

void workspace(Word iterations) {
  Weights weights;
  const Block space = make(24 * kMib);
  queue_fill(space, 0, weights.stream);
  for (Word now = 0; now < iterations; ++now) {
    const std::vector<Block> made = weights.forward(8);
    for (int i = 0; i < 8; ++i) {
      const Block part{space.words + static_cast<std::size_t>(i) * 2 * kMib / sizeof(Word), 8 * kMib};
      queue_mix(part, made[i], static_cast<Word>(i), weights.stream);
      queue_mix(weights[i + 1], part, now, weights.stream);
    }
    weights.backward(made, now);
  }
  weights.blocks.push_back(space);
  say(weights.blocks);
}

void pointer_table(Word iterations) {
  Weights weights;
  const Block table = make(256);
  Word** host = nullptr;
  check(cudaMallocHost(&host, 4 * sizeof(Word*)), "cudaMallocHost");
  for (Word now = 0; now < iterations; ++now) {
    const std::vector<Block> made = weights.forward(8);
    wait(weights.stream);
    for (int i = 0; i < 4; ++i) host[i] = made[2 * i].words;
    check(cudaMemcpyAsync(table.words, host, 4 * sizeof(Word*), cudaMemcpyHostToDevice, weights.stream),
          "cudaMemcpyAsync");
    const Block out = make(5 * kMib);
    for (int i = 0; i < 2; ++i) {
      gather<<<grid(out.count()), 256, 0, weights.stream>>>(out.words, reinterpret_cast<Word* const*>(table.words), 4,
                                                            out.count());
      queue_mix(weights[i], out, now, weights.stream);
    }
    free(out);
    weights.backward(made, now);
  }
  say(weights.blocks);
}

void queue(Word iterations) {
  Weights weights;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Block> ready;
  std::thread loader([&] {
    const cudaStream_t stream = make_stream();
    std::vector<Word> host(6 * kMib / sizeof(Word));
    for (Word now = 0; now < iterations; ++now) {
      for (std::size_t i = 0; i < host.size(); i += 3) host[i] = now + static_cast<Word>(i);
      const Block batch = make(6 * kMib);
      check(cudaMemcpyAsync(batch.words, host.data(), batch.bytes, cudaMemcpyHostToDevice, stream), "cudaMemcpyAsync");
      wait(stream);
      std::unique_lock<std::mutex> lock(mutex);
      changed.wait(lock, [&] { return ready.size() < 2; });
      ready.push_back(batch);
      changed.notify_all();
    }
  });
  for (Word now = 0; now < iterations; ++now) {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return !ready.empty(); });
    const Block batch = ready.front();
    ready.pop_front();
    changed.notify_all();
    lock.unlock();
    const std::vector<Block> made = weights.forward(6);
    queue_mix(made[0], batch, now, weights.stream);
    weights.backward(made, now);
    free(batch);
  }
  loader.join();
  say(weights.blocks);
}

Block solve(std::size_t depth, Word seed, cudaStream_t stream) {
  const Block own = make((2 + 2 * depth) * kMib);
  queue_fill(own, seed, stream);
  if (depth == 0) return own;
  const Block left = solve(depth - 1, 2 * seed + 1, stream), right = solve(depth - 1, 2 * seed + 2, stream);
  queue_combine(own, left, right, static_cast<Word>(depth), stream);
  free(left);
  free(right);
  return own;
}

void recursive(Word iterations) {
  Weights sums(2, 12 * kMib);
  for (Word now = 0; now < iterations; ++now) {
    const Block found = solve(4, now, sums.stream);
    queue_mix(sums[static_cast<int>(now)], found, now, sums.stream);
    free(found);
  }
  say(sums.blocks);
}

void streams_anew(Word iterations) {
  Weights weights;
  for (Word now = 0; now < iterations; ++now) {
    const cudaStream_t before = weights.stream, beside = make_stream();
    weights.stream = make_stream();
    order(before, weights.stream);
    check(cudaStreamDestroy(before), "cudaStreamDestroy");
    const std::vector<Block> made = weights.forward(8);
    order(weights.stream, beside);
    queue_mix(weights[3], made[4], now, beside);
    order(beside, weights.stream);
    check(cudaStreamDestroy(beside), "cudaStreamDestroy");
    weights.backward(made, now);
  }
  say(weights.blocks);
}

void doubling(Word iterations) {
  Weights weights(4);
  for (Word now = 0; now < iterations; ++now) {
    Block list = make(2 * kMib);
    queue_fill(list, now, weights.stream);
    while (list.bytes < 32 * kMib) {
      const Block larger = make(2 * list.bytes);
      check(cudaMemsetAsync(larger.words, 1, larger.bytes, weights.stream), "cudaMemsetAsync");
      check(cudaMemcpyAsync(larger.words, list.words, list.bytes, cudaMemcpyDeviceToDevice, weights.stream),
            "cudaMemcpyAsync");
      free(list);
      list = larger;
    }
    const std::vector<Block> made = weights.forward(5);
    queue_mix(made[2], list, now, weights.stream);
    weights.backward(made, now);
    free(list);
  }
  say(weights.blocks);
}

void two_phases(Word iterations) {
  Weights weights(6, 4 * kMib);
  for (Word now = 0; now < iterations; ++now) {
    const bool second = now >= iterations / 2;
    weights.backward(weights.forward(second ? 12 : 6, (second ? 5 : 4) * kMib), now);
  }
  say(weights.blocks);
}

void late_free(Word iterations) {
  Weights weights;
  std::vector<Block> before;
  for (Word now = 0; now < iterations; ++now) {
    std::vector<Block> made = weights.forward(6);
    if (!before.empty()) queue_mix(made[2], before[4], now, weights.stream);
    for (const Block& block : before) free(block);
    for (int i = 0; i < 6; ++i) queue_mix(weights[i], made[i], now, weights.stream);
    before = std::move(made);
  }
  say(weights.blocks);
}

void optimizer(Word iterations) {
  Weights weights(6, 4 * kMib), moments(12, 4 * kMib);
  for (Word now = 0; now < iterations; ++now) {
    weights.backward(weights.forward(8, 4 * kMib), now);
    for (int i = 0; i < 12; ++i) {
      queue_mix(moments[i], weights[i], now, weights.stream);
      queue_mix(weights[i], moments[i], 1, weights.stream);
    }
  }
  say(weights.blocks);
}

void part_as_graph(Word iterations) {
  Weights weights;
  const Block state = make(5 * kMib), input = make(5 * kMib);
  queue_fill(state, 77, weights.stream);
  wait(weights.stream);
  check(cudaStreamBeginCapture(weights.stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  for (Word i = 0; i < 3; ++i) queue_mix(state, input, i, weights.stream);
  queue_mix(input, state, 5, weights.stream);
  cudaGraph_t graph = nullptr;
  check(cudaStreamEndCapture(weights.stream, &graph), "cudaStreamEndCapture");
  cudaGraphExec_t made = nullptr;
  check(cudaGraphInstantiate(&made, graph, 0), "cudaGraphInstantiate");
  check(cudaGraphDestroy(graph), "cudaGraphDestroy");
  for (Word i = 0; i < iterations; ++i) {
    const std::vector<Block> layers = weights.forward(10);
    check(cudaMemcpyAsync(input.words, layers.back().words, input.bytes, cudaMemcpyDeviceToDevice, weights.stream),
          "cudaMemcpyAsync");
    check(cudaGraphLaunch(made, weights.stream), "cudaGraphLaunch");
    queue_mix(layers.back(), input, i, weights.stream);
    weights.backward(layers, i);
  }
  wait(weights.stream);
  check(cudaGraphExecDestroy(made), "cudaGraphExecDestroy");
  say({state, input});
  say(weights.blocks);
}

void loop(Word iterations) {
  const Weights weights(16);
  const Block sum = make(5 * kMib);
  queue_fill(sum, 7, weights.stream);
  for (Word i = 0; i < iterations; ++i) {
    for (int k = 0; k < 16; ++k) queue_mix(sum, weights[k], i, weights.stream);
  }
  wait(weights.stream);
  say({sum});
}

struct Program {
  const char* name;
  void (*run)(Word iterations);
};
constexpr Program kPrograms[] = {{"pipeline", pipeline},           {"double-buffer", double_buffer},
                                 {"ping-pong", ping_pong},         {"workspace", workspace},
                                 {"pointer-table", pointer_table}, {"queue", queue},
                                 {"recursive", recursive},         {"streams-anew", streams_anew},
                                 {"doubling", doubling},           {"two-phases", two_phases},
                                 {"late-free", late_free},         {"optimizer", optimizer},
                                 {"graph", part_as_graph},         {"loop", loop}};

}  // namespace

int main(int argc, char** argv) {
  for (const Program& program : kPrograms) {
    if (argc != 3 || argv[1] != std::string(program.name)) continue;
    program.run(static_cast<Word>(std::strtoul(argv[2], nullptr, 10)));
    return 0;
  }
  std::fprintf(stderr, "usage: limit_programs PROGRAM ITERATIONS\n");
  return 2;
}
