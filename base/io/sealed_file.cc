// SPDX-License-Identifier: Apache-2.0
#include "base/io/sealed_file.h"

#include "base/big_endian.h"
#include "base/io/openssl.h"
#include "base/json_input.h"
#include "base/json_output.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace muster::io {
namespace {

constexpr std::string_view kMark = "muster-sealed/1\n";
constexpr std::string_view kAnyMark = "muster-sealed/";
constexpr std::size_t kMaxHeaderBytes = 64 << 10, kSaltBytes = 16, kKeyBytes = 32, kTagBytes = 16;
constexpr std::size_t kNonceBytes = 12, kLengthBytes = 4;
constexpr std::uint32_t kLastPiece = 0x80000000u;
/// RFC 7914: 128 · n · r bytes of memory (64 MiB), about a fifth of a second.
constexpr std::uint64_t kN = 1 << 16, kR = 8, kP = 1;
constexpr std::uint64_t kMaxN = 1 << 20, kMaxR = 16, kMaxP = 4;
constexpr std::uint64_t kMaxScryptBytes = std::uint64_t{3} << 30;

std::string nonceOf(std::uint64_t piece, bool last) {
  auto out = bigEndian(piece, 8);
  out.resize(kNonceBytes, '\0');
  out.back() = last ? 1 : 0;
  return out;
}

struct Keys {
  Secret piece;
  std::string check;  ///< tells a wrong passphrase from a changed file
};

Result<Keys> derive(const Secret& passphrase, std::string_view salt, std::uint64_t n,
                    std::uint64_t r, std::uint64_t p) {
  std::string out(2 * kKeyBytes, '\0');
  const auto& text = passphrase.reveal();
  if (EVP_PBE_scrypt(text.data(), text.size(), bytesOf(salt), salt.size(), n, r, p, kMaxScryptBytes,
                     bytesOf(out), out.size()) != 1)
    return fail(ErrorCode::Internal, "no key could be made of the passphrase (scrypt)");
  return Keys{Secret(out.substr(0, kKeyBytes)), sha256Hex(out.substr(kKeyBytes))};
}

std::unexpected<Error> diskError(const std::filesystem::path& file, const char* what) {
  return fail(Error(ErrorCode::Unavailable,
                    fmt::format("{} cannot be {}: {}", file.string(), what, std::strerror(errno)))
                  .retryable(false));
}

std::unexpected<Error> corrupt(const std::filesystem::path& file, std::string_view what) {
  return fail(ErrorCode::Corrupt, fmt::format("{} {}", file.string(), what));
}

constexpr const char* kCutOff = "is cut off: it was not written to its end, or not copied whole";
constexpr const char* kChanged = "was changed or damaged after it was written";

}  // namespace

SealedWriter::SealedWriter(Fd fd, std::filesystem::path file, const Secret& key,
                           std::string header_digest)
    : fd_(std::move(fd)),
      file_(std::move(file)),
      key_(key),
      header_digest_(std::move(header_digest)) {}

Result<SealedWriter> SealedWriter::create(const std::filesystem::path& file,
                                          const Secret& passphrase, const std::string& about) {
  if (passphrase.reveal().size() < kMinPassphraseBytes)
    return fail(ErrorCode::InvalidInput,
                fmt::format("the passphrase must have {} characters or more; a good one: openssl "
                            "rand -base64 24",
                            kMinPassphraseBytes));
  const auto salt = randomBytes(kSaltBytes);
  TRY(keys, derive(passphrase, salt, kN, kR, kP));
  const auto header = jsonText(nlohmann::json{
      {"kdf", {{"name", "scrypt"}, {"n", kN}, {"r", kR}, {"p", kP}, {"salt", toBase64(salt)}}},
      {"check", keys.check},
      {"about", about}});
  if (header.size() > kMaxHeaderBytes)
    return fail(ErrorCode::Internal, "the header of a sealed file became too large");
  Fd fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.valid()) return diskError(file, "made");
  SealedWriter out(std::move(fd), file, keys.piece, sha256(header));
  TRY_OK(out.put(kMark));
  TRY_OK(out.put(bigEndian(header.size(), kLengthBytes) + header));
  return out;
}

Result<void> SealedWriter::put(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto n = ::write(fd_.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return diskError(file_, "written");
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

Result<void> SealedWriter::seal(bool last) {
  const auto piece = std::string_view(pending_).substr(0, kSealedPieceBytes);
  const auto nonce = nonceOf(pieces_++, last);
  std::string out(piece.size() + kTagBytes, '\0');
  Handle<EVP_CIPHER_CTX> context(EVP_CIPHER_CTX_new());
  int n = 0;
  const bool ok = EVP_EncryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr,
                                     bytesOf(key_.reveal()), bytesOf(nonce)) == 1 &&
                  EVP_EncryptUpdate(context.get(), nullptr, &n, bytesOf(header_digest_),
                                    static_cast<int>(header_digest_.size())) == 1 &&
                  EVP_EncryptUpdate(context.get(), bytesOf(out), &n, bytesOf(piece),
                                    static_cast<int>(piece.size())) == 1 &&
                  EVP_EncryptFinal_ex(context.get(), bytesOf(out) + n, &n) == 1 &&
                  EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_GET_TAG, kTagBytes,
                                      bytesOf(out) + piece.size()) == 1;
  if (!ok) return fail(ErrorCode::Internal, "a piece could not be encrypted");
  pending_.erase(0, piece.size());
  return put(bigEndian(out.size() | (last ? kLastPiece : 0), kLengthBytes) + out);
}

Result<void> SealedWriter::write(std::string_view data) {
  while (!data.empty()) {
    const auto room = kSealedPieceBytes + 1 - pending_.size();  // the last piece is never empty
    pending_.append(data.substr(0, room));
    data.remove_prefix(std::min(room, data.size()));
    if (pending_.size() > kSealedPieceBytes) TRY_OK(seal(false));
  }
  return {};
}

Result<void> SealedWriter::finish() {
  TRY_OK(seal(true));
  if (::fsync(fd_.get()) != 0) return diskError(file_, "written");
  return {};
}

Result<std::string> SealedReader::take(std::size_t bytes) {
  std::string out(bytes, '\0');
  std::size_t got = 0;
  while (got < bytes) {
    const auto n = ::read(fd_.get(), out.data() + got, bytes - got);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return diskError(file_, "read");
    if (n == 0) return corrupt(file_, kCutOff);
    got += static_cast<std::size_t>(n);
  }
  return out;
}

Result<SealedReader> SealedReader::open(const std::filesystem::path& file) {
  Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid())
    return fail(errno == ENOENT ? ErrorCode::NotFound : ErrorCode::Unavailable,
                fmt::format("{} cannot be read: {}", file.string(), std::strerror(errno)));
  SealedReader out(std::move(fd), file);
  const auto mark = out.take(kMark.size());
  if (!mark || *mark != kMark)
    return corrupt(file, mark && mark->starts_with(kAnyMark)
                             ? "is sealed in a format of a newer muster; use that muster"
                             : "is no sealed file of muster");
  TRY(length, out.take(kLengthBytes));
  if (fromBigEndian(length) > kMaxHeaderBytes) return corrupt(file, kChanged);
  TRY(header, out.take(fromBigEndian(length)));
  out.header_digest_ = sha256(header);
  try {
    const auto read = jsonOrNone(header, kKeptJson);
    const auto& kdf = read.at("kdf");
    if (kdf.at("name") != "scrypt")
      return corrupt(file, "is sealed in a way of a newer muster; use that muster");
    out.n_ = kdf.at("n").get<std::uint64_t>();
    out.r_ = kdf.at("r").get<std::uint64_t>();
    out.p_ = kdf.at("p").get<std::uint64_t>();
    TRY(salt, fromBase64(kdf.at("salt").get<std::string>()));
    out.salt_ = std::move(salt);
    read.at("check").get_to(out.check_);
    read.at("about").get_to(out.about_);
  } catch (const nlohmann::json::exception&) {
    return corrupt(file, kChanged);
  }
  // Whoever made the file chose them: no memory or time is spent for less than a bound.
  if (out.n_ < 2 || out.n_ > kMaxN || out.r_ < 1 || out.r_ > kMaxR || out.p_ < 1 || out.p_ > kMaxP)
    return corrupt(file, kChanged);
  return out;
}

Result<void> SealedReader::unlock(const Secret& passphrase) {
  TRY(keys, derive(passphrase, salt_, n_, r_, p_));
  if (!equalConstantTime(keys.check, check_))
    return fail(ErrorCode::Denied,
                fmt::format("the passphrase is not the one that {} was made with", file_.string()));
  key_ = keys.piece;
  return {};
}

Result<void> SealedReader::unseal() {
  TRY(head, take(kLengthBytes));
  const auto length = fromBigEndian(head) & ~kLastPiece;
  const bool last = (fromBigEndian(head) & kLastPiece) != 0;
  if (length < kTagBytes || length > kSealedPieceBytes + kTagBytes) return corrupt(file_, kChanged);
  TRY(sealed, take(length));
  const auto size = length - kTagBytes;
  const auto nonce = nonceOf(pieces_++, last);
  std::string out(size, '\0');
  Handle<EVP_CIPHER_CTX> context(EVP_CIPHER_CTX_new());
  int n = 0, rest = 0;
  const bool ok = EVP_DecryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr,
                                     bytesOf(key_.reveal()), bytesOf(nonce)) == 1 &&
                  EVP_DecryptUpdate(context.get(), nullptr, &n, bytesOf(header_digest_),
                                    static_cast<int>(header_digest_.size())) == 1 &&
                  EVP_DecryptUpdate(context.get(), bytesOf(out), &n, bytesOf(sealed),
                                    static_cast<int>(size)) == 1 &&
                  EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_SET_TAG, kTagBytes,
                                      bytesOf(sealed) + size) == 1 &&
                  EVP_DecryptFinal_ex(context.get(), bytesOf(out) + n, &rest) == 1;
  if (!ok) return corrupt(file_, kChanged);
  plain_ = std::move(out);
  at_ = 0;
  ended_ = last;
  if (!last && plain_.empty()) return corrupt(file_, kChanged);
  return {};
}

Result<std::string> SealedReader::read(std::size_t bytes) {
  if (key_.empty()) return fail(ErrorCode::Internal, "a sealed file is read before it is unlocked");
  std::string out;
  while (out.size() < bytes) {
    if (at_ == plain_.size()) {
      if (ended_) return corrupt(file_, kCutOff);
      TRY_OK(unseal());
      continue;
    }
    const auto n = std::min(bytes - out.size(), plain_.size() - at_);
    out.append(plain_, at_, n);
    at_ += n;
  }
  return out;
}

Result<void> SealedReader::expectEnd() {
  while (!ended_ && at_ == plain_.size()) TRY_OK(unseal());
  char more = 0;
  if (at_ != plain_.size() || ::read(fd_.get(), &more, 1) != 0) return corrupt(file_, kChanged);
  return {};
}

}  // namespace muster::io
