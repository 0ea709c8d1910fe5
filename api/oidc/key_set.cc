// SPDX-License-Identifier: Apache-2.0
#include "api/oidc/key_set.h"

#include "api/oidc/foreign_text.h"
#include "base/io/crypto.h"
#include "base/json_input.h"
#include "base/json_members.h"
#include "base/json_output.h"

#include <cjose/cjose.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>

namespace muster::api {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxKeys = 64;
constexpr std::size_t kMaxKeySetBytes = 256u << 10;
constexpr std::size_t kMaxTried = 8;  ///< for a token that does not name its key
constexpr std::size_t kLeastRsaBytes = 256;
constexpr std::size_t kMostRsaBytes = 1'024;
constexpr std::size_t kMaxShownBytes = 40;

constexpr JsonLimits kKeySetJson{"the key set of the provider", kMaxKeySetBytes,    16, 20'000,
                                 DuplicateKeys::Refused,        BrokenUtf8::Refused};
constexpr JsonLimits kHeaderJson{"the header of a token", 16u << 10,          8, 200,
                                 DuplicateKeys::Refused,  BrokenUtf8::Refused};

struct Algorithm {
  std::string_view name, kind, curve;
};
/// Source: RFC 7518, 3.1, without what is not signed by a private key, and without what libcjose
/// does not verify (EdDSA).
constexpr std::array<Algorithm, 9> kAlgorithms{{{"RS256", "RSA", ""},
                                                {"RS384", "RSA", ""},
                                                {"RS512", "RSA", ""},
                                                {"PS256", "RSA", ""},
                                                {"PS384", "RSA", ""},
                                                {"PS512", "RSA", ""},
                                                {"ES256", "EC", "P-256"},
                                                {"ES384", "EC", "P-384"},
                                                {"ES512", "EC", "P-521"}}};

struct FreeJose {
  void operator()(cjose_jws_t* token) const { cjose_jws_release(token); }
};

bool isForSignatures(const json& key) {
  const auto use = textOf(key, "use");
  if (!use.empty() && use != "sig") return false;
  const auto operations = key.find("key_ops");
  return operations == key.end() ||
         (operations->is_array() &&
          std::find(operations->begin(), operations->end(), json("verify")) != operations->end());
}

bool isStrong(const json& key, const std::string& kind, const std::string& curve) {
  if (kind == "EC")
    return std::ranges::any_of(kAlgorithms, [&](const Algorithm& a) { return a.curve == curve; });
  const auto modulus = fromBase64Url(textOf(key, "n"));
  return kind == "RSA" && modulus && modulus->size() >= kLeastRsaBytes &&
         modulus->size() <= kMostRsaBytes;
}

}  // namespace

Result<std::string> fromBase64Url(std::string_view text) {
  const bool clean = text.size() % 4 != 1 && std::ranges::all_of(text, [](unsigned char c) {
                       return std::isalnum(c) || c == '-' || c == '_';
                     });
  if (!clean) return fail(ErrorCode::Corrupt, "a part of the token is no base64url");
  std::string plain(text);
  std::ranges::replace(plain, '-', '+');
  std::ranges::replace(plain, '_', '/');
  plain.resize((plain.size() + 3) / 4 * 4, '=');
  return io::fromBase64(plain);
}

Result<KeySet> KeySet::parse(std::string_view text) {
  TRY(set, parseJson(text, kKeySetJson));
  const auto keys = set.is_object() ? set.find("keys") : set.end();
  if (keys == set.end() || !keys->is_array())
    return fail(ErrorCode::Corrupt, "it is no key set (RFC 7517): it has no list \"keys\"");
  KeySet out;
  for (const auto& each : *keys) {
    if (out.keys_.size() >= kMaxKeys) break;
    if (!each.is_object() || !isForSignatures(each)) continue;
    const auto kind = textOf(each, "kty"), curve = textOf(each, "crv");
    if (!isStrong(each, kind, curve)) continue;
    // Of what the provider says, only what the public key is made of.
    json plain{{"kty", kind}};
    for (const auto* name : {"n", "e", "crv", "x", "y"})
      if (each.contains(name)) plain[name] = textOf(each, name);
    const auto printed = jsonText(plain);
    cjose_err error{};
    auto* key = cjose_jwk_import(printed.data(), printed.size(), &error);
    if (!key) continue;
    out.keys_.push_back(
        {textOf(each, "kid"),
         textOf(each, "alg"),
         kind,
         curve,
         {key, [](void* owned) { cjose_jwk_release(static_cast<cjose_jwk_t*>(owned)); }}});
  }
  if (out.keys_.empty())
    return fail(ErrorCode::Corrupt,
                "it has no key that muster can use: RSA from 2,048 bits on, or EC with P-256, "
                "P-384 or P-521");
  return out;
}

Result<std::string> KeySet::verify(std::string_view token) const {
  if (token.size() > kMaxIdTokenBytes || std::ranges::count(token, '.') != 2)
    return fail(ErrorCode::Corrupt,
                std::ranges::count(token, '.') == 4
                    ? "the token is encrypted; let the provider sign it and not encrypt it"
                    : "the provider's token is no signed one (RFC 7515, compact form)");
  TRY(header_text, fromBase64Url(token.substr(0, token.find('.'))));
  TRY(header, parseJson(header_text, kHeaderJson));
  if (!header.is_object()) return fail(ErrorCode::Corrupt, "the token's header is no object");
  const auto name = textOf(header, "alg");
  const auto* algorithm = std::ranges::find(kAlgorithms, name, &Algorithm::name);
  if (algorithm == kAlgorithms.end())
    return fail(ErrorCode::Denied,
                fmt::format("the token is signed by \"{}\", which is not taken; let the provider "
                            "sign ID tokens of this client by RS256, PS256 or ES256",
                            shown(name, kMaxShownBytes)));
  if (header.contains("crit") || header.contains("b64"))
    return fail(ErrorCode::Denied,
                "the token asks for extensions (crit) that muster does not know");
  auto type = textOf(header, "typ");
  std::ranges::transform(type, type.begin(), [](unsigned char c) { return std::tolower(c); });
  if (header.contains("typ") && type != "jwt")
    return fail(ErrorCode::Denied,
                fmt::format("the token is of the type \"{}\", and is no ID token",
                            shown(type, kMaxShownBytes)));
  const auto id = textOf(header, "kid");
  std::vector<const Key*> candidates;
  for (const auto& key : keys_)
    if ((id.empty() || key.id == id) && key.kind == algorithm->kind &&
        (algorithm->curve.empty() || key.curve == algorithm->curve) &&
        (key.algorithm.empty() || key.algorithm == name) && candidates.size() < kMaxTried)
      candidates.push_back(&key);
  if (candidates.empty())
    return fail(
        ErrorCode::NotFound,
        fmt::format("the token is signed with the key \"{}\" ({}), which is not among those "
                    "of the provider",
                    shown(id, kMaxShownBytes), name));
  cjose_err error{};
  const std::unique_ptr<cjose_jws_t, FreeJose> read(
      cjose_jws_import(token.data(), token.size(), &error));
  if (!read) return fail(ErrorCode::Corrupt, "the provider's token cannot be read");
  for (const auto* key : candidates) {
    if (!cjose_jws_verify(read.get(), static_cast<const cjose_jwk_t*>(key->key.get()), &error))
      continue;
    std::uint8_t* payload = nullptr;
    std::size_t size = 0;
    if (!cjose_jws_get_plaintext(read.get(), &payload, &size, &error)) break;
    return std::string(reinterpret_cast<const char*>(payload), size);
  }
  // A provider that names no keys may have changed them.
  if (id.empty())
    return fail(ErrorCode::NotFound, "the token is signed with none of the keys of the provider");
  return fail(ErrorCode::Denied, "the token's signature is not the provider's");
}

}  // namespace muster::api
