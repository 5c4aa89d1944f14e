// Copies and fills in all shapes.
#include <array>

#include "awkward.h"

namespace awkward {
namespace {

void filled_in_rows() {
  const CUdeviceptr a = block(1);
  const CUstream stream = make_stream();
  finish();
  {
    Others others;
    others.use();
    check(cuMemsetD2D32(a + 4096, 8192, 7, 1000, 200), "cuMemsetD2D32");
    check(cuMemsetD2D16(a + 2, 4096, 9, 100, 50), "cuMemsetD2D16");
    others.use();
    check(cuMemsetD2D8Async(a + 1, 512, 3, 100, 1000, stream), "cuMemsetD2D8Async");
    check(cuStreamSynchronize(stream), "cuStreamSynchronize");
  }
  contents("a", a);
  show("rows that overlap", cuMemsetD2D8(a, 10, 3, 100, 10));
  show("not aligned", cuMemsetD32(a + 2, 1, 4));
  show("beyond its end", cuMemsetD8(a + kBytes - 10, 1, 1 << 30));
  contents("a", a);
  check(cuStreamDestroy(stream), "cuStreamDestroy");
  release(a);
}

void in_rows() {
  const CUdeviceptr a = block(1), b = block(2);
  std::vector<unsigned char> host(512 * 512, 77);
  {
    Others others;
    CUDA_MEMCPY2D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = a;
    copy.srcPitch = 2048;
    copy.srcXInBytes = 8;
    copy.srcY = 3;
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = b;
    copy.dstPitch = 4096;
    copy.WidthInBytes = 1500;
    copy.Height = 300;
    others.use();
    check(cuMemcpy2D(&copy), "cuMemcpy2D");
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = host.data();
    copy.srcPitch = 512;
    copy.WidthInBytes = 400;
    others.use();
    check(cuMemcpy2DAsync(&copy, nullptr), "cuMemcpy2DAsync");
    finish();
    copy = {};
    copy.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
    copy.srcDevice = b;
    copy.srcPitch = 4096;
    copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
    copy.dstDevice = reinterpret_cast<CUdeviceptr>(host.data());
    copy.dstPitch = 512;
    copy.WidthInBytes = 512;
    copy.Height = 512;
    others.use();
    check(cuMemcpy2DUnaligned(&copy), "cuMemcpy2DUnaligned");
  }
  host_contents("host", host.data(), host.size());
  contents("b", b);
  release(a);
  release(b);
}

void in_boxes() {
  const CUdeviceptr a = block(1), b = block(2);
  {
    Others others;
    CUDA_MEMCPY3D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = a;
    copy.srcPitch = 1024;
    copy.srcHeight = 64;
    copy.srcZ = 2;
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = b;
    copy.dstPitch = 2048;
    copy.dstHeight = 32;
    copy.dstXInBytes = 16;
    copy.WidthInBytes = 800;
    copy.Height = 30;
    copy.Depth = 20;
    others.use();
    check(cuMemcpy3D(&copy), "cuMemcpy3D");
    copy.dstZ = 22;
    copy.Depth = 10;
    others.use();
    check(cuMemcpy3DAsync(&copy, nullptr), "cuMemcpy3DAsync");
  }
  contents("b", b);
  release(a);
  release(b);
}

void between_contexts() {
  CUcontext context = nullptr;
  check(cuCtxGetCurrent(&context), "cuCtxGetCurrent");
  const CUdeviceptr a = block(1), b = block(2);
  {
    Others others;
    others.use();
    show("peer", cuMemcpyPeer(b, context, a + 4096, context, kBytes / 2));
    others.use();
    show("peer, in order", cuMemcpyPeerAsync(b + kBytes / 2, context, a, context, kBytes / 4, nullptr));
    int can = 0;
    show("may it", cuDeviceCanAccessPeer(&can, device, device));
    show("its own peer", cuCtxEnablePeerAccess(context, 0));
  }
  contents("b", b);
  release(a);
  release(b);
}

void in_batches() {
  CUdeviceptr a = block(1), b = block(2), c = block(3);
  const CUstream stream = make_stream();
  finish();
  {
    Others others;
    others.use();
    CUdeviceptr to[2] = {b, c + 4096}, from[2] = {a, a + 8192};
    std::size_t bytes[2] = {kBytes / 2, kBytes / 4};
    CUmemcpyAttributes attributes{};
    attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    std::size_t first = 0;
    show("a batch", cuMemcpyBatchAsync(to, from, bytes, 2, &attributes, &first, 1, stream));
    check(cuStreamSynchronize(stream), "cuStreamSynchronize");
  }
  contents("b", b);
  contents("c", c);
  check(cuStreamDestroy(stream), "cuStreamDestroy");
  for (const CUdeviceptr address : {a, b, c}) release(address);
}

// The host's memory is pageable, and changed or gone when the call has returned.
void pageable() {
  const CUdeviceptr a = block(1);
  const CUstream stream = make_stream();
  finish();
  Others others;
  for (unsigned round = 0; round < 4; ++round) {
    others.use();
    {
      std::vector<unsigned> host(kWords, round);
      check(cuMemcpyHtoDAsync(a, host.data(), kBytes, stream), "cuMemcpyHtoDAsync");
      for (unsigned& word : host) word = 99;
    }
    launch(stream, "add", kWords / 2, a, a, kWords / 2);
    std::vector<unsigned> back(kWords);
    check(cuMemcpyDtoHAsync(back.data(), a, kBytes, stream), "cuMemcpyDtoHAsync");
    check(cuStreamSynchronize(stream), "cuStreamSynchronize");
    host_contents("back", back.data(), kBytes);
  }
  check(cuStreamDestroy(stream), "cuStreamDestroy");
  release(a);
}

// Between kinds of memory that the driver finds out.
void unified() {
  const CUdeviceptr a = block(1), b = block(2);
  std::vector<unsigned> host(kWords, 4);
  {
    Others others;
    others.use();
    check(cuMemcpy(a, reinterpret_cast<CUdeviceptr>(host.data()), kBytes / 2), "cuMemcpy");
    others.use();
    check(cuMemcpy(b, a, kBytes), "cuMemcpy");
    others.use();
    check(cuMemcpy(reinterpret_cast<CUdeviceptr>(host.data()), b + 4096, kBytes - 4096), "cuMemcpy");
    others.use();
    check(cuMemcpyAsync(b, a + kBytes / 2, kBytes / 2, nullptr), "cuMemcpyAsync");
  }
  host_contents("host", host.data(), kBytes);
  contents("b", b);
  release(a);
  release(b);
}

void wrong() {
  const CUdeviceptr a = block(1), b = block(2);
  std::vector<unsigned> host(kWords, 4);
  contents("a", a);
  show("nothing", cuMemcpyDtoH(host.data(), a, 0));
  show("from nowhere", cuMemcpyHtoD(a, nullptr, 64));
  show("to nowhere", cuMemcpyDtoH(nullptr, a, 64));
  show("to no device memory", cuMemcpyHtoD(0x1000, host.data(), 64));
  show("across an end", cuMemcpyDtoD(a + kBytes - 64, b, 1 << 28));
  contents("a", a);
  release(a);
  release(b);
}

}  // namespace

std::span<const Case> copy_cases() {
  static constexpr std::array kCases = {
      Case{"filled-in-rows", filled_in_rows}, Case{"copied-in-rows", in_rows},
      Case{"copied-in-boxes", in_boxes},      Case{"copied-by-peers", between_contexts},
      Case{"copied-in-batches", in_batches},  Case{"copied-from-pageable", pageable},
      Case{"copied-unified", unified},        Case{"copied-wrong", wrong}};
  return kCases;
}

}  // namespace awkward
