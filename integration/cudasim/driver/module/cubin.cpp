// Cubins: ELF files whose kernels are functions marked as entries, with their parameters in .nv.info.<kernel> and the
// variables in .nv.global, .nv.global.init and .nv.constant3. Seen from nvcc 13.0 for sm_75 to sm_120, linked and
// relocatable.
#include <algorithm>
#include <unordered_map>

#include "module/bytes.h"
#include "module/elf_format.h"

namespace cudasim {
namespace {

// What nobody needs more of, so that hostile counts and sizes end in a message and not in the machine's memory.
constexpr std::uint64_t kMaxVariableBytes = std::uint64_t{1} << 36;
constexpr std::uint32_t kMaxParameters = 32768;

// Sections of one kernel: prefix and the kernel's name.
constexpr std::string_view kInfo = ".nv.info.";
constexpr std::string_view kShared = ".nv.shared.";
constexpr std::string_view kConstant = ".nv.constant2.";

struct Section {
  std::string_view name;
  std::uint32_t type;
  std::uint64_t offset;
  std::uint64_t size;
  std::uint32_t link;
};

[[noreturn]] void fail(const std::string& text) { throw ImageError(CUDA_ERROR_INVALID_IMAGE, "cubin: " + text); }

class Cubin {
 public:
  explicit Cubin(std::span<const std::byte> bytes) : file_(bytes, "cubin") {}

  Image read() {
    read_header();
    read_sections();
    for (const Section& section : sections_) {
      if (section.type == elf::kSectionSymbols) read_symbols(section);
    }
    for (const Section& section : sections_) {
      if (section.name == ".nv.info") read_function_table(section);
    }
    std::unordered_map<std::string_view, KernelImage*> kernels;
    for (KernelImage& kernel : image_.kernels) kernels.emplace(kernel.name, &kernel);
    for (const Section& section : sections_) {
      for (const std::string_view prefix : {kInfo, kShared, kConstant}) {
        if (!section.name.starts_with(prefix)) continue;
        const auto kernel = kernels.find(section.name.substr(prefix.size()));
        if (kernel != kernels.end()) read_section_of(*kernel->second, prefix, section);
      }
    }
    return std::move(image_);
  }

 private:
  void read_header() {
    if (file_.read<std::uint32_t>(0) != elf::kMagic || file_.read<std::uint8_t>(elf::kClass) != 2)
      fail("not a 64-bit ELF file");
    const auto machine = file_.read<std::uint16_t>(elf::kMachine);
    if (machine != elf::kMachineCuda) fail("for machine " + std::to_string(machine) + ", not for CUDA (190)");
    const auto flags = file_.read<std::uint32_t>(elf::kFlags);
    image_.form = Image::Form::kCubin;
    image_.arch = static_cast<int>(file_.read<std::uint8_t>(elf::kAbiVersion) >= 8 ? flags >> 8 & 0xff : flags & 0xff);
  }

  void read_sections() {
    const auto table = file_.read<std::uint64_t>(elf::kSectionHeaders);
    const auto entry = file_.read<std::uint16_t>(elf::kSectionHeaderSize);
    const auto count = file_.read<std::uint16_t>(elf::kSectionHeaderCount);
    const auto names = file_.read<std::uint16_t>(elf::kSectionNames);
    if (entry < 64) fail("section headers of " + std::to_string(entry) + " bytes");
    if (names >= count) fail("no section names");
    const Bytes headers(file_.part(table, std::uint64_t{entry} * count), "cubin section headers");
    const auto section_bytes = [&](std::uint64_t index) {
      const std::uint64_t at = index * entry;
      return file_.part(headers.read<std::uint64_t>(at + 24), headers.read<std::uint64_t>(at + 32));
    };
    const Bytes name_table(section_bytes(names), "cubin section names");
    sections_.reserve(count);
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t at = i * entry;
      Section section{name_table.string(headers.read<std::uint32_t>(at)), headers.read<std::uint32_t>(at + 4),
                      headers.read<std::uint64_t>(at + 24), headers.read<std::uint64_t>(at + 32),
                      headers.read<std::uint32_t>(at + 40)};
      if (section.type == 0) section.size = 0;
      if (elf::has_bytes(section.type)) file_.part(section.offset, section.size);  // throws when it lies outside
      sections_.push_back(section);
    }
  }

  Bytes contents(const Section& section) const { return {file_.part(section.offset, section.size), "cubin section"}; }

  void read_symbols(const Section& section) {
    if (section.link >= sections_.size()) fail("symbols without names");
    const Bytes symbols = contents(section);
    const Section& name_section = sections_[section.link];
    if (!elf::has_bytes(name_section.type)) fail("symbol names without bytes");
    const Bytes names = contents(name_section);
    for (std::uint64_t at = 0, index = 0; at + elf::kSymbolSize <= symbols.size(); at += elf::kSymbolSize, ++index) {
      const auto type = symbols.read<std::uint8_t>(at + 4) & 0xf;
      const auto other = symbols.read<std::uint8_t>(at + 5);
      const auto owner = symbols.read<std::uint16_t>(at + 6);
      if (owner == 0 || owner >= sections_.size()) continue;  // undefined, absolute, common
      if (type == elf::kSymbolFunction && (other & elf::kOtherEntry) != 0) {
        kernel_of_symbol_.emplace(static_cast<std::uint32_t>(index), image_.kernels.size());
        image_.kernels.emplace_back().name = names.string(symbols.read<std::uint32_t>(at));
      } else if (type == elf::kSymbolObject || type == elf::kSymbolCudaObject) {
        read_variable(sections_[owner], std::string(names.string(symbols.read<std::uint32_t>(at))), other,
                      symbols.read<std::uint64_t>(at + 8), symbols.read<std::uint64_t>(at + 16));
      }
    }
  }

  void read_variable(const Section& section, std::string name, std::uint8_t other, std::uint64_t offset,
                     std::uint64_t size) {
    const bool constant = section.name == ".nv.constant3";
    if (!constant && section.name != ".nv.global" && section.name != ".nv.global.init") return;
    if (offset > section.size || size > section.size - offset)
      fail("variable " + name + " lies outside of " + std::string(section.name));
    if (size > kMaxVariableBytes) fail("variable " + name + " has " + std::to_string(size) + " bytes");
    GlobalImage& variable = image_.globals.emplace_back();
    variable.name = std::move(name);
    variable.size = size;
    variable.constant = constant;
    variable.managed = (other & elf::kOtherManaged) != 0;
    if (elf::has_bytes(section.type)) {
      // Real variables do not overlap; hostile ones could make gigabytes of a small file.
      initial_bytes_ += size;
      if (initial_bytes_ > file_.size()) fail("variables overlap");
      const auto initial = contents(section).part(offset, size);
      variable.initial.assign(initial.begin(), initial.end());
    }
  }

  template <class Visit>
  void for_each_record(const Section& section, const Visit& visit) const {
    if (!elf::has_bytes(section.type)) return;
    const Bytes info = contents(section);
    std::uint64_t at = 0;
    while (at + 4 <= info.size()) {
      const auto format = info.read<std::uint8_t>(at);
      const auto attribute = info.read<std::uint8_t>(at + 1);
      const auto size = format == elf::kFormatSized ? info.read<std::uint16_t>(at + 2) : std::uint16_t{0};
      at += 4;
      if (format == elf::kFormatSized) visit(attribute, Bytes(info.part(at, size), "cubin .nv.info record"));
      at += size;
    }
  }

  // .nv.info has what is said of functions by their symbols.
  void read_function_table(const Section& section) {
    for_each_record(section, [&](std::uint8_t attribute, const Bytes& record) {
      if (attribute != elf::kRegisterCount && attribute != elf::kFrameSize) return;
      const auto found = kernel_of_symbol_.find(record.read<std::uint32_t>(0));
      if (found == kernel_of_symbol_.end()) return;  // a device function
      KernelImage& kernel = image_.kernels[found->second];
      (attribute == elf::kRegisterCount ? kernel.registers : kernel.local_bytes) = record.read<std::uint32_t>(4);
    });
  }

  static void read_size(std::uint32_t& into, const Section& section) {
    into = static_cast<std::uint32_t>(std::min<std::uint64_t>(section.size, UINT32_MAX));
  }

  void read_section_of(KernelImage& kernel, std::string_view prefix, const Section& section) {
    if (prefix == kShared) read_size(kernel.static_shared_bytes, section);
    if (prefix == kConstant) read_size(kernel.constant_bytes, section);
    if (prefix == kInfo) read_info(kernel, section);
  }

  void read_info(KernelImage& kernel, const Section& section) {
    std::vector<bool> seen;
    for_each_record(section, [&](std::uint8_t attribute, const Bytes& record) {
      if (attribute == elf::kMaxThreads) {
        std::uint32_t threads = 1;
        for (std::uint64_t at = 0; at < 12; at += 4) {
          threads = std::clamp(threads * std::clamp(record.read<std::uint32_t>(at), 1u, 1024u), 1u, 1024u);
        }
        kernel.max_threads = threads;
      }
      if (attribute != elf::kParameterInfo && attribute != elf::kParameterInfoV2) return;
      const auto ordinal = record.read<std::uint16_t>(4);
      const auto word = record.read<std::uint32_t>(8);
      if (ordinal >= kMaxParameters)
        fail("kernel " + kernel.name + " has a parameter number " + std::to_string(ordinal));
      if (ordinal >= seen.size()) {
        seen.resize(ordinal + 1u);
        kernel.parameters.resize(ordinal + 1u);
      }
      seen[ordinal] = true;
      kernel.parameters[ordinal] = {record.read<std::uint16_t>(6),
                                    attribute == elf::kParameterInfo ? word >> 18 : word & 0xffffff};
    });
    if (std::find(seen.begin(), seen.end(), false) != seen.end())
      fail("kernel " + kernel.name + " lacks a parameter's description");
  }

  Bytes file_;
  std::vector<Section> sections_;
  std::uint64_t initial_bytes_ = 0;
  std::unordered_map<std::uint32_t, std::size_t> kernel_of_symbol_;
  Image image_;
};

}  // namespace

Image read_cubin(std::span<const std::byte> bytes) { return Cubin(bytes).read(); }

}  // namespace cudasim
