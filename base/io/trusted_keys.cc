// SPDX-License-Identifier: Apache-2.0
#include "base/io/trusted_keys.h"

#include "base/io/crypto.h"
#include "base/io/regular_file.h"

#include <fmt/format.h>

namespace muster::io {
namespace {

constexpr std::string_view kBegin = "-----BEGIN PUBLIC KEY-----",
                           kEnd = "-----END PUBLIC KEY-----\n";
constexpr std::size_t kKeyIdDigits = 16;
constexpr std::size_t kMaxKeyFileBytes = 64u << 10;

}  // namespace

std::vector<std::string> publicPems(std::string_view text) {
  std::vector<std::string> out;
  for (auto begin = text.find(kBegin);
       begin != std::string_view::npos && out.size() < kMaxTrustedKeys;
       begin = text.find(kBegin, begin + 1)) {
    const auto end = text.find(kEnd, begin);
    if (end == std::string_view::npos) break;
    out.emplace_back(text.substr(begin, end + kEnd.size() - begin));
  }
  if (out.empty()) out.emplace_back(text);
  return out;
}

Result<std::string> readPublicKeys(const std::filesystem::path& file) {
  TRY(text, readRegularFile(file, kMaxKeyFileBytes));
  std::erase(text, '\r');
  if (!text.ends_with('\n')) text += '\n';
  std::string out;
  for (const auto& pem : publicPems(text))
    if (pem.starts_with(kBegin)) out += pem;
  if (!out.empty()) return out;
  const bool is_private = text.find("PRIVATE KEY-----") != text.npos;
  return fail(
      ErrorCode::InvalidInput,
      fmt::format(
          "{} {} (a line {}); `muster key show PURPOSE` prints the site's", file.string(),
          is_private ? "is a private key: name the public half" : "holds no public key in PEM",
          kBegin));
}

std::string_view firstPemBlock(std::string_view text) {
  constexpr std::string_view kAnyBegin = "-----BEGIN ", kAnyEnd = "-----END ", kDashes = "-----";
  const auto begin = text.find(kAnyBegin);
  if (begin == std::string_view::npos) return {};
  const auto end = text.find(kAnyEnd, begin);
  const auto dashes =
      end == std::string_view::npos ? end : text.find(kDashes, end + kAnyEnd.size());
  if (dashes == std::string_view::npos) return {};
  return text.substr(begin, dashes + kDashes.size() - begin);
}

std::vector<std::string> publicKeyIds(std::string_view text) {
  std::vector<std::string> out;
  for (const auto& pem : publicPems(text)) out.push_back(sha256Hex(pem).substr(0, kKeyIdDigits));
  return out;
}

std::optional<std::string> trustedPemOf(std::string_view text, std::string_view key_id) {
  for (auto& pem : publicPems(text))
    if (publicKeyIds(pem).front() == key_id) return std::move(pem);
  return std::nullopt;
}

}  // namespace muster::io
