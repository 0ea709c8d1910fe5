// SPDX-License-Identifier: Apache-2.0
#include "validate/certificate_migration.h"

#include "base/io/files.h"
#include "base/io/trusted_keys.h"
#include "base/log.h"
#include "lifecycle/model/certificate_keys.h"
#include "validate/revocations.h"
#include "validate/validate.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>

namespace muster::validate {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSiteKey = "certificates.key";
constexpr std::size_t kMaxCertificateBytes = 1u << 20;
constexpr std::size_t kNamedFiles = 5;
constexpr std::chrono::hours kWritten{
    1};  ///< between a file's last write and its place in the folder
constexpr int kMaxTries = 16;
constexpr std::size_t kAtOnce = 200;  ///< certificates in one commit

/// One value a folder and host: when the folder was changed last before it was taken over.
std::string markOf(const fs::path& folder) {
  char host[256] = {};
  (void)::gethostname(host, sizeof host - 1);
  std::error_code ignored;
  return "certificates.folder." +
         io::sha256Hex(fmt::format("{}:{}", host, fs::weakly_canonical(folder, ignored).string()))
             .substr(0, 16);
}

/// Since 1970; a file's own clock counts from another year.
long long stampOf(fs::file_time_type time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             fs::file_time_type::clock::to_sys(time).time_since_epoch())
      .count();
}

struct Found {
  std::vector<Certificate> certificates;
  std::vector<std::string> damaged;  ///< file and why
};

/// A file that is damaged is a loss only where the store has nothing of that node.
Result<void> readOne(lifecycle::Store& store, const signer::CertificateKey& key,
                     const fs::path& file, Found& found) {
  const auto text = io::readFile(file, kMaxCertificateBytes);
  auto certificate = text ? Certificate::fromJson(*text) : Result<Certificate>(fail(text.error()));
  std::string damage;
  if (!certificate)
    damage = certificate.error().text();
  else if (certificate->node.str() != file.stem().string())
    damage = "it is the certificate of " + certificate->node.str();
  else if (const auto pem = io::trustedPemOf(key.public_pem, certificate->key_id)) {
    if (certificate->isSignedBy(*pem))
      found.certificates.push_back(std::move(*certificate));
    else
      damage = "it was changed after it was signed";
  } else
    logWarning("validate", "{}: signed by key {}, which is not this site's: left as it is",
               file.string(), certificate->key_id);
  if (damage.empty()) return {};
  TRY(stored, store.getValue(lifecycle::certificateKey(NodeName(file.stem().string()))));
  if (stored)
    logWarning("validate", "{}: {}; the store's counts, `muster cert export` writes the file again",
               file.string(), damage);
  else
    found.damaged.push_back(fmt::format("{}: {}", file.string(), damage));
  return {};
}

/// The newer one stays, whoever comes first.
Result<void> put(lifecycle::Store& store, const Certificate& certificate) {
  const auto key = lifecycle::certificateKey(certificate.node);
  for (int tries = 0; tries < kMaxTries; ++tries) {
    TRY(stored, store.getValue(key));
    if (stored)
      if (const auto known = Certificate::fromJson(*stored);
          known && known->issued_at >= certificate.issued_at)
        return {};
    TRY(done, store.exchangeValue(key, stored, certificate.toJson()));
    if (done) return {};
  }
  return fail(ErrorCode::Unavailable, "the certificate of " + certificate.node.str() +
                                          " is being changed by other processes; try again");
}

/// Many in one commit: ten thousand commits of their own would hold up the start for a minute.
Result<void> putAll(lifecycle::Store& store, const std::vector<Certificate>& certificates) {
  Result<void> all;
  for (std::size_t first = 0; first < certificates.size() && all; first += kAtOnce) {
    std::vector<std::function<bool()>> works;
    for (auto i = first; i < std::min(first + kAtOnce, certificates.size()); ++i)
      works.emplace_back([&store, &all, &certificate = certificates[i]] {
        auto done = put(store, certificate);
        if (!done) all = std::move(done);
        return all.has_value();
      });
    store.together(works);
  }
  return all;
}

Result<Found> readFolder(lifecycle::Store& store, const signer::CertificateKey& key,
                         const fs::path& folder, std::optional<long long> taken) {
  Found found;
  std::error_code failed;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder, failed)) {
    std::error_code unknown;
    if (entry.path().extension() != ".json" || !entry.is_regular_file(unknown)) continue;
    const auto written = entry.last_write_time(unknown);
    if (!unknown && taken && stampOf(written) < *taken - std::chrono::nanoseconds(kWritten).count())
      continue;
    files.push_back(entry.path());
  }
  if (failed)
    return fail(ErrorCode::Unavailable,
                fmt::format("{} cannot be read: {}", folder.string(), failed.message()));
  std::sort(files.begin(), files.end());
  for (const auto& file : files) TRY_OK(readOne(store, key, file, found));
  return found;
}

Result<std::optional<long long>> takenAt(lifecycle::Store& store, const fs::path& folder) {
  TRY(mark, store.getValue(markOf(folder)));
  if (!mark) return std::optional<long long>();
  long long stamp = 0;
  std::from_chars(mark->data(), mark->data() + mark->size(), stamp);
  return std::optional(stamp);
}

Error otherKey(const std::string& stored, const signer::CertificateKey& key) {
  return Error(
      ErrorCode::Conflict,
      fmt::format("the certificates of this store are signed by key {}, and this host's is {}: "
                  "hosts of one store need the same `keys` and `ca` in their state folders. "
                  "Copy both from the other host, or from a backup (docs/certificates.md)",
                  stored, key.id()));
}

}  // namespace

Result<void> requireSiteKey(lifecycle::Store& store, const signer::CertificateKey& key) {
  TRY(stored, store.getValue(kSiteKey));
  if (stored && !io::trustedPemOf(key.public_pem, *stored)) return fail(otherKey(*stored, key));
  return {};
}

Result<void> bindSiteKey(lifecycle::Store& store, const signer::CertificateKey& key) {
  TRY(stored, store.getValue(kSiteKey));
  const bool rotated = stored && *stored != key.id() && io::trustedPemOf(key.public_pem, *stored);
  if (!stored || rotated) TRY_OK(store.exchangeValue(kSiteKey, stored, key.id()));
  return requireSiteKey(store, key);
}

Result<bool> wasMigrated(lifecycle::Store& store, const fs::path& folder) {
  TRY(taken, takenAt(store, folder));
  return taken.has_value();
}

Result<void> migrateCertificates(lifecycle::Store& store, const signer::CertificateKey& key,
                                 const fs::path& folder) {
  TRY_OK(requireSiteKey(store, key));
  std::error_code none;
  const auto changed = fs::last_write_time(
      folder, none);  // before it is read: what comes later is for the next time
  TRY(taken, takenAt(store, folder));
  if (none)
    return taken ? Result<void>()
                 : store.putValue(markOf(folder), "0");  // what will be there are copies
  if (taken && *taken == stampOf(changed)) return {};
  TRY(found, readFolder(store, key, folder, taken));
  if (const auto count = found.damaged.size(); count > 0) {
    found.damaged.resize(std::min(count, kNamedFiles));
    return fail(ErrorCode::Corrupt,
                fmt::format("certificates have to be taken into the store, and {} of the files {} "
                            "damaged: {}. Nothing was taken. Restore them from a backup, or move "
                            "them away: those nodes are validated again",
                            count, count == 1 ? "is" : "are", fmt::join(found.damaged, "; ")));
  }
  Revocations revocations(store, folder, key);
  TRY_OK(revocations.migrateFile());  // first: no certificate counts before what revokes it
  if (!found.certificates.empty()) TRY_OK(bindSiteKey(store, key));
  TRY_OK(putAll(store, found.certificates));
  if (!taken)
    logInfo("validate", "{}: {} certificates are in the store now; what stays there are copies",
            folder.string(), found.certificates.size());
  return store.putValue(markOf(folder), std::to_string(stampOf(changed)));
}

}  // namespace muster::validate
