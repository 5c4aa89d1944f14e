#include "tools/memoptctl/doctor/elf_file.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

namespace memopt::tools {
namespace {

constexpr std::uint64_t kMostTable = std::uint64_t{256} << 20;  // of symbols or names
constexpr std::size_t kMostEntries = 65536;                     // sections, segments, libraries

class File {
 public:
  explicit File(const std::string& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {
    struct stat info {};
    if (fd_ >= 0 && ::fstat(fd_, &info) == 0 && S_ISREG(info.st_mode)) size_ = static_cast<std::uint64_t>(info.st_size);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  bool is_open() const { return fd_ >= 0; }

  // Exactly these bytes, or nothing.
  std::string bytes(std::uint64_t offset, std::uint64_t count) const {
    if (count > kMostTable || offset > size_ || count > size_ - offset) return {};
    std::string part(count, '\0');
    std::uint64_t done = 0;
    while (done < count) {
      const ssize_t got = ::pread(fd_, part.data() + done, count - done, static_cast<off_t>(offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return {};
      done += static_cast<std::uint64_t>(got);
    }
    return part;
  }
  template <typename Entry>
  std::vector<Entry> table(std::uint64_t offset, std::uint64_t bytes_in_all, std::uint64_t entry_bytes) const {
    std::vector<Entry> entries;
    if (entry_bytes != sizeof(Entry)) return entries;
    const std::string raw = bytes(offset, bytes_in_all - bytes_in_all % sizeof(Entry));
    entries.resize(raw.size() / sizeof(Entry));
    if (!entries.empty()) std::memcpy(entries.data(), raw.data(), entries.size() * sizeof(Entry));
    return entries;
  }

 private:
  int fd_;
  std::uint64_t size_ = 0;
};

std::string_view text_at(const std::string& names, std::uint64_t offset) {
  if (offset >= names.size()) return {};
  const std::string_view rest = std::string_view(names).substr(offset);
  return rest.substr(0, rest.find('\0'));
}

void read_segments(const File& file, const Elf64_Ehdr& header, ElfFile& elf) {
  const auto segments =
      file.table<Elf64_Phdr>(header.e_phoff, std::uint64_t{header.e_phnum} * sizeof(Elf64_Phdr), header.e_phentsize);
  const auto offset_of = [&](std::uint64_t address) -> std::uint64_t {
    for (const Elf64_Phdr& segment : segments) {
      if (segment.p_type == PT_LOAD && address >= segment.p_vaddr && address - segment.p_vaddr < segment.p_filesz) {
        return address - segment.p_vaddr + segment.p_offset;
      }
    }
    return ~std::uint64_t{0};
  };
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type == PT_INTERP && segment.p_filesz < 4096) {
      elf.interpreter = std::string(text_at(file.bytes(segment.p_offset, segment.p_filesz), 0));
    }
    if (segment.p_type != PT_DYNAMIC) continue;
    const auto entries = file.table<Elf64_Dyn>(segment.p_offset, segment.p_filesz, sizeof(Elf64_Dyn));
    std::uint64_t names_at = 0;
    std::uint64_t names_bytes = 0;
    std::vector<std::uint64_t> needed;
    for (const Elf64_Dyn& entry : entries) {
      if (entry.d_tag == DT_NULL) break;
      if (entry.d_tag == DT_STRTAB) names_at = entry.d_un.d_ptr;
      if (entry.d_tag == DT_STRSZ) names_bytes = entry.d_un.d_val;
      if (entry.d_tag == DT_NEEDED && needed.size() < kMostEntries) needed.push_back(entry.d_un.d_val);
    }
    const std::string names = file.bytes(offset_of(names_at), names_bytes);
    for (const std::uint64_t offset : needed) elf.needed.emplace_back(text_at(names, offset));
  }
}

bool names_runtime(const File& file, const Elf64_Shdr& symbols, const Elf64_Shdr& names_section) {
  const std::string names = file.bytes(names_section.sh_offset, names_section.sh_size);
  for (const Elf64_Sym& symbol : file.table<Elf64_Sym>(symbols.sh_offset, symbols.sh_size, symbols.sh_entsize)) {
    if (symbol.st_shndx == SHN_UNDEF) continue;
    const std::string_view name = text_at(names, symbol.st_name);
    if (name == "cudaMalloc" || name == "cudaLaunchKernel" || name == "__cudaRegisterFatBinary") return true;
  }
  return false;
}

void read_sections(const File& file, const Elf64_Ehdr& header, ElfFile& elf) {
  const auto sections =
      file.table<Elf64_Shdr>(header.e_shoff, std::uint64_t{header.e_shnum} * sizeof(Elf64_Shdr), header.e_shentsize);
  if (header.e_shstrndx >= sections.size()) return;
  const std::string names = file.bytes(sections[header.e_shstrndx].sh_offset, sections[header.e_shstrndx].sh_size);
  for (const Elf64_Shdr& section : sections) {
    const std::string_view name = text_at(names, section.sh_name);
    if (name == ".nv_fatbin" || name == ".nvFatBinSegment") elf.has_device_code = true;
    if (section.sh_type != SHT_SYMTAB && section.sh_type != SHT_DYNSYM) continue;
    if (section.sh_type == SHT_SYMTAB) elf.has_symbols = true;
    if (section.sh_link < sections.size() && names_runtime(file, section, sections[section.sh_link])) {
      elf.has_runtime = true;
    }
  }
}

bool needs(const ElfFile& file, std::string_view library) {
  return std::any_of(file.needed.begin(), file.needed.end(),
                     [&](const std::string& name) { return name.starts_with(library); });
}

}  // namespace

std::optional<ElfFile> read_elf(const std::string& path, std::string* why) {
  const File file(path);
  if (!file.is_open()) {
    *why = std::strerror(errno);
    return std::nullopt;
  }
  const std::string start = file.bytes(0, EI_NIDENT + 4);
  if (start.size() < EI_NIDENT + 4 || !start.starts_with(ELFMAG)) {
    *why = "it is no ELF file";
    return std::nullopt;
  }
  ElfFile elf;
  elf.bits_64 = start[EI_CLASS] == ELFCLASS64 && start[EI_DATA] == ELFDATA2LSB;
  std::memcpy(&elf.machine, start.data() + EI_NIDENT + 2, sizeof elf.machine);
  if (!elf.bits_64) return elf;  // of another kind of machine: no more is asked
  const std::string raw = file.bytes(0, sizeof(Elf64_Ehdr));
  if (raw.size() != sizeof(Elf64_Ehdr)) {
    *why = "it ends within its header";
    return std::nullopt;
  }
  Elf64_Ehdr header;
  std::memcpy(&header, raw.data(), sizeof header);
  read_segments(file, header, elf);
  read_sections(file, header, elf);
  return elf;
}

RuntimeKind runtime_kind(const ElfFile& file) {
  if (needs(file, "libcudart.so")) return RuntimeKind::kShared;
  if (file.has_runtime) return RuntimeKind::kStatic;
  if (file.has_device_code) return RuntimeKind::kStaticWithoutSymbols;
  return needs(file, "libcuda.so") ? RuntimeKind::kDriver : RuntimeKind::kNone;
}

const char* to_string(RuntimeKind kind) {
  switch (kind) {
    case RuntimeKind::kNone:
      return "none that its file names";
    case RuntimeKind::kDriver:
      return "none: it is linked to the driver";
    case RuntimeKind::kShared:
      return "shared (libcudart.so)";
    case RuntimeKind::kStatic:
      return "static, with symbols";
    case RuntimeKind::kStaticWithoutSymbols:
      return "static, without symbols";
  }
  return "unknown";
}

}  // namespace memopt::tools
