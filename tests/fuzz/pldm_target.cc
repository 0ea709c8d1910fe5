// SPDX-License-Identifier: Apache-2.0
// A PLDM package may hold anything: it is refused, or everything that it names lies within the
// file. The header's checksum is put right first, or no input would come past it.
#include "firmware/pldm.h"

#include "tests/firmware/pldm_package.h"
#include "tests/fuzz/targets.h"

#include <array>
#include <cstdint>
#include <string>

namespace muster::fuzz {
namespace {

constexpr std::size_t kMaxPackage = 64u << 10;

void pldm(std::string_view input) {
  std::string bytes(input);
  if (bytes.size() > 19) {
    const std::size_t header = static_cast<unsigned char>(bytes[17]) |
                               static_cast<std::size_t>(static_cast<unsigned char>(bytes[18])) << 8;
    const std::size_t tail = bytes[16] >= 4 ? 8 : 4;
    if (header >= tail && header <= bytes.size())
      bytes.replace(
          header - tail, 4,
          test::PldmBuilder::number(test::PldmBuilder::crc(bytes.substr(0, header - tail)), 4));
  }
  const auto package = firmware::parsePldm(bytes, bytes.size());
  (void)firmware::checkPldmPayload(bytes);
  if (!package) return;
  for (const auto& component : package->components)
    require(std::uint64_t{component.offset_bytes} + component.size_bytes <= bytes.size(),
            "a component lies within its package");
  for (const auto& device : package->devices)
    for (const auto index : device.components)
      require(index < package->components.size(), "a device names components of the package");
  (void)package->versions();
  (void)package->isFor("iana:5703");
  (void)package->bears("3.14");
}

// The four formats' identifiers.
constexpr std::array<std::string_view, 4> kWords = {
    std::string_view("\xf0\x18\x87\x8c\xcb\x7d\x49\x43\x98\x00\xa0\x2f\x05\x9a\xca\x02\x01", 17),
    std::string_view("\x12\x44\xd2\x64\x8d\x7d\x47\x18\xa0\x30\xfc\x8a\x56\x58\x7d\x5a\x02", 17),
    std::string_view("\x31\x19\xce\x2f\xe8\x0a\x4a\x99\xaf\x6d\x46\xf8\xb1\x21\xf6\xbf\x03", 17),
    std::string_view("\x7b\x29\x1c\x99\x6d\xb6\x42\x08\x80\x1b\x02\x02\xe6\x46\x3c\x78\x04", 17)};

}  // namespace

Target pldmTarget() { return {"pldm", kMaxPackage, pldm, kWords}; }

}  // namespace muster::fuzz
