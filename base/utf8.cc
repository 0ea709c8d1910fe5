// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <cstring>

namespace muster {

namespace {

constexpr unsigned char byteOf(std::string_view text, std::size_t at) {
  return static_cast<unsigned char>(text[at]);
}

constexpr bool continues(unsigned char byte) { return (byte & 0xC0) == 0x80; }

struct Lead {
  std::size_t bytes;
  char32_t bits;
  char32_t smallest;  ///< a smaller value in so many bytes is an overlong form
};

constexpr Lead leadOf(unsigned char byte) {
  if (byte < 0x80) return {1, byte, 0};
  if ((byte & 0xE0) == 0xC0) return {2, byte & 0x1Fu, 0x80};
  if ((byte & 0xF0) == 0xE0) return {3, byte & 0x0Fu, 0x800};
  if ((byte & 0xF8) == 0xF0) return {4, byte & 0x07u, 0x10000};
  return {0, 0, 0};
}

/// Where the ASCII that begins at `at` ends; eight bytes at once.
std::size_t asciiEnd(std::string_view text, std::size_t at) {
  constexpr std::uint64_t kHighBits = 0x8080'8080'8080'8080;
  for (std::uint64_t word = 0; at + sizeof word <= text.size(); at += sizeof word) {
    std::memcpy(&word, text.data() + at, sizeof word);
    if ((word & kHighBits) != 0) break;
  }
  while (at < text.size() && byteOf(text, at) < 0x80) ++at;
  return at;
}

}  // namespace

std::string_view wideEncodingOf(std::string_view text) {
  using namespace std::string_view_literals;
  // The mark of UTF-32 in the small byte order begins with that of UTF-16.
  if (text.starts_with("\xFF\xFE\0\0"sv) || text.starts_with("\0\0\xFE\xFF"sv)) return "UTF-32";
  if (text.starts_with("\xFF\xFE"sv) || text.starts_with("\xFE\xFF"sv)) return "UTF-16";
  return {};
}

CodePoint codePointAt(std::string_view text, std::size_t at) {
  const auto lead = leadOf(byteOf(text, at));
  if (lead.bytes == 0) return {};
  char32_t value = lead.bits;
  for (std::size_t i = 1; i < lead.bytes; ++i) {
    if (at + i >= text.size()) return {.cut = true};
    if (!continues(byteOf(text, at + i))) return {};
    value = (value << 6) | (byteOf(text, at + i) & 0x3Fu);
  }
  if (value < lead.smallest || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) return {};
  return {value, lead.bytes, true};
}

std::string validUtf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    if (const auto end = asciiEnd(text, at); end > at) {
      out += text.substr(at, end - at);
      at = end;
      continue;
    }
    const auto point = codePointAt(text, at);
    out += point.valid ? text.substr(at, point.bytes) : kReplacement;
    at += point.bytes;
  }
  return out;
}

std::string_view cutToBytes(std::string_view text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  std::size_t end = max_bytes;
  while (end > 0 && max_bytes - end < 3 && continues(byteOf(text, end))) --end;
  return text.substr(0, continues(byteOf(text, end)) ? max_bytes : end);
}

std::string shortened(std::string_view text, std::size_t max_bytes) {
  const auto kept = cutToBytes(text, max_bytes);
  return kept.size() == text.size() ? std::string(text) : std::string(kept) + "…";
}

void appendUtf8(std::string& out, char32_t value) {
  const auto put = [&](char32_t byte) { out += static_cast<char>(byte); };
  if (value < 0x80) return put(value);
  if (value < 0x800) {
    put(0xC0 | (value >> 6));
  } else {
    if (value < 0x10000) {
      put(0xE0 | (value >> 12));
    } else {
      put(0xF0 | (value >> 18));
      put(0x80 | ((value >> 12) & 0x3F));
    }
    put(0x80 | ((value >> 6) & 0x3F));
  }
  put(0x80 | (value & 0x3F));
}

}  // namespace muster
