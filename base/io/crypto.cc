// SPDX-License-Identifier: Apache-2.0
// OpenSSL behind muster's words.
#include "base/io/files.h"
#include "base/io/openssl.h"
#include "base/io/trusted_keys.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/rand.h>

#include <fcntl.h>
#include <unistd.h>

namespace muster::io {

namespace {

constexpr std::size_t kHashPieceBytes = 1u << 20;
constexpr std::size_t kSha256Bytes = 32;
constexpr std::size_t kEd25519SignatureBytes = 64;

Result<std::string> publicPemOf(EVP_PKEY* key) {
  Handle<BIO> bio(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_PUBKEY(bio.get(), key) != 1)
    return failCrypto(ErrorCode::Internal, "cannot write the public key");
  return textOf(bio.get());
}

constexpr std::string_view kUrlAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

}  // namespace

// ---- hashes

struct Sha256::State {
  Handle<EVP_MD_CTX> context{EVP_MD_CTX_new()};
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  static const EVP_MD* const kind = EVP_MD_fetch(
      nullptr, "SHA2-256", nullptr);  // looked up once: EVP_sha256() is looked up by each use
  EVP_DigestInit_ex(state_->context.get(), kind, nullptr);
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;

void Sha256::update(const void* data, std::size_t size_bytes) {
  EVP_DigestUpdate(state_->context.get(), data, size_bytes);
}

std::string Sha256::finish() {
  std::string digest(kSha256Bytes, '\0');
  EVP_DigestFinal_ex(state_->context.get(), bytesOf(digest), nullptr);
  return digest;
}

std::string Sha256::finishHex() { return toHex(finish()); }

std::string sha256(std::string_view data) {
  Sha256 hash;
  hash.update(data.data(), data.size());
  return hash.finish();
}

std::string sha256Hex(std::string_view data) { return toHex(sha256(data)); }

std::string hmacSha256(std::string_view key, std::string_view message) {
  std::string out(EVP_MAX_MD_SIZE, '\0');
  unsigned size = 0;
  if (!HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
            reinterpret_cast<const unsigned char*>(message.data()), message.size(),
            reinterpret_cast<unsigned char*>(out.data()), &size))
    throw std::runtime_error("HMAC-SHA-256 is not to be had of OpenSSL");
  out.resize(size);
  return out;
}

Result<std::string> sha256File(const std::filesystem::path& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid())
    return fail(errno == ENOENT ? ErrorCode::NotFound : ErrorCode::Denied,
                fmt::format("cannot open {}", path.string()));
  Sha256 hash;
  std::string piece(kHashPieceBytes, '\0');
  for (;;) {
    const auto n = ::read(fd.get(), piece.data(), piece.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(ErrorCode::Internal, fmt::format("cannot read {}", path.string()));
    if (n == 0) return hash.finishHex();
    hash.update(piece.data(), static_cast<std::size_t>(n));
  }
}

// ---- text forms

std::string toHex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  out.reserve(bytes.size() * 2);
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

std::string toBase64(std::string_view bytes) {
  std::string out((bytes.size() + 2) / 3 * 4 + 1, '\0');
  const int n = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                reinterpret_cast<const unsigned char*>(bytes.data()),
                                static_cast<int>(bytes.size()));
  out.resize(static_cast<std::size_t>(n));
  return out;
}

Result<std::string> fromBase64(std::string_view text) {
  const auto bad = [] { return fail(ErrorCode::InvalidInput, "not base64"); };
  if (text.size() % 4 != 0) return bad();
  std::size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  const auto significant = text.substr(0, text.size() - padding);
  for (const char c : significant) {  // EVP_DecodeBlock would skip blanks
    const bool known = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                       c == '+' || c == '/';
    if (!known) return bad();
  }
  std::string out(text.size() / 4 * 3 + 1, '\0');
  const int n = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                reinterpret_cast<const unsigned char*>(text.data()),
                                static_cast<int>(text.size()));
  if (n < 0) {
    ERR_clear_error();
    return bad();
  }
  out.resize(static_cast<std::size_t>(n) - padding);
  if (toBase64(out) != text) return bad();  // bits behind the last byte: one value, one text
  return out;
}

std::string randomBytes(std::size_t bytes) {
  std::string random(bytes, '\0');
  if (RAND_bytes(bytesOf(random), static_cast<int>(bytes)) != 1) std::abort();
  return random;
}

std::string randomToken(std::size_t bytes) {
  std::string out;
  unsigned bits = 0;
  int held = 0;
  for (const char c : randomBytes(bytes)) {
    bits = bits << 8 | static_cast<unsigned char>(c);
    for (held += 8; held >= 6; held -= 6) out += kUrlAlphabet[bits >> (held - 6) & 63];
  }
  if (held > 0) out += kUrlAlphabet[bits << (6 - held) & 63];
  return out;
}

bool equalConstantTime(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

// ---- signatures

Result<SigningKey> SigningKey::generate() {
  Handle<EVP_PKEY> key(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));
  if (!key) return failCrypto(ErrorCode::Internal, "cannot make an Ed25519 key");
  Handle<BIO> bio(BIO_new(BIO_s_secmem()));
  if (PEM_write_bio_PKCS8PrivateKey(bio.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) !=
      1) {
    return failCrypto(ErrorCode::Internal, "cannot write the private key");
  }
  TRY(public_pem, publicPemOf(key.get()));
  return SigningKey{Secret(textOf(bio.get())), public_pem};
}

Result<SigningKey> SigningKey::loadOrCreate(const std::filesystem::path& private_file) {
  auto stored = readFile(private_file, 1u << 16);
  if (!stored && stored.error().code() != ErrorCode::NotFound)
    return std::unexpected(stored.error());
  if (!stored) {
    TRY_OK(makeDirs(private_file.parent_path(), 0700));
    TRY(made, generate());
    TRY_OK(writeFileAtomic(private_file, made.private_pem.reveal(), 0600));
    return std::move(made);
  }
  Secret pem(std::move(*stored));
  auto key = readPrivateKey(pem);
  if (!key) return std::unexpected(std::move(key).error().within(private_file.string()));
  if (EVP_PKEY_get_id(key->get()) != EVP_PKEY_ED25519) {
    return fail(ErrorCode::Corrupt, fmt::format("{} is not an Ed25519 key", private_file.string()));
  }
  TRY(public_pem, publicPemOf(key->get()));
  return SigningKey{std::move(pem), public_pem};
}

std::string SigningKey::id() const { return publicKeyIds(public_pem).front(); }

namespace {

using SharedKey = std::shared_ptr<EVP_PKEY>;

Result<SharedKey> shared(Result<Handle<EVP_PKEY>> key) {
  if (!key) return fail(std::move(key).error());
  return SharedKey(key->release(), Free());
}

Result<Handle<EVP_PKEY>> readPublicKey(std::string_view pem) {
  auto bio = bioOf(pem);
  Handle<EVP_PKEY> key(PEM_read_bio_PUBKEY(bio.get(), nullptr, nullptr, nullptr));
  if (!key) return failCrypto(ErrorCode::Corrupt, "the public key is not readable PEM");
  if (EVP_PKEY_get_id(key.get()) != EVP_PKEY_ED25519)
    return fail(ErrorCode::Corrupt, "the public key is not Ed25519");
  return key;
}

}  // namespace

Result<std::string> sign(const SigningKey& key, std::string_view message) {
  static Kept<SharedKey> kept;
  TRY(private_key,
      kept.get(key.private_pem.reveal(), [&] { return shared(readPrivateKey(key.private_pem)); }));
  Handle<EVP_MD_CTX> context(EVP_MD_CTX_new());
  std::string signature(kEd25519SignatureBytes, '\0');
  std::size_t size = signature.size();
  if (EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, private_key.get()) != 1 ||
      EVP_DigestSign(context.get(), bytesOf(signature), &size, bytesOf(message), message.size()) !=
          1) {
    return failCrypto(ErrorCode::Internal, "cannot sign");
  }
  signature.resize(size);
  return toBase64(signature);
}

namespace {

Result<void> verifyBy(std::string_view public_pem, std::string_view message,
                      std::string_view signature_base64) {
  static Kept<SharedKey> kept;
  TRY(key, kept.get(public_pem, [&] { return shared(readPublicKey(public_pem)); }));
  const auto signature = fromBase64(signature_base64);
  if (!signature) return fail(ErrorCode::Corrupt, "the signature is not base64");
  Handle<EVP_MD_CTX> context(EVP_MD_CTX_new());
  const bool fits =
      EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
      EVP_DigestVerify(context.get(), bytesOf(std::string_view(*signature)), signature->size(),
                       bytesOf(message), message.size()) == 1;
  ERR_clear_error();
  if (!fits) return fail(ErrorCode::Corrupt, "the signature does not fit");
  return {};
}

}  // namespace

Result<void> verify(std::string_view public_pem, std::string_view message,
                    std::string_view signature_base64) {
  Result<void> first;
  bool is_first = true;
  for (const auto& pem : publicPems(public_pem)) {
    auto done = verifyBy(pem, message, signature_base64);
    if (done) return done;
    if (std::exchange(is_first, false)) first = std::move(done);
  }
  return first;
}

}  // namespace muster::io
