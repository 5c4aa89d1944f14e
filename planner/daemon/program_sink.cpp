#include "planner/daemon/program_sink.h"

#include <chrono>

#include "planner/program.h"

namespace memopt::planner {
namespace {

class ProgramSink final : public Sink {
 public:
  explicit ProgramSink(const ProgramInfo& program) : program_(program.synchronous), wants_plans_(!program.record_only) {
    program_.wait_at_most(std::chrono::seconds(program.wait_seconds));
    program_.keep_chunks_of(program.chunk_bytes);
    if (program.caching_is_off) program_.model_framework();
  }

  void swap_on(const shm::SwapTermsBody& terms) override {
    if (wants_plans_) program_.swap_on(terms);
  }
  void record(std::uint32_t lane, const shm::RecordView& record) override { program_.add(lane, record); }
  void records(std::uint32_t lane, const shm::RecordRun& run) override { program_.add(lane, run); }
  void gap() override { program_.add_gap(); }
  std::optional<std::vector<std::byte>> check_point() override { return wants_plans_ ? program_.plan() : std::nullopt; }
  std::optional<std::vector<std::byte>> improved() override {
    return wants_plans_ ? program_.improved() : std::nullopt;
  }
  std::string note() override { return program_.note(); }
  std::uint64_t framework_reserved() override { return program_.framework_reserved(); }
  void sent(std::uint64_t generation) override { program_.sent(generation); }
  void adopted(std::uint64_t generation) override { program_.adopted(generation); }
  void refused(std::uint64_t generation, std::uint64_t excess) override { program_.refused(generation, excess); }

 private:
  Program program_;
  const bool wants_plans_;
};

}  // namespace

std::unique_ptr<Sink> make_program_sink(const ProgramInfo& program) { return std::make_unique<ProgramSink>(program); }

}  // namespace memopt::planner
