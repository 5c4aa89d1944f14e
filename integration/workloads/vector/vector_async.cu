// The same loop with stream-ordered memory: vectors from cudaMallocAsync on two streams, handed on by events, and freed
// on a third stream that has joined both, as allocators do that know who has used a block. One vector of a round comes
// from a pool of the program's own. Both pools keep what they have in the first half of the run, and give it back at
// each synchronisation in the second.
#include <array>
#include <limits>

#include "../cuda_check.h"
#include "options.h"
#include "results.h"
#include "vector_kernels.cuh"

namespace {

constexpr int kThreads = 256;
constexpr std::size_t kSlots = 4;  // results that are on their way

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "vector_async: %s\n", what);
  std::exit(1);
}

class Pool {
 public:
  explicit Pool(cudaMemPool_t handle) : handle_(handle) {}

  cudaMemPool_t handle() const { return handle_; }
  unsigned long long get(cudaMemPoolAttr attribute) const {
    unsigned long long value = 0;
    CHECK_CUDA(cudaMemPoolGetAttribute(handle_, attribute, &value));
    return value;
  }
  void set(cudaMemPoolAttr attribute, unsigned long long value) const {
    CHECK_CUDA(cudaMemPoolSetAttribute(handle_, attribute, &value));
  }
  void set_flag(cudaMemPoolAttr attribute, int value) const {
    CHECK_CUDA(cudaMemPoolSetAttribute(handle_, attribute, &value));
  }

  // Everything has been freed, and the device waited for.
  void trim() const {
    if (get(cudaMemPoolAttrUsedMemCurrent) != 0) fail("a pool says that memory is in use after all was freed");
    const unsigned long long before = get(cudaMemPoolAttrReservedMemCurrent);
    CHECK_CUDA(cudaMemPoolTrimTo(handle_, 0));
    if (get(cudaMemPoolAttrReservedMemCurrent) > before) fail("a pool has more memory after it was trimmed");
  }
  void check_watermarks(const char* name, unsigned long long least) const {
    const unsigned long long used = get(cudaMemPoolAttrUsedMemHigh), reserved = get(cudaMemPoolAttrReservedMemHigh);
    std::printf("%s pool: %llu bytes in use at most, %llu reserved\n", name, used, reserved);
    if (used < least || reserved < used) fail("a pool's watermarks are lower than what was in use");
    set(cudaMemPoolAttrUsedMemHigh, 0);
    set(cudaMemPoolAttrReservedMemHigh, 0);
  }

 private:
  cudaMemPool_t handle_;
};

Pool default_pool() {
  int supported = 0;
  CHECK_CUDA(cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, 0));
  if (supported == 0) fail("this device has no memory pools");
  cudaMemPool_t pool = nullptr;
  CHECK_CUDA(cudaDeviceGetDefaultMemPool(&pool, 0));
  return Pool(pool);
}

// Its memory goes from stream to stream by events alone: placement does not depend on how far the device has come.
Pool own_pool() {
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  properties.location.id = 0;
  cudaMemPool_t handle = nullptr;
  CHECK_CUDA(cudaMemPoolCreate(&handle, &properties));
  const Pool pool(handle);
  pool.set_flag(cudaMemPoolReuseAllowOpportunistic, 0);
  pool.set_flag(cudaMemPoolReuseAllowInternalDependencies, 0);
  return pool;
}

struct Event {
  Event() { CHECK_CUDA(cudaEventCreateWithFlags(&handle, cudaEventDisableTiming)); }
  ~Event() { CHECK_CUDA(cudaEventDestroy(handle)); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void record(cudaStream_t stream) const { CHECK_CUDA(cudaEventRecord(handle, stream)); }
  void await(cudaStream_t stream) const { CHECK_CUDA(cudaStreamWaitEvent(stream, handle, 0)); }

  cudaEvent_t handle = nullptr;
};

struct Stream {
  Stream() { CHECK_CUDA(cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking)); }
  ~Stream() { CHECK_CUDA(cudaStreamDestroy(handle)); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  unsigned* allocate(int count) const {
    void* vector = nullptr;
    CHECK_CUDA(cudaMallocAsync(&vector, static_cast<std::size_t>(count) * sizeof(unsigned), handle));
    return static_cast<unsigned*>(vector);
  }
  unsigned* allocate(int count, const Pool& pool) const {
    void* vector = nullptr;
    CHECK_CUDA(
        cudaMallocFromPoolAsync(&vector, static_cast<std::size_t>(count) * sizeof(unsigned), pool.handle(), handle));
    return static_cast<unsigned*>(vector);
  }
  void free(unsigned* vector) const { CHECK_CUDA(cudaFreeAsync(vector, handle)); }

  cudaStream_t handle = nullptr;
};

// A result on its way to the host.
struct Slot {
  explicit Slot(int elements) : host(static_cast<std::size_t>(elements)) {}
  PinnedArray<unsigned> host;
  Event copied;
  unsigned seed = 0;
  int count = 0;  // 0: nothing is on its way
};

class Loop {
 public:
  Loop(int elements, const Pool& own) : own_(own) {
    for (auto& slot : slots_) slot = new Slot(elements);
  }
  ~Loop() {
    for (Slot* const slot : slots_) delete slot;
  }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  void round(unsigned seed, int count) {
    Slot& slot = *slots_[seed % kSlots];
    collect(slot);
    slot.seed = seed;
    slot.count = count;
    const int blocks = (count + kThreads - 1) / kThreads;
    // What was freed two rounds ago may be had again: the pools see the order.
    const Event& released = released_[seed % released_.size()];
    released.await(a_.handle);
    released.await(b_.handle);

    unsigned* const x = a_.allocate(count);
    vector_fill<<<blocks, kThreads, 0, a_.handle>>>(x, seed, count);
    filled_.record(a_.handle);

    unsigned* const v = b_.allocate(count);
    vector_fill<<<blocks, kThreads, 0, b_.handle>>>(v, ~seed, count);
    filled_.await(b_.handle);
    unsigned* const y = b_.allocate(count, own_);
    vector_combine<<<blocks, kThreads, 0, b_.handle>>>(y, x, v, count);
    combined_.record(b_.handle);
    b_.free(v);

    combined_.await(a_.handle);
    unsigned* const z = a_.allocate(count);
    vector_combine<<<blocks, kThreads, 0, a_.handle>>>(z, y, x, count);
    CHECK_CUDA(cudaGetLastError());
    CHECK_CUDA(cudaMemcpyAsync(slot.host.get(), z, static_cast<std::size_t>(count) * sizeof(unsigned),
                               cudaMemcpyDeviceToHost, a_.handle));
    slot.copied.record(a_.handle);
    a_.free(z);

    // Both streams have used x and y. Whoever frees them waits for both.
    slot.copied.await(last_.handle);
    combined_.await(last_.handle);
    last_.free(x);
    last_.free(y);
    released.record(last_.handle);
  }

  void finish() {
    const unsigned oldest = next_;
    for (unsigned i = 0; i < kSlots; ++i) collect(*slots_[(oldest + i) % kSlots]);
    CHECK_CUDA(cudaDeviceSynchronize());
  }

  const vector::Results& results() const { return results_; }

 private:
  void collect(Slot& slot) {
    if (slot.count == 0) return;
    CHECK_CUDA(cudaEventSynchronize(slot.copied.handle));
    results_.verify(slot.host.get(), slot.count, slot.seed);
    next_ = slot.seed + 1;
    slot.count = 0;
  }

  const Pool& own_;
  Stream a_, b_, last_;
  Event filled_, combined_;
  std::array<Event, 2> released_;
  std::array<Slot*, kSlots> slots_{};
  unsigned next_ = 0;  // result that is verified next: they are folded in order
  vector::Results results_{"vector_async"};
};

}  // namespace

int main(int argc, char** argv) {
  const vector::Options options = vector::parse(argc, argv, "vector_async");
  const Pool fixed = default_pool(), own = own_pool();
  const auto longest = static_cast<unsigned long long>(options.elements) * sizeof(unsigned);
  {
    Loop loop(options.elements, own);
    unsigned seed = 0;
    for (int half = 0; half < 2; ++half) {
      for (const Pool* const pool : {&fixed, &own})
        pool->set(cudaMemPoolAttrReleaseThreshold, half == 0 ? std::numeric_limits<unsigned long long>::max() : 0);
      const int end = half == 0 ? (options.iterations + 1) / 2 : options.iterations;
      const unsigned begin = seed;
      while (seed < static_cast<unsigned>(end) * vector::kRounds) {
        loop.round(seed, vector::length_of(options.elements, static_cast<int>(seed % vector::kRounds)));
        ++seed;
      }
      loop.finish();
      if (seed != begin) {
        fixed.check_watermarks("default", 2 * longest);
        own.check_watermarks("own", longest);
      }
      fixed.trim();
      own.trim();
    }
    loop.results().print();
  }
  CHECK_CUDA(cudaMemPoolDestroy(own.handle()));
  return 0;
}
