// SPDX-License-Identifier: Apache-2.0
// How TPM 2.0 writes things: big-endian numbers, byte strings with a length in front, and the
// numbers of its algorithms (Part 2).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace muster::io {

// TPM_ALG_ID
inline constexpr std::uint16_t kTpmRsa = 0x0001, kTpmAes = 0x0006, kTpmSha256 = 0x000b,
                               kTpmNull = 0x0010, kTpmRsaSsa = 0x0014, kTpmRsaPss = 0x0016,
                               kTpmEcdsa = 0x0018, kTpmEcc = 0x0023, kTpmCfb = 0x0043;

/// Reads what is declared and nothing beyond; the first thing that does not fit is kept as the
/// error, later reads give zero.
class TpmReader {
 public:
  explicit TpmReader(std::string_view bytes) : rest_(bytes) {}
  std::uint64_t number(std::size_t bytes) {
    std::uint64_t value = 0;
    for (const char byte : take(bytes)) value = value << 8 | static_cast<unsigned char>(byte);
    return value;
  }
  std::uint16_t u16() { return static_cast<std::uint16_t>(number(2)); }
  std::uint32_t u32() { return static_cast<std::uint32_t>(number(4)); }
  std::string_view sized() { return take(u16()); }
  std::string text() { return std::string(sized()); }
  std::string_view take(std::size_t bytes) {
    if (bad_ || bytes > rest_.size()) {
      bad_ = true;
      return {};
    }
    const auto out = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return out;
  }
  std::string_view rest() const { return rest_; }
  bool bad() const { return bad_; }
  bool done() const { return !bad_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool bad_ = false;
};

}  // namespace muster::io
