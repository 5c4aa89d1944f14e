// Device memory and virtual time for the tests of the stand-ins.
#pragma once
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

// Floats on the device, with a value of their own each.
class Floats {
 public:
  explicit Floats(std::size_t count, float first = 1) : count_(count) {
    EXPECT_EQ(cudaMalloc(&data_, count * sizeof(float)), cudaSuccess);
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = first + static_cast<float>(i % 1000);
    set(values);
  }
  ~Floats() { cudaFree(data_); }
  Floats(const Floats&) = delete;
  Floats& operator=(const Floats&) = delete;

  float* data() const { return static_cast<float*>(data_); }
  std::size_t bytes() const { return count_ * sizeof(float); }
  // A copy from pageable memory may be under way when the call returns, and other streams do not wait for it.
  void set(const std::vector<float>& values) {
    EXPECT_EQ(cudaMemcpy(data_, values.data(), bytes(), cudaMemcpyHostToDevice), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  }
  void set(std::size_t at, float value) {
    EXPECT_EQ(cudaMemcpy(data() + at, &value, sizeof(value), cudaMemcpyHostToDevice), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  }
  std::vector<float> get() const {
    std::vector<float> values(count_);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(values.data(), data_, bytes(), cudaMemcpyDeviceToHost), cudaSuccess);
    return values;
  }

 private:
  std::size_t count_;
  void* data_ = nullptr;
};

// Device time of what `work` queues on the stream, in microseconds.
template <class Work>
double device_microseconds(cudaStream_t stream, Work work) {
  cudaEvent_t begin = nullptr, end = nullptr;
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  cudaEventRecord(begin, stream);
  work();
  cudaEventRecord(end, stream);
  cudaEventSynchronize(end);
  float milliseconds = 0;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, begin, end), cudaSuccess);
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return 1000.0 * static_cast<double>(milliseconds);
}

// Of simulated a100-40g.
constexpr double kFlopsPerMicrosecond = 19.5e6, kBytesPerMicrosecond = 1.555e6, kLatency = 3;
// What lies between two events beside the kernel: the host's calls.
constexpr double kBetweenEvents = 10;
