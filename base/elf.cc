// SPDX-License-Identifier: Apache-2.0
#include "base/elf.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace muster {

namespace {

constexpr std::size_t kIdentBytes = 16, kHeaderBytes = 64, kSegmentBytes = 56, kDynamicBytes = 16;
constexpr std::size_t kMaxSegments = 1024, kMaxDynamic = 4096, kMaxVersions = 512;
constexpr std::uint32_t kLoad = 1, kDynamic = 2, kInterpreter = 3;
constexpr std::uint64_t kNeeded = 1, kStringTable = 5, kRpath = 15, kRunpath = 29,
                        kVersions = 0x6ffffffc, kVersionCount = 0x6ffffffd;

struct Segment {
  std::uint32_t type = 0;
  std::uint64_t offset = 0, address = 0, length = 0;  ///< bytes in the file
};

class Reader {
 public:
  explicit Reader(std::string_view content) : content_(content) {}

  template <class Number>
  Number number(std::uint64_t at) const {
    Number value{};
    if (holds(at, sizeof value)) std::memcpy(&value, content_.data() + at, sizeof value);
    return value;
  }
  bool holds(std::uint64_t at, std::uint64_t bytes) const {
    return at <= content_.size() && bytes <= content_.size() - at;
  }
  /// Up to the zero behind it; empty where there is none.
  std::string text(std::uint64_t at) const {
    if (at >= content_.size()) return {};
    const auto end = content_.find('\0', at);
    return end == std::string_view::npos ? std::string()
                                         : std::string(content_.substr(at, end - at));
  }

 private:
  std::string_view content_;
};

std::unexpected<Error> cutShort(std::string_view what) {
  return fail(ErrorCode::Corrupt, fmt::format("an ELF file is cut short: {} ends behind it", what));
}

Result<std::vector<Segment>> segmentsOf(const Reader& in) {
  const auto table = in.number<std::uint64_t>(32);
  const auto count = in.number<std::uint16_t>(56);
  if (count > kMaxSegments || (count > 0 && in.number<std::uint16_t>(54) != kSegmentBytes))
    return fail(ErrorCode::Corrupt, "an ELF file has a table of segments that cannot be right");
  if (!in.holds(table, count * kSegmentBytes)) return cutShort("its table of segments");
  std::vector<Segment> segments;
  for (std::size_t i = 0; i < count; ++i) {
    const auto at = table + i * kSegmentBytes;
    segments.push_back({in.number<std::uint32_t>(at), in.number<std::uint64_t>(at + 8),
                        in.number<std::uint64_t>(at + 16), in.number<std::uint64_t>(at + 32)});
    const auto& made = segments.back();
    if ((made.type == kLoad || made.type == kDynamic || made.type == kInterpreter) &&
        !in.holds(made.offset, made.length))
      return cutShort("a segment");
  }
  return segments;
}

/// Where an address of the running program stands in the file.
std::uint64_t offsetOf(const std::vector<Segment>& segments, std::uint64_t address) {
  for (const auto& segment : segments)
    if (segment.type == kLoad && address >= segment.address &&
        address - segment.address < segment.length)
      return segment.offset + (address - segment.address);
  return ~std::uint64_t{0};
}

void addFolders(std::string_view list, std::vector<std::string>& out) {
  while (!list.empty()) {
    const auto colon = list.find(':');
    if (const auto one = list.substr(0, colon); !one.empty()) out.emplace_back(one);
    list = colon == std::string_view::npos ? std::string_view() : list.substr(colon + 1);
  }
}

/// Source: LSB Core, Elfxx_Verdef (20 bytes) and Elfxx_Verdaux
void readVersions(const Reader& in, std::uint64_t at, std::uint64_t count, std::uint64_t strings,
                  std::vector<std::string>& out) {
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(count, kMaxVersions); ++i) {
    if (!in.holds(at, 20)) return;
    const auto aux = at + in.number<std::uint32_t>(at + 12);
    out.push_back(in.text(strings + in.number<std::uint32_t>(aux)));
    const auto next = in.number<std::uint32_t>(at + 16);
    if (next == 0) return;
    at += next;
  }
}

void readDynamic(const Reader& in, const std::vector<Segment>& segments, const Segment& dynamic,
                 ElfFile& file) {
  struct Entry {
    std::uint64_t tag, value;
  };
  std::vector<Entry> entries;
  const auto count = std::min<std::uint64_t>(dynamic.length / kDynamicBytes, kMaxDynamic);
  std::uint64_t strings = 0, versions = 0, version_count = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto at = dynamic.offset + i * kDynamicBytes;
    const Entry entry{in.number<std::uint64_t>(at), in.number<std::uint64_t>(at + 8)};
    if (entry.tag == 0) break;
    if (entry.tag == kStringTable) strings = offsetOf(segments, entry.value);
    if (entry.tag == kVersions) versions = offsetOf(segments, entry.value);
    if (entry.tag == kVersionCount) version_count = entry.value;
    entries.push_back(entry);
  }
  for (const auto& entry : entries) {
    if (entry.tag == kNeeded) file.needed.push_back(in.text(strings + entry.value));
    if (entry.tag == kRpath || entry.tag == kRunpath)
      addFolders(in.text(strings + entry.value), file.search_folders);
  }
  if (versions != 0) readVersions(in, versions, version_count, strings, file.defined_versions);
}

}  // namespace

Result<ElfFile> parseElf(std::string_view content) {
  if (!content.starts_with("\x7f"
                           "ELF"))
    return fail(ErrorCode::InvalidInput, "it is no ELF file");
  const Reader in(content);
  if (!in.holds(0, kIdentBytes + 4)) return cutShort("its header");
  ElfFile file;
  file.is_64_bit = content[4] == 2;
  const bool little = content[5] == 1;
  file.machine = in.number<std::uint16_t>(18);
  if (!little) file.machine = static_cast<std::uint16_t>(file.machine << 8 | file.machine >> 8);
  if (!file.is_64_bit || !little) return file;
  if (!in.holds(0, kHeaderBytes)) return cutShort("its header");
  TRY(segments, segmentsOf(in));
  const auto sections = in.number<std::uint64_t>(40);
  const std::uint64_t section_bytes =
      std::uint64_t{in.number<std::uint16_t>(58)} * in.number<std::uint16_t>(60);
  if (sections != 0 && !in.holds(sections, section_bytes)) return cutShort("its section table");
  for (const auto& segment : segments) {
    if (segment.type == kInterpreter && segment.length > 0) {
      file.interpreter_offset_bytes = segment.offset;
      file.interpreter_length_bytes = segment.length;
      file.interpreter = std::string(content.substr(segment.offset, segment.length - 1));
    }
    if (segment.type == kDynamic) readDynamic(in, segments, segment, file);
  }
  return file;
}

std::string elfMachineName(std::uint16_t machine) {
  // Source: System V ABI, e_machine
  constexpr struct {
    std::uint16_t number;
    const char* name;
  } kMachines[] = {{3, "x86 with 32 bits"}, {20, "PowerPC"},          {21, "POWER"},
                   {22, "s390x"},           {40, "ARM with 32 bits"}, {62, "x86-64"},
                   {183, "AArch64"},        {243, "RISC-V"},          {258, "LoongArch"}};
  for (const auto& each : kMachines)
    if (each.number == machine) return each.name;
  return fmt::format("machine {}", machine);
}

std::string GlibcVersion::str() const { return fmt::format("{}.{}", major, minor); }

std::optional<GlibcVersion> glibcVersionOf(const ElfFile& libc) {
  std::optional<GlibcVersion> newest;
  for (const auto& name : libc.defined_versions) {
    GlibcVersion version;
    int end = 0;
    if (std::sscanf(name.c_str(), "GLIBC_%d.%d%n", &version.major, &version.minor, &end) != 2 ||
        version.major != 2)
      continue;
    if (!newest || *newest < version) newest = version;
  }
  return newest;
}

}  // namespace muster
