// SPDX-License-Identifier: Apache-2.0
#include "base/io/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <limits>

namespace muster::io {
namespace {

constexpr int kLevel = 4;  ///< JSON of a fleet: a third of level 9's time, 15 % more bytes
constexpr int kGzipWindow = 15 + 16;  ///< zlib.h: 16 more writes a gzip header
constexpr int kMemoryLevel = 8;

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool isWord(std::string_view text, std::string_view word) {
  return std::ranges::equal(text, word, [](unsigned char a, unsigned char b) {
    return std::tolower(a) == std::tolower(b);
  });
}

/// "q=0", "q=0.000"
bool isNever(std::string_view parameter) {
  if (!parameter.starts_with("q=") && !parameter.starts_with("Q=")) return false;
  const auto value = parameter.substr(2);
  return !value.empty() && value.find_first_not_of("0.") == std::string_view::npos;
}

}  // namespace

std::optional<std::string> gzip(std::string_view text) {
  if (text.size() > std::numeric_limits<std::uint32_t>::max() / 2) return std::nullopt;
  z_stream stream{};
  if (::deflateInit2(&stream, kLevel, Z_DEFLATED, kGzipWindow, kMemoryLevel, Z_DEFAULT_STRATEGY) !=
      Z_OK)
    return std::nullopt;
  std::string out(::deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const bool whole = ::deflate(&stream, Z_FINISH) == Z_STREAM_END;
  out.resize(stream.total_out);
  ::deflateEnd(&stream);
  return whole ? std::optional(std::move(out)) : std::nullopt;
}

bool acceptsGzip(std::string_view accept_encoding) {
  bool any = false;
  while (!accept_encoding.empty()) {
    auto item = accept_encoding.substr(0, accept_encoding.find(','));
    accept_encoding.remove_prefix(std::min(accept_encoding.size(), item.size() + 1));
    const auto name = trimmed(item.substr(0, item.find(';')));
    const auto mark = item.find(';');
    const bool never = mark != std::string_view::npos && isNever(trimmed(item.substr(mark + 1)));
    if (isWord(name, "gzip") || isWord(name, "x-gzip")) return !never;
    any = any || (name == "*" && !never);
  }
  return any;
}

}  // namespace muster::io
