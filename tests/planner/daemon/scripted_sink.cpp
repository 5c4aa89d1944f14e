// In memoptd's place of planner::Program: sends the same small plan at record 32, and again after every 1000 records.
#include "planner/daemon/program_sink.h"
#include "tests/agent/plan_builder.h"

namespace memopt::planner {
namespace {

class ScriptedSink final : public Sink {
 public:
  void record(std::uint32_t /*lane*/, const shm::RecordView& record) override { last_ = record.header.sequence; }
  void gap() override { note_ = "records are missing"; }
  std::optional<std::vector<std::byte>> check_point() override {
    if (last_ < due_) return std::nullopt;
    due_ = last_ + 1000;
    return test::PlanBuilder::small().bytes();
  }
  std::string note() override { return note_; }

 private:
  std::uint64_t last_ = 0;
  std::uint64_t due_ = 32;
  std::string note_ = "scripted";
};

}  // namespace

std::unique_ptr<Sink> make_program_sink(const ProgramInfo& /*program*/) { return std::make_unique<ScriptedSink>(); }

}  // namespace memopt::planner
