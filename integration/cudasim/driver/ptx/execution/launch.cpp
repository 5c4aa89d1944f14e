#include "ptx/execution/launch.h"

#include <algorithm>
#include <vector>

#include "ptx/execution/block_run.h"

namespace cudasim::ptx {

struct Launch::Impl {
  std::shared_ptr<const Executable> executable;
  std::vector<std::byte> parameters;
  BlockRun block;
  std::vector<std::unique_ptr<BlockRun>> together;  // of a cooperative grid
  alignas(64) std::uint32_t workspace[16] = {};

  // The blocks of a cooperative grid, each a while.
  void run_together(std::uint64_t blocks) {
    std::ranges::fill(workspace, 0u);
    for (std::uint64_t at = together.size(); at < blocks; ++at) {
      together.push_back(std::make_unique<BlockRun>(block.executable, block.shape, block.parameters, block.observer));
      together.back()->workspace = reinterpret_cast<std::uint64_t>(&workspace);
    }
    for (std::uint64_t at = 0; at < blocks; ++at) together[at]->begin(at);
    std::vector<bool> ended(blocks);
    for (std::uint64_t left = blocks; left != 0;) {
      for (std::uint64_t at = 0; at < blocks; ++at) {
        if (ended[at] || together[at]->go()) continue;
        ended[at] = true;
        --left;
      }
    }
  }

  Impl(std::shared_ptr<const Executable> executable_, const Shape& shape, std::span<const std::byte> given,
       Observer observer)
      : executable(std::move(executable_)),
        parameters(padded(given, executable->kernel->parameter_bytes)),
        block(*executable, shape, parameters.data(), observer) {
    block.workspace = shape.cooperative ? reinterpret_cast<std::uint64_t>(&workspace) : 0;
  }

  // As many as the kernel may read.
  static std::vector<std::byte> padded(std::span<const std::byte> given, std::size_t least) {
    std::vector<std::byte> bytes(given.begin(), given.end());
    bytes.resize(std::max<std::size_t>({bytes.size(), least, 16}));
    return bytes;
  }
};

Launch::Launch(std::shared_ptr<const Executable> executable, const Shape& shape, std::span<const std::byte> parameters,
               Observer observer)
    : impl_(std::make_unique<Impl>(std::move(executable), shape, parameters, observer)) {}
Launch::~Launch() = default;

Outcome Launch::run(std::uint64_t first, std::uint64_t last) {
  try {
    if (impl_->block.shape.cooperative) {
      impl_->run_together(last);
      return {};
    }
    for (std::uint64_t block = first; block < last; ++block) impl_->block.run(block);
  } catch (const Stopped& stopped) {
    std::string where;
    if (stopped.at != nullptr) where = "PTX line " + std::to_string(stopped.at->line) + ", " + text_of(*stopped.at);
    return {stopped.stop, stopped.address,
            stopped.text.empty() ? where
            : where.empty()      ? stopped.text
                                 : stopped.text + " (" + where + ")"};
  }
  return {};
}

Counts Launch::sample(std::uint64_t block, std::uint64_t most) {
  try {
    return impl_->block.sample(block, most);
  } catch (const Stopped&) {
    // What it has done until then; the launch itself will say what is wrong.
    impl_->block.sampling = false;
    impl_->block.most_instructions = UINT64_MAX;
    return impl_->block.counts;
  }
}

const Counts& Launch::counts() const { return impl_->block.counts; }

}  // namespace cudasim::ptx
