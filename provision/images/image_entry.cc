// SPDX-License-Identifier: Apache-2.0
#include "provision/images/image_entry.h"

#include "base/io/files.h"
#include "base/json_input.h"
#include "base/json_output.h"
#include "provision/images/image_store.h"
#include "provision/images/live_image.h"
#include "provision/images/pack_reader.h"
#include "provision/images/packed_image.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace muster::provision {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr std::size_t kMaxKeyBytes = 4096;
constexpr std::string_view kIndexPrefix = "index-", kIndexSuffix = ".json";

std::optional<std::string> signerOf(const std::string& file) {
  if (!file.starts_with(kIndexPrefix) || !file.ends_with(kIndexSuffix)) return std::nullopt;
  return file.substr(kIndexPrefix.size(), file.size() - kIndexPrefix.size() - kIndexSuffix.size());
}

std::optional<std::string> faultOfSignature(const fs::path& entry, const std::string& signer,
                                            const std::string& digest, const io::SigningKey& key) {
  std::string public_pem = key.public_pem;
  if (signer != key.id()) {
    const auto known = io::readFile(signerKeyOf(entry, signer), kMaxKeyBytes);
    if (!known || signerId(*known) != signer)
      return std::nullopt;  // another state of this machine shares the cache; its key is not ours
                            // to have
    public_pem = *known;
  }
  const auto text = io::readFile(signedIndexOf(entry, signer), wire::kMaxIndexBytes);
  if (!text) return text.error().str();
  if (const auto index = wire::openIndex(*text, digest, public_pem); !index)
    return fmt::format("signature of {}: {}", signer, index.error().text());
  return std::nullopt;
}

}  // namespace

bool isDigest(std::string_view text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

fs::path signedIndexOf(const fs::path& entry, const std::string& signer_id) {
  return entry / fmt::format("index-{}.json", signer_id);
}
fs::path signerKeyOf(const fs::path& entry, const std::string& signer_id) {
  return entry / fmt::format("signer-{}.pem", signer_id);
}

std::string signerId(const std::string& public_pem) {
  io::SigningKey key;
  key.public_pem = public_pem;
  return key.id();
}

Result<PackedImage> openEntry(const fs::path& entry, const io::SigningKey& key) {
  TRY(canonical, io::readFile(entry / kContentFile, wire::kMaxIndexBytes));
  const std::string digest = io::sha256Hex(canonical);
  const fs::path signed_index = signedIndexOf(entry, key.id());
  std::error_code error;
  if (!fs::exists(signed_index, error)) {
    TRY(signature, io::sign(key, canonical));
    json object = jsonOrNone(canonical, kIndexJson);
    if (!object.is_object()) return fail(ErrorCode::Corrupt, "content.json is damaged");
    object["signature"] = signature;
    TRY_OK(io::writeFileAtomic(signed_index, jsonText(object)));
  }
  TRY(text, io::readFile(signed_index, wire::kMaxIndexBytes));
  TRY(index, wire::openIndex(text, digest, key.public_pem));
  const fs::path pack = entry / kPackFile;
  const auto bytes = fs::file_size(pack, error);
  if (error || bytes != index.pack_bytes)
    return fail(ErrorCode::Corrupt, fmt::format("the pack has {} bytes instead of {}",
                                                error ? 0 : bytes, index.pack_bytes));
  PackedImage image{index.name, digest, pack, signed_index, index.size_bytes};
  image.live = index.kind == wire::PackKind::Live;
  if (const fs::path boot = liveBootOf(entry); image.live && fs::exists(boot, error)) {
    image.kernel = boot / kLiveKernel;
    image.modules = boot / kLiveModules;
  }
  return image;
}

Result<wire::PackIndex> contentOf(const fs::path& entry) {
  TRY(text, io::readFile(entry / kContentFile, wire::kMaxIndexBytes));
  return wire::readIndex(text);
}

// content.json carries the time the image was made, so that it can be compared elsewhere.
std::int64_t madeAt(const fs::path& entry) {
  struct stat info{};
  return ::stat((entry / kContentFile).c_str(), &info) == 0 ? info.st_mtim.tv_sec : 0;
}
void setMadeAt(const fs::path& entry, std::int64_t seconds) {
  const timespec times[2] = {{.tv_sec = seconds, .tv_nsec = 0}, {.tv_sec = seconds, .tv_nsec = 0}};
  ::utimensat(AT_FDCWD, (entry / kContentFile).c_str(), times, 0);
}

Result<void> checkPack(const fs::path& entry) {
  TRY(index, contentOf(entry));
  TRY(sha256, io::sha256File(entry / kPackFile));
  if (index.pack_sha256 != sha256)
    return fail(ErrorCode::Corrupt, "the pack does not have the SHA-256 that its index says");
  return {};
}

Result<PackedImage> signAgain(const fs::path& entry, const io::SigningKey& key) {
  TRY_OK(checkPack(entry));
  std::error_code error;
  fs::remove(signedIndexOf(entry, key.id()), error);
  if (error)
    return fail(ErrorCode::Internal, fmt::format("cannot replace the signature in {}: {}",
                                                 entry.string(), error.message()));
  return openEntry(entry, key);
}

std::vector<std::string> faultsOf(const fs::path& entry, const io::SigningKey& key,
                                  unsigned threads) {
  std::vector<std::string> faults;
  const auto canonical = io::readFile(entry / kContentFile, wire::kMaxIndexBytes);
  if (!canonical) return {canonical.error().str()};
  const auto index = wire::readIndex(*canonical);
  if (!index) return {index.error().str()};
  const std::string digest = io::sha256Hex(*canonical);
  std::error_code error;
  bool is_signed = false;
  for (const auto& file : fs::directory_iterator(entry, error))
    if (const auto signer = signerOf(file.path().filename())) {
      is_signed = true;
      if (auto fault = faultOfSignature(entry, *signer, digest, key))
        faults.push_back(std::move(*fault));
    }
  if (!is_signed) faults.push_back("nobody has signed it: build or import it again");
  auto of_pack = wrongChunks(*index, entry / kPackFile, threads);
  faults.insert(faults.end(), of_pack.begin(), of_pack.end());
  return faults;
}

std::vector<fs::path> listEntries(const fs::path& cache) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(cache / "images", error))
    if (isDigest(entry.path().filename().string()) &&
        fs::exists(entry.path() / kContentFile, error))
      entries.push_back(entry.path());
  std::sort(entries.begin(), entries.end());
  return entries;
}

}  // namespace muster::provision
