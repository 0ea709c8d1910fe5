// SPDX-License-Identifier: Apache-2.0
// Structures of TPM 2.0: big-endian numbers and byte strings with a length in front.
#include "base/io/crypto.h"
#include "base/io/tpm2.h"
#include "base/io/tpm2_wire.h"

#include <fmt/format.h>

namespace muster::io {
namespace {

// TPM_ECC_CURVE, TPM_ST, TPMA_OBJECT (Part 2)
constexpr std::uint16_t kP256 = 0x0003;
constexpr std::uint32_t kGenerated = 0xff544347;
constexpr std::uint16_t kAttestQuote = 0x8018;
constexpr std::size_t kRsaBytes = 256, kEccBytes = 32, kDigestBytes = 32;
constexpr std::uint32_t kMaxSelections = 8;
constexpr std::size_t kMinSelectBytes = 3, kMaxSelectBytes = 4;

struct Attribute {
  std::uint32_t bit;
  std::string_view name;
};
constexpr Attribute kFixedTpm{1u << 1, "fixedTPM"}, kFixedParent{1u << 4, "fixedParent"},
    kOwnOrigin{1u << 5, "sensitiveDataOrigin"}, kRestricted{1u << 16, "restricted"},
    kDecrypt{1u << 17, "decrypt"}, kSign{1u << 18, "sign"};

std::unexpected<Error> corrupt(std::string_view what) {
  return fail(ErrorCode::Corrupt, fmt::format("the TPM's {} is malformed", what));
}
std::unexpected<Error> unknown(std::string_view what, unsigned value) {
  return fail(ErrorCode::InvalidInput,
              fmt::format("the TPM's key has {} {:#06x}, which is not supported", what, value));
}

/// Apart: where GCC 12 knows the length it warns of copies that cannot happen.
[[gnu::noinline]] bool isDigest(std::string_view bytes) { return bytes.size() == kDigestBytes; }

/// TPMT_SYM_DEF_OBJECT. Answers whether it is AES-128-CFB.
Result<bool> symmetric(TpmReader& in) {
  const auto algorithm = in.u16();
  if (algorithm == kTpmNull) return false;
  const auto bits = in.u16(), mode = in.u16();
  if (in.bad()) return corrupt("public area");
  if (algorithm != kTpmAes || mode != kTpmCfb) return unknown("a symmetric algorithm", algorithm);
  return bits == 128;
}

/// TPMT_RSA_SCHEME, TPMT_ECC_SCHEME.
Result<void> scheme(TpmReader& in) {
  const auto algorithm = in.u16();
  if (algorithm == kTpmNull) return {};
  if (algorithm != kTpmRsaSsa && algorithm != kTpmRsaPss && algorithm != kTpmEcdsa)
    return unknown("a scheme", algorithm);
  if (const auto hash = in.u16(); hash != kTpmSha256) return unknown("a hash", hash);
  return {};
}

Result<void> rsa(TpmReader& in, TpmPublic& out) {
  out.rsa = true;
  TRY_OK(scheme(in));
  const auto bits = in.u16();
  const auto exponent = in.u32();
  out.modulus = in.text();
  if (in.bad()) return corrupt("public area");
  if (bits != 8 * kRsaBytes || out.modulus.size() != kRsaBytes) return unknown("bits", bits);
  if (exponent != 0 && exponent != out.exponent) return unknown("an exponent", exponent);
  return {};
}

Result<void> ecc(TpmReader& in, TpmPublic& out) {
  TRY_OK(scheme(in));
  const auto curve = in.u16();
  const auto kdf = in.u16();
  if (kdf != kTpmNull) return unknown("a key derivation", kdf);
  out.x = in.text();
  out.y = in.text();
  if (in.bad()) return corrupt("public area");
  if (curve != kP256) return unknown("a curve", curve);
  if (out.x.size() > kEccBytes || out.y.size() > kEccBytes) return corrupt("public area");
  out.x.insert(0, kEccBytes - out.x.size(), '\0');
  out.y.insert(0, kEccBytes - out.y.size(), '\0');
  return {};
}

Result<void> attributesAre(std::uint32_t attributes, std::initializer_list<Attribute> set,
                           Attribute clear, std::string_view key) {
  for (const auto& wanted : set)
    if (!(attributes & wanted.bit))
      return fail(ErrorCode::Denied, fmt::format("the TPM's {} is not {}", key, wanted.name));
  if (attributes & clear.bit)
    return fail(ErrorCode::Denied, fmt::format("the TPM's {} may {}", key, clear.name));
  return {};
}

/// The SHA-256 bank's PCRs of a TPML_PCR_SELECTION; other banks must select nothing.
Result<std::vector<int>> selection(TpmReader& in) {
  std::vector<int> pcrs;
  const auto count = in.u32();
  if (in.bad() || count > kMaxSelections) return corrupt("selection of PCRs");
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto bank = in.u16();
    const auto bytes = in.number(1);
    if (bytes < kMinSelectBytes || bytes > kMaxSelectBytes) return corrupt("selection of PCRs");
    const auto bits = in.take(bytes);
    if (in.bad()) return corrupt("selection of PCRs");
    for (int pcr = 0; pcr < static_cast<int>(8 * bits.size()); ++pcr) {
      if (!(static_cast<unsigned char>(bits[static_cast<std::size_t>(pcr / 8)]) >> (pcr % 8) & 1))
        continue;
      if (bank != kTpmSha256 || pcr >= kTpmPcrs || (!pcrs.empty() && pcrs.back() >= pcr))
        return corrupt("selection of PCRs");
      pcrs.push_back(pcr);
    }
  }
  return pcrs;
}

}  // namespace

std::string TpmPublic::name() const { return std::string("\0\x0b", 2) + sha256(area); }

std::string TpmPublic::id() const { return sha256Hex(area); }

Result<void> TpmPublic::mayAttest() const {
  return attributesAre(attributes, {kFixedTpm, kFixedParent, kOwnOrigin, kRestricted, kSign},
                       kDecrypt, "attestation key");
}

Result<void> TpmPublic::mayBeEndorsement() const {
  TRY_OK(attributesAre(attributes, {kFixedTpm, kFixedParent, kOwnOrigin, kRestricted, kDecrypt},
                       kSign, "endorsement key"));
  if (!rsa || !aes128cfb)
    return fail(ErrorCode::InvalidInput, "the TPM's endorsement key is not RSA 2048 with AES 128");
  return {};
}

Result<TpmPublic> parseTpmPublic(std::string_view bytes) {
  TpmReader outer(bytes.substr(0, kTpmMaxBytes));
  TpmPublic out;
  out.area = outer.text();
  if (!outer.done() || bytes.size() > kTpmMaxBytes) return corrupt("public area");
  TpmReader in(out.area);
  const auto type = in.u16();
  const auto hash = in.u16();
  out.attributes = in.u32();
  in.sized();  // the policy: it is part of the name
  if (in.bad()) return corrupt("public area");
  if (hash != kTpmSha256) return unknown("a name by", hash);
  if (type != kTpmRsa && type != kTpmEcc) return unknown("a type", type);
  TRY(wraps, symmetric(in));
  out.aes128cfb = wraps;
  TRY_OK(type == kTpmRsa ? rsa(in, out) : ecc(in, out));
  if (!in.done()) return corrupt("public area");
  return out;
}

Result<TpmQuote> parseTpmQuote(std::string_view bytes) {
  if (bytes.size() > kTpmMaxBytes) return corrupt("quote");
  TpmReader in(bytes);
  TpmQuote out;
  const auto magic = in.u32();
  const auto type = in.u16();
  if (in.bad()) return corrupt("quote");
  if (magic != kGenerated)
    return fail(ErrorCode::Denied, "what the TPM's key has signed was not made by the TPM");
  if (type != kAttestQuote)
    return fail(ErrorCode::Denied, "what the TPM's key has signed is no quote");
  in.sized();  // the qualified name of the signer: the credential binds the key
  out.extra_data = in.text();
  in.number(8);  // clock
  out.resets = in.u32();
  in.u32();      // restarts
  in.number(1);  // safe
  in.number(8);  // the TPM's firmware
  TRY(pcrs, selection(in));
  out.pcrs = std::move(pcrs);
  out.pcr_digest = in.text();
  if (!in.done() || !isDigest(out.pcr_digest)) return corrupt("quote");
  return out;
}

}  // namespace muster::io
