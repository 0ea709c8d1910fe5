// SPDX-License-Identifier: Apache-2.0
#include "firmware/pldm.h"

#include "base/io/crypto.h"
#include "inventory/model/firmware.h"

#include <fmt/format.h>
#include <boost/crc.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

namespace muster::firmware {
namespace {

constexpr std::size_t kUuidBytes = 16, kDateBytes = 13, kChecksumBytes = 4;
constexpr std::size_t kMaxComponents =
    1'024;  // devices and descriptors are counted by one byte each
constexpr int kFirstWithDownstream = 2, kFirstWithOpaqueData = 3, kFirstWithPayloadChecksum = 4;

struct Format {
  std::string_view uuid_hex;
  int revision;
};
constexpr std::array<Format, 4> kFormats = {{{"f018878ccb7d49439800a02f059aca02", 1},
                                             {"1244d2648d7d4718a030fc8a56587d5a", 2},
                                             {"3119ce2fe80a4a99af6d46f8b121f6bf", 3},
                                             {"7b291c996db64208801b0202e6463c78", 4}}};

const Format* formatOf(std::string_view begin) {
  if (begin.size() < kUuidBytes) return nullptr;
  const auto hex = io::toHex(begin.substr(0, kUuidBytes));
  const auto found = std::find_if(kFormats.begin(), kFormats.end(),
                                  [&](const Format& format) { return format.uuid_hex == hex; });
  return found == kFormats.end() ? nullptr : &*found;
}

/// Little-endian fields in turn. Past the end everything is zero, and `short_` tells.
class Fields {
 public:
  explicit Fields(std::string_view bytes) : bytes_(bytes) {}
  std::uint32_t number(std::size_t size) {
    const auto part = take(size);
    std::uint32_t value = 0;
    for (std::size_t i = part.size(); i-- > 0;)
      value = value << 8 | static_cast<unsigned char>(part[i]);
    return value;
  }
  std::uint8_t u8() { return static_cast<std::uint8_t>(number(1)); }
  std::uint16_t u16() { return static_cast<std::uint16_t>(number(2)); }
  std::uint32_t u32() { return number(4); }
  std::string_view take(std::size_t size) {
    if (size > bytes_.size()) {
      short_ = true;
      bytes_ = {};
      return {};
    }
    const auto part = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return part;
  }
  std::size_t left() const { return bytes_.size(); }
  bool isShort() const { return short_; }

 private:
  std::string_view bytes_;
  bool short_ = false;
};

/// What people may be shown: UTF-16 loses its zero bytes, everything odd becomes a question mark.
std::string readable(std::string_view bytes) {
  std::string out;
  for (const char c : bytes)
    if (c != '\0') out += std::isprint(static_cast<unsigned char>(c)) ? c : '?';
  return out;
}

std::string descriptorOf(std::uint16_t type, std::string_view data) {
  Fields fields(data);
  if (type == 0x0000 && data.size() == 2) return fmt::format("pci:{:04x}", fields.u16());
  if (type == 0x0001 && data.size() == 4) return fmt::format("iana:{}", fields.u32());
  const auto hex = io::toHex(data);
  if (type == 0x0002 && data.size() == kUuidBytes)
    return fmt::format("uuid:{}-{}-{}-{}-{}", hex.substr(0, 8), hex.substr(8, 4), hex.substr(12, 4),
                       hex.substr(16, 4), hex.substr(20));
  return fmt::format("{:04x}:{}", type, hex);
}

std::unexpected<Error> corrupt(std::string what) {
  return fail(ErrorCode::Corrupt, "the PLDM package " + std::move(what));
}

Result<PldmDevice> readDevice(std::string_view record, int revision, std::size_t bitmap_bytes) {
  Fields fields(record);
  PldmDevice device;
  fields.u16();  // its length, known
  const auto descriptors = fields.u8();
  fields.u32();  // update options
  fields.u8();   // type of the version string
  const auto version_bytes = fields.u8();
  fields.u16();                                             // package data, at the end
  if (revision >= kFirstWithPayloadChecksum) fields.u32();  // reference manifest, at the end
  const auto bitmap = fields.take(bitmap_bytes);
  device.version = readable(fields.take(version_bytes));
  for (int i = 0; i < descriptors; ++i) {
    const auto type = fields.u16(), length = fields.u16();
    device.descriptors.push_back(descriptorOf(type, fields.take(length)));
  }
  if (fields.isShort()) return corrupt("has a device record that is shorter than what it holds");
  for (std::size_t bit = 0; bit < bitmap.size() * 8; ++bit)
    if (static_cast<unsigned char>(bitmap[bit / 8]) >> bit % 8 & 1)
      device.components.push_back(bit);
  return device;
}

/// Records that begin with their own length.
Result<std::vector<std::string_view>> readRecords(Fields& fields, std::string_view header) {
  std::vector<std::string_view> records;
  const auto count = fields.u8();
  for (int i = 0; i < count; ++i) {
    if (fields.left() < 2) return corrupt("ends within its device records");
    const auto at = header.size() - fields.left();
    const std::size_t length = Fields(header.substr(at)).u16();
    if (length < 2) return corrupt("has a device record without a length");
    const auto record = fields.take(length);
    if (fields.isShort()) return corrupt("has a device record that reaches beyond its header");
    records.push_back(record);
  }
  return records;
}

Result<PldmComponent> readComponent(Fields& fields, int revision, std::size_t header_bytes,
                                    std::uintmax_t file_bytes) {
  PldmComponent component;
  component.classification = fields.u16();
  component.identifier = fields.u16();
  fields.u32();  // comparison stamp
  fields.u16();  // options
  fields.u16();  // requested activation method
  component.offset_bytes = fields.u32();
  component.size_bytes = fields.u32();
  fields.u8();  // type of the version string
  component.version = readable(fields.take(fields.u8()));
  if (revision >= kFirstWithOpaqueData) fields.take(fields.u32());
  if (fields.isShort()) return corrupt("ends within its list of components");
  const std::uintmax_t end = std::uintmax_t{component.offset_bytes} + component.size_bytes;
  if (component.offset_bytes < header_bytes || end > file_bytes)
    return corrupt(fmt::format(
        "is cut off or wrong: component {:#06x} ({}) lies at bytes {} to {}, the file has {}",
        component.identifier, component.version, component.offset_bytes, end, file_bytes));
  return component;
}

std::uint32_t crcOf(std::string_view bytes) {
  boost::crc_32_type crc;
  crc.process_bytes(bytes.data(), bytes.size());
  return crc.checksum();
}

std::size_t checksumsOf(int revision) {
  return kChecksumBytes * (revision >= kFirstWithPayloadChecksum ? 2 : 1);
}

}  // namespace

bool looksLikePldm(std::string_view begin) { return formatOf(begin) != nullptr; }

Result<PldmPackage> parsePldm(std::string_view begin, std::uintmax_t file_bytes) {
  const auto* format = formatOf(begin);
  if (!format) return corrupt("does not begin with a PLDM package identifier");
  Fields start(begin.substr(kUuidBytes));
  PldmPackage package;
  package.format_revision = start.u8();
  package.header_bytes = start.u16();
  if (package.format_revision != format->revision)
    return corrupt(fmt::format("says format {} and has the identifier of format {}",
                               package.format_revision, format->revision));
  const auto checksums = checksumsOf(package.format_revision);
  if (package.header_bytes > begin.size() || package.header_bytes < kUuidBytes + checksums)
    return corrupt(fmt::format("is cut off: its header has {} bytes, {} are there",
                               package.header_bytes, begin.size()));

  const auto covered = begin.substr(0, package.header_bytes - checksums);
  const auto declared = Fields(begin.substr(covered.size())).u32();
  if (const auto seen = crcOf(covered); seen != declared)
    return corrupt(
        fmt::format("has a damaged header: its CRC-32 is {:08x}, it says {:08x}", seen, declared));

  Fields fields(covered.substr(kUuidBytes + 3));
  fields.take(kDateBytes);
  const std::size_t bitmap_bits = fields.u16();
  fields.u8();  // type of the version string
  package.version = readable(fields.take(fields.u8()));
  if (bitmap_bits % 8 != 0 || bitmap_bits > kMaxComponents)
    return corrupt(fmt::format("has a component bitmap of {} bits", bitmap_bits));
  TRY(devices, readRecords(fields, covered));
  if (devices.empty()) return corrupt("is for no device");
  for (const auto record : devices) {
    TRY(device, readDevice(record, package.format_revision, bitmap_bits / 8));
    package.devices.push_back(std::move(device));
  }
  if (package.format_revision >= kFirstWithDownstream) TRY_OK(readRecords(fields, covered));
  const std::size_t count = fields.u16();
  if (count == 0 || count > kMaxComponents)
    return corrupt(fmt::format("lists {} components", count));
  for (std::size_t i = 0; i < count; ++i) {
    TRY(component,
        readComponent(fields, package.format_revision, package.header_bytes, file_bytes));
    package.components.push_back(std::move(component));
  }
  for (const auto& device : package.devices)
    if (!device.components.empty() && device.components.back() >= count)
      return corrupt("names a component for a device that it does not hold");
  return package;
}

Result<void> checkPldmPayload(std::string_view file) {
  TRY(package, parsePldm(file.substr(0, kMaxPldmHeaderBytes), file.size()));
  if (package.format_revision < kFirstWithPayloadChecksum) return {};
  const auto declared = Fields(file.substr(package.header_bytes - kChecksumBytes)).u32();
  if (const auto seen = crcOf(file.substr(package.header_bytes)); seen != declared)
    return corrupt(fmt::format("has damaged images: their CRC-32 is {:08x}, its header says {:08x}",
                               seen, declared));
  return {};
}

bool PldmPackage::isFor(std::string_view device) const {
  auto lower = [](std::string_view text) {
    std::string out(text);
    std::transform(out.begin(), out.end(), out.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return out;
  };
  const auto wanted = lower(device);
  return std::any_of(devices.begin(), devices.end(), [&](const PldmDevice& each) {
    return std::find(each.descriptors.begin(), each.descriptors.end(), wanted) !=
           each.descriptors.end();
  });
}

bool PldmPackage::bears(std::string_view wanted) const {
  auto same = [wanted](const std::string& seen) {
    return !seen.empty() && inventory::compareVersions(seen, wanted) == 0;
  };
  return same(version) ||
         std::any_of(devices.begin(), devices.end(),
                     [&](const PldmDevice& device) { return same(device.version); }) ||
         std::any_of(components.begin(), components.end(),
                     [&](const PldmComponent& component) { return same(component.version); });
}

std::string PldmPackage::versions() const {
  std::string out = version;
  for (const auto& component : components)
    out += fmt::format("{}{}", out.empty() ? "" : ", ", component.version);
  return out;
}

}  // namespace muster::firmware
