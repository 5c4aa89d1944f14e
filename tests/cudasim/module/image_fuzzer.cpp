// libFuzzer target over the readers of images: anything but an image or ImageError is a bug.
#include <cstddef>
#include <cstdint>
#include <span>

#include "module/image.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  for (const int device : {80, 90, 120}) {
    try {
      cudasim::read_image(std::as_bytes(std::span(data, size)), device);
    } catch (const cudasim::ImageError&) {
    }
  }
  return 0;
}
