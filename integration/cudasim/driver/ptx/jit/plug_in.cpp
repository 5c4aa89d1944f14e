#include "ptx/jit/plug_in.h"

#include <array>
#include <cinttypes>
#include <cstdio>
#include <mutex>
#include <sstream>
#include <unordered_map>

#include "ptx/jit/cache.h"
#include "ptx/jit/flow.h"
#include "ptx/jit/machine.h"
#include "ptx/jit/translator.h"

namespace cudasim::ptx::jit {
namespace {

// Changes with what the translator makes of the same steps.
constexpr std::uint32_t kTranslatorVersion = 5;

// All that the code depends on, as bytes. Addresses are read when it runs.
std::string description_of(const Executable& executable, const Code& code, const Machine& machine) {
  std::string d = machine.identity() + " " + std::to_string(kNativeVersion) + "." + std::to_string(kTranslatorVersion);
  const auto add = [&](auto... numbers) {
    for (const std::uint64_t n : {static_cast<std::uint64_t>(numbers)...})
      d.append(reinterpret_cast<const char*>(&n), sizeof n);
  };
  add(code.rows, code.function->uses_carry);
  for (const ptx::Register& r : code.function->registers) d += static_cast<char>(r.type);
  const auto add_source = [&](Ref ref) {
    add(ref);
    if (ref == kNoRef || ref >> 28 != static_cast<std::uint32_t>(Base::kConstants)) return;
    const std::uint64_t value = executable.constants[row_of(ref)].lane[0];
    add(may_be_address(value) ? ~std::uint64_t{0} : value, may_be_address(value));
  };
  for (const Ref ref : code.refs) add_source(ref);
  for (const Step& s : code.steps) {
    add(s.control, s.weight, s.count, s.guard_negated, s.guard, s.d, s.pair, s.list, s.target, s.value, s.aux);
    for (const Ref ref : {s.a, s.b, s.c, s.e}) add_source(ref);
    if (s.source == nullptr) continue;
    d += text_of(*s.source);
    for (const Operand& o : s.source->operands) add(o.kind, o.elements.size());
  }
  return d;
}

// What is known of the code beside, as a line in front of it.
std::string facts_of(const Native& native) {
  return std::to_string(native.most_ways) + " " + std::to_string(native.interpreted_steps) + " " + native.interpreted +
         "\n";
}
bool take_facts(std::string& object, Native& native) {
  const std::size_t end = object.find('\n');
  if (end == std::string::npos) return false;
  std::istringstream line(object.substr(0, end));
  if (!(line >> native.most_ways >> native.interpreted_steps)) return false;
  line.get();
  std::getline(line, native.interpreted);
  object.erase(0, end + 1);
  return true;
}

std::string translated(const Executable& executable, const Code& code, const Flow& flow, Machine& machine,
                       const char* name, Native& native, std::string& problem) {
  const LLVMContextRef context = LLVMContextCreate();
  const LLVMModuleRef module = LLVMModuleCreateWithNameInContext(name, context);
  std::string object;
  try {
    Translator translator(executable, code, flow, module, machine.has_gather());
    translator.run(name);
    native.most_ways = translator.most_ways();
    native.interpreted_steps = translator.interpreted_steps();
    for (const std::string& what : translator.interpreted())
      native.interpreted += (native.interpreted.empty() ? "" : " ") + what;
    object = machine.compile(module, problem);
  } catch (const Untranslated& untranslated) {
    problem = untranslated.why;
  }
  LLVMDisposeModule(module);
  LLVMContextDispose(context);
  return object;
}

void compile(const CompileRequest& request, CompileResult& result) {
  // One at a time: LLVM's context and linker, and the table of what there is.
  static auto* const mutex = new std::mutex;
  static auto* const known = new std::unordered_map<std::string, std::shared_ptr<const Native>>;
  const std::scoped_lock lock(*mutex);
  if (request.version != kNativeVersion) {
    result.problem = "it is of another version than the driver";
    return;
  }
  Machine* const machine = Machine::get(result.problem);
  if (machine == nullptr) return;
  const Code& code = request.executable->codes[request.function];
  const std::string description = description_of(*request.executable, code, *machine);
  if (const auto found = known->find(description); found != known->end()) {
    result.native = found->second;
    result.from_cache = true;
    return;
  }
  const Flow flow = flow_of(code);
  auto native = std::make_shared<Native>();
  const Cache cache(request.cache_folder);
  std::array<char, 24> name;
  std::snprintf(name.data(), name.size(), "ptx_%016" PRIx64, hash_of(description));
  std::string object = cache.find(description);
  result.from_cache = !object.empty() && take_facts(object, *native);
  if (!result.from_cache) {
    object = translated(*request.executable, code, flow, *machine, name.data(), *native, result.problem);
    if (object.empty()) return;
    cache.keep(description, facts_of(*native) + object);
  }
  void* const address = machine->load(object, name.data(), result.problem);
  if (address == nullptr) return;
  native->run = reinterpret_cast<decltype(native->run)>(address);
  native->entry_of_step.assign(code.steps.size(), kNoIndex);
  for (const FlowBlock& block : flow.blocks) {
    if (block.entry != kNoIndex) native->entry_of_step[block.first] = block.entry;
  }
  known->emplace(description, native);
  result.native = std::move(native);
}

}  // namespace
}  // namespace cudasim::ptx::jit

extern "C" __attribute__((visibility("default"))) void cudasim_jit_compile(
    const cudasim::ptx::jit::CompileRequest& request, cudasim::ptx::jit::CompileResult& result) {
  try {
    cudasim::ptx::jit::compile(request, result);
  } catch (const std::exception& problem) {
    result.native = nullptr;
    result.problem = problem.what();
  }
}
