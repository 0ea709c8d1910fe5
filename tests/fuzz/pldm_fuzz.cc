// SPDX-License-Identifier: Apache-2.0
// A PLDM package may hold anything: it is refused, or everything that it names lies within the
// file. The header's checksum is put right first, or no input would come past it.
#include "firmware/pldm.h"
#include "tests/firmware/pldm_package.h"

#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  if (bytes.size() > 19) {
    const std::size_t header = static_cast<unsigned char>(bytes[17]) |
                               static_cast<std::size_t>(static_cast<unsigned char>(bytes[18])) << 8;
    const std::size_t tail = bytes[16] >= 4 ? 8 : 4;
    if (header >= tail && header <= bytes.size())
      bytes.replace(header - tail, 4,
                    muster::test::PldmBuilder::number(
                        muster::test::PldmBuilder::crc(bytes.substr(0, header - tail)), 4));
  }
  const auto package = muster::firmware::parsePldm(bytes, bytes.size());
  (void)muster::firmware::checkPldmPayload(bytes);
  if (!package) return 0;
  for (const auto& component : package->components)
    if (std::uint64_t{component.offset_bytes} + component.size_bytes > bytes.size()) std::abort();
  for (const auto& device : package->devices)
    for (const auto index : device.components)
      if (index >= package->components.size()) std::abort();
  (void)package->versions();
  (void)package->isFor("iana:5703");
  (void)package->bears("3.14");
  return 0;
}
