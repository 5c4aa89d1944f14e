#pragma once

// The runtime's one lock. It guards registered code and primary contexts, and is held while the driver loads a library,
// so that each is loaded once.
//
// A child forked while another thread held it starts with it free: such a child can't use CUDA any more (the driver
// says so), but it must get that answer rather than hang, and must be able to load and unload libraries that contain
// kernels.

namespace cudart {

class Guard {
 public:
  Guard();
  ~Guard();
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
};

}  // namespace cudart
