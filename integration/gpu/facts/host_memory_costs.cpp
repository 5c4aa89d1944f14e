#include <sys/mman.h>

#include <string>

#include "device.h"
#include "fact.h"

namespace facts {

void host_memory_costs(const Settings& settings, Findings& findings) {
  const Device device;
  const std::vector<std::size_t> sizes = settings.small ? std::vector<std::size_t>{4096, std::size_t{1} << 20}
                                                        : std::vector<std::size_t>{4096,
                                                                                   std::size_t{64} << 10,
                                                                                   std::size_t{1} << 20,
                                                                                   std::size_t{16} << 20,
                                                                                   std::size_t{64} << 20,
                                                                                   std::size_t{256} << 20,
                                                                                   std::size_t{1} << 30};
  for (const std::size_t bytes : sizes) {
    const unsigned repeats = settings.small ? 2 : bytes > (std::size_t{64} << 20) ? 3 : 15;
    findings.attempt("of_" + std::to_string(bytes) + "_bytes", [&] {
      std::vector<double> allocate, free, enlist, delist;
      for (unsigned i = 0; i < repeats; ++i) {
        void* block = nullptr;
        allocate.push_back(timed([&] { CALL(cuMemHostAlloc, &block, bytes, 0); }));
        free.push_back(timed([&] { CALL(cuMemFreeHost, block); }));
        // Touched before, so that only the pinning is in it.
        void* const pages =
            ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        if (pages == MAP_FAILED) throw std::runtime_error("no host memory for " + std::to_string(bytes) + " bytes");
        const CUresult result = [&] {
          CUresult inner = CUDA_SUCCESS;
          enlist.push_back(timed([&] { inner = driver().cuMemHostRegister(pages, bytes, 0); }));
          return inner;
        }();
        if (result == CUDA_SUCCESS) delist.push_back(timed([&] { CALL(cuMemHostUnregister, pages); }));
        ::munmap(pages, bytes);
        check(result, "cuMemHostRegister");
      }
      return Json{{"cuMemHostAlloc_ns", spread(allocate)},
                  {"cuMemFreeHost_ns", spread(free)},
                  {"cuMemHostRegister_ns", spread(enlist)},
                  {"cuMemHostUnregister_ns", spread(delist)}};
    });
  }
}

}  // namespace facts
