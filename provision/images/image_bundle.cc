// SPDX-License-Identifier: Apache-2.0
#include "provision/images/image_bundle.h"

#include "base/io/files.h"
#include "base/io/trusted_keys.h"
#include "base/json_input.h"
#include "base/json_output.h"
#include "inventory/model/images.h"
#include "provision/images/archive.h"
#include "provision/images/image_cache.h"
#include "provision/images/image_entry.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace muster::provision {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr const char* kFormat = "muster-image/1";
constexpr const char* kManifestFile = "manifest.json";
constexpr const char* kIndexFile = "index.json";
constexpr std::size_t kMaxManifestBytes = 64u << 10;

json asJson(const BundleManifest& manifest) {
  return {{"format", kFormat},           {"key", manifest.key},
          {"name", manifest.name},       {"digest", manifest.digest},
          {"made_at", manifest.made_at}, {"signer_public_pem", manifest.signer_public_pem}};
}

Result<BundleManifest> parseManifest(const std::string& text) {
  json object = jsonOrNone(text, kArchiveJson);
  if (!object.is_object() || object.value("format", json()) != kFormat)
    return fail(ErrorCode::InvalidInput, fmt::format("it is no {} file", kFormat));
  for (const char* key : {"key", "name", "digest", "signer_public_pem", "signature"})
    if (!object.contains(key) || !object[key].is_string())
      return fail(ErrorCode::Corrupt, fmt::format("manifest: \"{}\" is missing", key));
  if (!object.contains("made_at") || !object["made_at"].is_number_integer())
    return fail(ErrorCode::Corrupt, "manifest: \"made_at\" is missing");
  const std::string signature = object["signature"];
  BundleManifest manifest{object["key"], object["name"], object["digest"], object["made_at"],
                          object["signer_public_pem"]};
  object.erase("signature");
  if (auto genuine = io::verify(manifest.signer_public_pem, jsonText(object), signature); !genuine)
    return fail(ErrorCode::Corrupt, "manifest: it was changed after it was signed");
  if (!isDigest(manifest.key) || !isDigest(manifest.digest))
    return fail(ErrorCode::Corrupt, "manifest: the key or the digest is malformed");
  return manifest;
}

Result<void> expectMember(ArchiveReader& reader, const char* name) {
  TRY(found, reader.next());
  if (reader.entry() == nullptr)
    return fail(ErrorCode::Corrupt, fmt::format("it ends before {}", name));
  if (found != name || !reader.isRegular())
    return fail(ErrorCode::Corrupt, fmt::format("it has {} where {} should be", found, name));
  return {};
}

Result<void> readPack(ArchiveReader& reader, const wire::PackIndex& index, const fs::path& file) {
  const io::Fd out(::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!out.valid())
    return fail(ErrorCode::Internal,
                fmt::format("cannot create {}: {}", file.string(), std::strerror(errno)));
  io::Sha256 whole;
  std::uint64_t bytes = 0;
  TRY_OK(reader.read([&](std::string_view piece) -> Result<void> {
    bytes += piece.size();
    if (bytes > index.pack_bytes)
      return fail(
          ErrorCode::Corrupt,
          fmt::format("the pack has more than the {} bytes of its index", index.pack_bytes));
    whole.update(piece.data(), piece.size());
    if (::write(out.get(), piece.data(), piece.size()) != static_cast<ssize_t>(piece.size()))
      return fail(ErrorCode::Unavailable,
                  fmt::format("cannot write {}: {}", file.string(), std::strerror(errno)));
    return {};
  }));
  if (bytes != index.pack_bytes)
    return fail(ErrorCode::Corrupt,
                fmt::format("the pack has {} bytes instead of {}: the file was cut short", bytes,
                            index.pack_bytes));
  if (whole.finishHex() != index.pack_sha256)
    return fail(ErrorCode::Corrupt,
                "the pack does not have the SHA-256 of its signed index: the file was changed");
  if (::fsync(out.get()) != 0)
    return fail(ErrorCode::Unavailable,
                fmt::format("cannot store {}: {}", file.string(), std::strerror(errno)));
  return {};
}

Result<void> refuseOlder(const BundleManifest& manifest, const fs::path& cache) {
  for (const fs::path& entry : listEntries(cache)) {
    const auto here = contentOf(entry);
    if (!here || here->name != manifest.name || wire::digestOf(*here) == manifest.digest ||
        madeAt(entry) <= manifest.made_at)
      continue;
    return fail(
        ErrorCode::Conflict,
        fmt::format(
            "image {}@{} is older than {}@{} that is here already; `--older` imports it anyway",
            manifest.name, manifest.digest.substr(0, 12), here->name,
            wire::digestOf(*here).substr(0, 12)));
  }
  return {};
}

}  // namespace

bool isBundle(const fs::path& file) {
  auto reader = ArchiveReader::open(file, ArchiveReader::Kind::Tar);
  if (!reader) return false;
  const auto name = reader->next();
  if (!name || *name != kManifestFile || !reader->isRegular()) return false;
  const auto text = reader->readAll(kMaxManifestBytes);
  const json object = text ? jsonOrNone(*text, kArchiveJson) : json();
  return object.is_object() && object.value("format", json()) == kFormat;
}

Result<BundleManifest> exportBundle(const fs::path& entry, const io::SigningKey& key,
                                    const fs::path& file) {
  std::error_code error;
  if (fs::exists(fs::symlink_status(file, error)))  // a link to nowhere would be replaced
    return fail(ErrorCode::Conflict, fmt::format("{} exists already", file.string()));
  TRY_OK(checkPack(entry));
  TRY(image, openEntry(entry, key));
  const BundleManifest manifest{entry.filename(), image.name, image.digest, madeAt(entry),
                                io::publicPems(key.public_pem).front()};
  json object = asJson(manifest);
  TRY(signature, io::sign(key, jsonText(object)));
  object["signature"] = signature;
  fs::path beside = file, head = file;
  beside += ".partial";
  head += ".manifest";
  TRY_OK(io::writeFileAtomic(head, jsonText(object)));
  auto written =
      writeTar(beside, {{kManifestFile, head}, {kIndexFile, image.index}, {kPackFile, image.pack}});
  fs::remove(head, error);
  if (!written) {
    fs::remove(beside, error);
    return fail(std::move(written).error());
  }
  fs::rename(beside, file, error);
  if (error)
    return fail(ErrorCode::Internal,
                fmt::format("cannot put {} in its place: {}", file.string(), error.message()));
  return manifest;
}

Result<BundleManifest> readBundle(const fs::path& file, const std::vector<std::string>& trusted,
                                  const fs::path& folder) {
  TRY(reader, ArchiveReader::open(file, ArchiveReader::Kind::Tar));
  TRY_OK(expectMember(reader, kManifestFile));
  TRY(text, reader.readAll(kMaxManifestBytes));
  TRY(manifest, parseManifest(text));
  if (io::publicPems(manifest.signer_public_pem).front() != manifest.signer_public_pem)
    return fail(ErrorCode::Corrupt, "the bundle names more than one key as its signer");
  const std::string signer = signerId(manifest.signer_public_pem);
  if (!trusted.empty() &&
      std::find(trusted.begin(), trusted.end(), manifest.signer_public_pem) == trusted.end())
    return fail(ErrorCode::Denied,
                fmt::format("it is signed by {}, which this site does not trust; if that key is "
                            "right, name its file with --trust",
                            signer));
  TRY_OK(expectMember(reader, kIndexFile));
  TRY(signed_index, reader.readAll(wire::kMaxIndexBytes));
  TRY(index, wire::openIndex(signed_index, manifest.digest, manifest.signer_public_pem));
  if (index.name != manifest.name)
    return fail(ErrorCode::Corrupt, "manifest and index name different images");
  TRY_OK(expectMember(reader, kPackFile));
  TRY_OK(readPack(reader, index, folder / kPackFile));
  TRY(more, reader.next());
  if (reader.entry() != nullptr)
    return fail(ErrorCode::Corrupt, fmt::format("it holds {} besides", more));
  TRY_OK(io::writeFileAtomic(signerKeyOf(folder, signer), manifest.signer_public_pem));
  TRY_OK(io::writeFileAtomic(signedIndexOf(folder, signer), signed_index));
  TRY_OK(io::writeFileAtomic(folder / kContentFile, canonicalJson(index)));
  setMadeAt(folder, manifest.made_at);
  return manifest;
}

Result<void> takeBundle(const inventory::ImageImport& import, const fs::path& folder) {
  TRY(sha256, io::sha256File(import.path));
  if (sha256 != import.sha256)
    return fail(ErrorCode::Corrupt, fmt::format("{} has the SHA-256 {}, the inventory says {}",
                                                import.path.string(), sha256, import.sha256));
  auto read = readBundle(import.path, {}, folder);
  if (!read) return fail(std::move(read).error().within(import.path.string()));
  return {};
}

Result<Imported> importBundle(const fs::path& file, const BundleImport& options,
                              const io::SigningKey& key) {
  std::vector<std::string> trusted;
  for (const auto& text : options.trusted)
    for (auto& pem : io::publicPems(text)) trusted.push_back(std::move(pem));
  for (auto& pem : io::publicPems(key.public_pem)) trusted.push_back(std::move(pem));
  // Where it belongs is only known from inside; it is unpacked under a name of its own and then
  // moved.
  const fs::path incoming = options.cache / "images" / "incoming";
  auto lock = BuildLock::take(options.cache / "images" / "incoming.lock", [] {});
  if (!lock) return fail(std::move(lock).error());
  BundleManifest manifest;
  auto read = publish(incoming, [&](const fs::path& folder) -> Result<void> {
    auto unpacked = readBundle(file, trusted, folder);
    if (!unpacked) return fail(std::move(unpacked).error().within(file.string()));
    manifest = std::move(*unpacked);
    return options.older ? Result<void>() : refuseOlder(manifest, options.cache);
  });
  if (!read) return fail(std::move(read).error());
  const fs::path entry = options.cache / "images" / manifest.key;
  auto entry_lock = BuildLock::take(entry.string() + ".lock", [] {});
  if (!entry_lock) return fail(std::move(entry_lock).error());
  Imported imported;
  imported.signer = signerId(manifest.signer_public_pem);
  const auto here = contentOf(entry);
  imported.was_here = here && wire::digestOf(*here) == manifest.digest && checkPack(entry);
  if (imported.was_here) {
    TRY_OK(removeTree(incoming));
  } else {
    TRY_OK(removeTree(entry));
    std::error_code error;
    fs::rename(incoming, entry, error);
    if (error)
      return fail(ErrorCode::Internal,
                  fmt::format("cannot put {} in its place: {}", entry.string(), error.message()));
  }
  TRY(image, openEntry(entry, key));
  imported.image = std::move(image);
  return imported;
}

}  // namespace muster::provision
