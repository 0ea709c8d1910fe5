// SPDX-License-Identifier: Apache-2.0
#include "signer/adoption.h"

#include "base/io/crypto.h"
#include "base/io/files.h"
#include "base/io/regular_file.h"
#include "signer/key_files.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>

namespace muster::signer {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxKeyBytes = 1u << 16;
constexpr mode_t kOfOthers = 0077;
constexpr int kMostAside = 1000;  ///< keys of before with one name

struct Moved {
  const char* file;
  bool is_private;
};
/// The private halves last: while the first of them is in the state folder, this is to be done.
constexpr std::array kMoved{Moved{"ca/ca.crt", false}, Moved{"keys/signing.previous.pub", false},
                            Moved{"ca/ca.key", true}, Moved{"keys/signing.pem", true}};

/// For as long as it lives this process works as another user, and is root again then.
class WorksAs {
 public:
  static Result<WorksAs> user(const std::optional<UserIds>& ids) {
    if (ids && (::setegid(ids->gid) != 0 || ::seteuid(ids->uid) != 0)) {
      const auto why = std::string(std::strerror(errno));
      (void)!::setegid(0);
      return fail(ErrorCode::Denied, fmt::format("cannot work as user {}: {}", ids->uid, why));
    }
    return WorksAs(ids.has_value());
  }
  WorksAs(WorksAs&& other) noexcept : changed_(std::exchange(other.changed_, false)) {}
  ~WorksAs() {
    if (changed_ && (::seteuid(0) != 0 || ::setegid(0) != 0)) std::abort();
  }

 private:
  explicit WorksAs(bool changed) : changed_(changed) {}
  bool changed_;
};

using Files = std::map<std::string, Secret>;

/// What is not there is not in the answer. `open`: gets a line for each private key that others can
/// read. Errors: Corrupt (a link, a device)
Result<Files> readAll(const fs::path& folder, std::vector<std::string>* open = nullptr) {
  Files out;
  for (const auto& [file, is_private] : kMoved) {
    const auto path = folder / file;
    struct stat status{};
    if (::lstat(path.c_str(), &status) != 0) {
      if (errno == ENOENT) continue;
      return fail(ErrorCode::Denied,
                  fmt::format("{} cannot be read: {}", path.string(), std::strerror(errno)));
    }
    if (!S_ISREG(status.st_mode) || status.st_nlink != 1)
      return fail(
          ErrorCode::Corrupt,
          fmt::format("{} is a link, or no regular file: nothing was moved", path.string()));
    if (open && is_private && (status.st_mode & kOfOthers) != 0)
      open->push_back(
          fmt::format("{} had mode {:04o}: if another user may have read it, see \"When "
                      "a key was stolen\" in docs/keys.md",
                      path.string(), status.st_mode & 07777u));
    TRY(text, io::readRegularFile(path, kMaxKeyBytes));
    out.emplace(file, Secret(std::move(text)));
  }
  return out;
}

/// A file that is no key is somebody's mistake, and stays where it is.
Result<void> requireKeys(const fs::path& state, const Files& files) {
  for (const auto& [file, text] : files)
    if (text.reveal().find("-----BEGIN ") == std::string::npos)
      return fail(ErrorCode::Corrupt,
                  fmt::format("{} is no key: nothing was moved", (state / file).string()));
  return {};
}

Result<void> makeFolder(const AdoptionRequest& request) {
  if (::mkdir(request.folder.c_str(), 0700) == 0) {
    if (request.signer &&
        ::lchown(request.folder.c_str(), request.signer->uid, request.signer->gid) != 0)
      return fail(ErrorCode::Denied, fmt::format("cannot give {} to the signer: {}",
                                                 request.folder.string(), std::strerror(errno)));
    return {};
  }
  if (errno == EEXIST) return {};
  return fail(ErrorCode::Unavailable,
              fmt::format("cannot make {}: {}", request.folder.string(), std::strerror(errno)));
}

/// The files that the signer has otherwise than the state folder.
std::vector<std::string> differing(const Files& taken, const Files& own) {
  std::vector<std::string> out;
  for (const auto& [file, text] : taken)
    if (const auto had = own.find(file); had != own.end() && !(had->second == text))
      out.push_back(file);
  return out;
}

Result<void> requireSame(const AdoptionRequest& request, const Files& taken, const Files& own) {
  const auto others = differing(taken, own);
  if (others.empty()) return {};
  return fail(
      ErrorCode::Conflict,
      fmt::format("{} and {} are different keys, and nothing was moved. The signer's are those "
                  "of the site; if instead the state folder was restored from a backup: "
                  "muster-signer adopt {} --replace. If not, somebody has put that file there: "
                  "move it away",
                  (request.state / others.front()).string(),
                  (request.folder / others.front()).string(), request.state.string()));
}

Result<void> moveAside(const AdoptionRequest& request, const std::vector<std::string>& files,
                       std::vector<std::string>& said) {
  for (const auto& file : files) {
    const auto path = request.folder / file;
    const auto name = fmt::format("{}.before-{}", path.string(), std::time(nullptr));
    auto aside = name;
    const auto is_moved = [&path, &aside] {
      return ::renameat2(AT_FDCWD, path.c_str(), AT_FDCWD, aside.c_str(), RENAME_NOREPLACE) == 0;
    };
    int again = 1;
    bool moved = is_moved();
    // Of one second: each key of before stays.
    for (; !moved && errno == EEXIST && again < kMostAside; moved = is_moved())
      aside = fmt::format("{}-{}", name, ++again);
    if (!moved)
      return fail(ErrorCode::Unavailable,
                  fmt::format("cannot move {} aside: {}", path.string(), std::strerror(errno)));
    said.push_back(fmt::format("the signer's {} of before is {} now", file, aside));
  }
  return {};
}

/// Whether the signer could work with its own keys and these, tried in a folder beside them: what
/// is refused must not be found there the next time. Errors: as loadAuthority, loadSigningKey
Result<void> tryKeys(const AdoptionRequest& request, const Files& taken, const Files& own) {
  const auto trial = request.folder / ".adopting";
  std::error_code error;
  fs::remove_all(trial, error);
  auto files = taken;
  for (const auto& [file, text] : own) files.emplace(file, text);
  const auto tried = [&]() -> Result<void> {
    for (const auto& [file, text] : files) {
      TRY_OK(io::makeDirs((trial / file).parent_path(), 0700));
      TRY_OK(io::writeFileAtomic(trial / file, text.reveal(), 0600));
    }
    TRY_OK(loadAuthority(trial));
    TRY_OK(loadSigningKey(trial, kCertificatesKey));
    return {};
  }();
  fs::remove_all(trial, error);
  if (tried) return {};
  auto text = tried.error().text();
  for (auto at = text.find(trial.string()); at != std::string::npos; at = text.find(trial.string()))
    text.replace(at, trial.string().size(), request.state.string());
  return fail(tried.error().code(), text + "; nothing was moved");
}

/// nullopt: nobody has keys yet; the signer makes them when the site first needs them.
/// `known`: the root of a state folder whose keys the signer had before.
Result<std::optional<PublicHalves>> install(const AdoptionRequest& request, const Files& taken,
                                            const std::string& known,
                                            std::vector<std::string>& said) {
  TRY_OK(makeFolder(request));
  TRY(as, WorksAs::user(request.signer));
  (void)as;
  TRY(own, readAll(request.folder));
  const bool has_private = own.contains("ca/ca.key") && own.contains("keys/signing.pem");
  if (taken.empty() && !has_private && !known.empty())
    return fail(ErrorCode::Conflict,
                fmt::format("the signer had the keys of {}, and {} has them no more: restore them "
                            "from a backup, or from the site's other host",
                            request.state.string(), request.folder.string()));
  if (taken.empty() && own.empty()) return std::optional<PublicHalves>();
  if (const auto root = own.find("ca/ca.crt"); !request.replace && taken.empty() &&
                                               !known.empty() && root != own.end() &&
                                               root->second.reveal() != known)
    return fail(
        ErrorCode::Conflict,
        fmt::format("the CA in {} is another one than nodes of {} trust, and nothing was "
                    "changed. If it is the site's: muster-signer adopt {} --replace",
                    request.folder.string(), request.state.string(), request.state.string()));
  if (!request.replace) TRY_OK(requireSame(request, taken, own));
  if (!taken.empty()) TRY_OK(tryKeys(request, taken, own));
  TRY_OK(moveAside(request, differing(taken, own), said));
  for (const auto& [file, text] : taken) {
    if (const auto had = own.find(file); had != own.end() && had->second == text) continue;
    const auto path = request.folder / file;
    TRY_OK(io::makeDirs(path.parent_path(), 0700));
    TRY_OK(io::writeFileAtomic(path, text.reveal(), 0600));
  }
  TRY(ca, loadAuthority(request.folder));
  TRY(certificates, loadSigningKey(request.folder, kCertificatesKey));
  return std::optional(PublicHalves{certificates.public_pem, ca.certificatePem()});
}

}  // namespace

std::optional<UserIds> userOf(const char* name) {
  const auto* entry = ::getpwnam(name);
  if (!entry) return std::nullopt;
  return UserIds{entry->pw_uid, entry->pw_gid};
}

Result<std::vector<std::string>> adoptKeys(const AdoptionRequest& request) {
  std::vector<std::string> said;
  Files taken;
  std::string known;
  {
    TRY(as, WorksAs::user(request.service));
    (void)as;
    TRY(noted, signerOf(request.state));
    TRY(found, readAll(request.state, &said));
    if (!noted && found.contains("ca/ca.crt") && !found.contains("ca/ca.key"))
      return fail(ErrorCode::Corrupt,
                  fmt::format("{0}/ca.crt is there but {0}/ca.key is missing; restore it",
                              (request.state / "ca").string()));
    const bool has_private = found.contains("ca/ca.key") || found.contains("keys/signing.pem");
    if (has_private) taken = found;
    // Of a folder whose keys are the signer's already the public halves are copies.
    if (const auto root = found.find("ca/ca.crt"); noted && root != found.end())
      known = root->second.reveal();
    if (noted) taken.erase("ca/ca.crt");
    TRY_OK(requireKeys(request.state, taken));
    if (!noted) {
      TRY_OK(requireNotLost(request.state, kCa, request.state / "ca" / "ca.key"));
      TRY_OK(requireNotLost(request.state, kCa, request.state / "ca" / "ca.crt"));
      TRY_OK(requireNotLost(request.state, kCertificatesKey.name,
                            keyFileOf(request.state, kCertificatesKey)));
    }
  }
  TRY(halves, install(request, taken, known, said));
  TRY(as, WorksAs::user(request.service));
  (void)as;
  if (halves) TRY_OK(writePublicHalves(request.state, *halves));
  TRY_OK(noteSigner(request.state, request.socket));
  TRY(now, readAll(request.state));
  for (const auto& [file, is_private] : kMoved) {
    if (!taken.contains(file) || std::string_view(file) == "ca/ca.crt") continue;
    if (now.contains(file) && !(now.at(file) == taken.at(file)))
      return fail(ErrorCode::Conflict,
                  fmt::format("{} was changed while it became the signer's (by `muster key "
                              "rotate`?): it stays; what the signer has is the one before",
                              (request.state / file).string()));
    std::error_code failed;
    fs::remove(request.state / file, failed);
    if (failed)
      return fail(ErrorCode::Unavailable,
                  fmt::format("{} is the signer's now, and cannot be removed here: {}",
                              (request.state / file).string(), failed.message()));
    if (is_private)
      said.push_back(fmt::format("{} is the signer's now, in {}", file, request.folder.string()));
  }
  return said;
}

Result<std::map<std::string, Secret>> readSignerKeys(const fs::path& folder) {
  return readAll(folder);
}

}  // namespace muster::signer
