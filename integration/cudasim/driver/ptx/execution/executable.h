// A kernel made ready to run: its functions as flat lists of steps, each with the C++ function that does it. Made once
// per kernel and module, shared by its launches, never changed.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ptx/execution/lanes.h"
#include "ptx/front/program.h"

namespace cudasim::ptx {

class Warp;
struct Native;
struct Step;
using Runner = void (*)(Warp& warp, const Step& step, Mask mask);

// A row, by number: of the frame, of the executable's constants, or of what the warp knows of itself.
enum class Base : std::uint32_t { kFrame = 0, kConstants = 1, kSpecials = 2 };
using Ref = std::uint32_t;
inline constexpr Ref kNoRef = UINT32_MAX;
inline constexpr Ref ref_to(Base base, std::uint32_t row) { return static_cast<std::uint32_t>(base) << 28 | row; }

// The warp's own rows: those of Special, and two more.
inline constexpr std::uint32_t kParameterRow = static_cast<std::uint32_t>(Special::kOne) + 1;
inline constexpr std::uint32_t kSpecialRows = kParameterRow + 1;

enum class Control : std::uint8_t {
  kNone,
  kGoto,
  kBranch,
  kSwitch,
  kCall,
  kReturn,
  kExit,
  kBarrier,
  kWarpBarrier,
  kWarpOperation
};

struct Step {
  Runner run = nullptr;  // for kNone and kWarpOperation
  Control control = Control::kNone;
  std::uint8_t weight = 1;  // operations of one lane
  std::uint8_t count = 1;   // elements of a vector
  bool guard_negated = false;
  Ref guard = kNoRef;
  Ref d = kNoRef, pair = kNoRef;
  Ref a = kNoRef, b = kNoRef, c = kNoRef, e = kNoRef;  // sources
  std::uint32_t list = 0;                              // into Code::refs: vectors, targets
  std::uint32_t target = 0;                            // step, or function
  std::uint32_t join = kNoIndex;                       // step where lanes that part here meet
  std::uint64_t value = 0;                             // an address offset, or bytes of the destination register
  std::uint64_t aux = 0;                               // what the runner needs beside
  const Instruction* source = nullptr;
};

// Steps whose operands are lists alone: destinations, as many as their count, then sources, as many as aux.
constexpr bool has_lists(Op op) {
  return op == Op::kTex || op == Op::kTld4 || op == Op::kTxq || op == Op::kSuld || op == Op::kSust || op == Op::kSuq ||
         op == Op::kWmma;
}

struct Copy {
  std::uint64_t from, to;  // offsets in the caller's and callee's frames
  std::uint64_t bytes;
};

// One call's copies, in Code::calls.
struct CallSite {
  std::uint32_t callee = kNoIndex;  // into Program::functions; kNoIndex: through a pointer
  std::vector<Operand> arguments, results;
};

struct Code {
  const Function* function = nullptr;
  std::vector<Step> steps;
  std::vector<Ref> refs;
  std::vector<CallSite> calls;
  std::uint32_t rows = 0;         // of a frame
  std::uint64_t frame_bytes = 0;  // multiple of 16
  // Set, if at all, before the first launch.
  mutable std::shared_ptr<const Native> native;
};

// Where the module's variables lie.
using AddressOf = std::function<std::uint64_t(const Variable&)>;

struct Executable {
  std::shared_ptr<const Program> program;
  const Function* kernel = nullptr;
  std::vector<Code> codes;  // by function; those that the kernel can't reach are empty
  std::vector<Row> constants;
  std::uint64_t stack_bytes = 0;  // of a thread, for all calls that are nested
  std::uint32_t carry_row = 0;
  bool waits = false;  // its threads wait in loops for what others do

  // Null, and why in `problem`, where something is missing.
  static std::shared_ptr<const Executable> make(std::shared_ptr<const Program> program, const Function& kernel,
                                                const AddressOf& address_of, std::string& problem);
};

// What a function's address is on this device: its number and a tag that no memory has.
inline constexpr std::uint64_t kFunctionTag = std::uint64_t{0xf0} << 56;

}  // namespace cudasim::ptx
