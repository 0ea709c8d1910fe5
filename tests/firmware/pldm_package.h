// SPDX-License-Identifier: Apache-2.0
// Builds PLDM packages for tests, by the letter of DSP0267.
#pragma once

#include <boost/crc.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace muster::test {

struct PldmBuilder {
  int revision = 1;
  std::string package_version = "HGX-24.1";
  std::uint32_t iana = 5703;
  std::vector<std::pair<std::string, std::string>> components = {
      {"3.14", "image of the FPGA"}};  ///< version, bytes

  std::string build() const {
    static const char* const kIds[] = {
        "\xf0\x18\x87\x8c\xcb\x7d\x49\x43\x98\x00\xa0\x2f\x05\x9a\xca\x02",
        "\x12\x44\xd2\x64\x8d\x7d\x47\x18\xa0\x30\xfc\x8a\x56\x58\x7d\x5a",
        "\x31\x19\xce\x2f\xe8\x0a\x4a\x99\xaf\x6d\x46\xf8\xb1\x21\xf6\xbf",
        "\x7b\x29\x1c\x99\x6d\xb6\x42\x08\x80\x1b\x02\x02\xe6\x46\x3c\x78"};
    std::string device;
    device += number(1, 1) + number(0, 4) + number(1, 1) + number(3, 1) + number(0, 2);
    if (revision >= 4) device += number(0, 4);
    device += number((1u << components.size()) - 1, 1) + "set" + number(1, 2) + number(4, 2) +
              number(iana, 4);
    device = number(static_cast<std::uint32_t>(device.size() + 2), 2) + device;

    std::string middle =
        std::string(13, '\0') + number(8, 2) + text(package_version) + number(1, 1) + device;
    if (revision >= 2) middle += number(0, 1);
    std::size_t list_bytes = 2;
    for (const auto& [version, bytes] : components)
      list_bytes += 22 + version.size() + (revision >= 3 ? 4 : 0);
    const std::size_t header = 16 + 3 + middle.size() + list_bytes + (revision >= 4 ? 8 : 4);
    std::string list = number(static_cast<std::uint32_t>(components.size()), 2), images;
    for (const auto& [version, bytes] : components) {
      list += number(10, 2) + number(1, 2) + number(0xffffffff, 4) + number(0, 2) + number(0, 2) +
              number(static_cast<std::uint32_t>(header + images.size()), 4) +
              number(static_cast<std::uint32_t>(bytes.size()), 4) + text(version);
      if (revision >= 3) list += number(0, 4);
      images += bytes;
    }
    std::string out = std::string(kIds[revision - 1], 16) +
                      number(static_cast<std::uint32_t>(revision), 1) +
                      number(static_cast<std::uint32_t>(header), 2) + middle + list;
    out += number(crc(out), 4);
    if (revision >= 4) out += number(crc(images), 4);
    return out + images;
  }

  static std::string number(std::uint32_t value, int bytes) {
    std::string out;
    for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> 8 * i & 0xff);
    return out;
  }
  static std::uint32_t crc(const std::string& bytes) {
    boost::crc_32_type crc;
    crc.process_bytes(bytes.data(), bytes.size());
    return crc.checksum();
  }

 private:
  static std::string text(const std::string& words) {
    return number(1, 1) + number(static_cast<std::uint32_t>(words.size()), 1) + words;
  }
};

}  // namespace muster::test
