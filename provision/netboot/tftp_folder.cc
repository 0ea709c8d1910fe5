// SPDX-License-Identifier: Apache-2.0
#include "provision/netboot/tftp_folder.h"

#include "base/io/crypto.h"
#include "base/io/files.h"
#include "base/log.h"
#include "provision/images/packed_image.h"
#include "provision/images/ramos.h"
#include "provision/netboot/dnsmasq_config.h"
#include "provision/netboot/grub_script.h"

#include <fmt/format.h>

#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <set>
#include <vector>

namespace muster::provision {

namespace {

namespace fs = std::filesystem;

struct Signed {
  const char* name;
  const char* original;
  const char* package;
};
constexpr const char* kIpxe[] = {kIpxeBios, kIpxeUefi};
constexpr Signed kSigned[] = {
    {kShim, "/usr/lib/shim/shimx64.efi.signed", "shim-signed"},
    {"grubx64.efi", "/usr/lib/grub/x86_64-efi-signed/grubnetx64.efi.signed",
     "grub-efi-amd64-signed"},  // the name that shim asks for
};
constexpr const char* kGrubArm64 = "grubaa64.efi";  // the name that shim asks for
constexpr std::size_t kSetNameDigits = 16;
constexpr const char* kGrubConfig = "grub/grub.cfg";

std::unexpected<Error> failOn(const fs::path& path, const std::error_code& error) {
  return fail(ErrorCode::Internal,
              fmt::format("cannot write {}: {}", path.string(), error.message()));
}

/// The link may be there, and right, already.
Result<void> link(const fs::path& target, const fs::path& name) {
  std::error_code error;
  if (fs::read_symlink(name, error) == target) return {};
  fs::remove_all(name, error);
  fs::create_symlink(target, name, error);
  if (error) return failOn(name, error);
  return {};
}

/// dnsmasq reads without root's rights. No secret is in it, but nobody else has to write there;
/// without root there is no other user.
Result<void> giveToDnsmasq(const fs::path& path, const std::string& reader) {
  if (!reader.empty()) {
    const auto* group = ::getgrnam(reader.c_str());
    if (!group)
      return fail(ErrorCode::NotFound,
                  fmt::format("this machine has no group {0}; as root: systemd-sysusers", reader));
    const ::mode_t mode = fs::is_directory(path) ? 0750 : 0640;
    if (::chown(path.c_str(), static_cast<uid_t>(-1), group->gr_gid) != 0 ||
        ::chmod(path.c_str(), mode) != 0)
      return failOn(path, std::error_code(errno, std::generic_category()));
    return {};
  }
  if (::geteuid() != 0) return {};
  const auto* user = ::getpwnam(kDnsmasqUser);
  if (!user)
    return fail(
        ErrorCode::NotFound,
        fmt::format("this machine has no user {}; install the package dnsmasq-base", kDnsmasqUser));
  if (::chown(path.c_str(), user->pw_uid, static_cast<gid_t>(-1)) != 0)
    return failOn(path, std::error_code(errno, std::generic_category()));
  return {};
}

}  // namespace

Result<void> TftpFolder::start() {
  std::error_code error;
  fs::remove_all(root_, error);
  if (error) return failOn(root_, error);
  TRY_OK(io::makeDirs(root_ / "grub"));
  for (const auto* name : kIpxe) TRY_OK(link(fs::path(kIpxeFolder) / name, root_ / name));
  return io::writeFileAtomic(root_ / kGrubConfig, lostGrubScript());
}

Result<void> TftpFolder::arm(const std::string& key, const std::string& grub_script,
                             const RamOs& ram_os, const PackedImage* live) {
  std::error_code error;
  std::vector<Original> originals{{"vmlinuz", ram_os.kernel},
                                  {"initrd.img", ram_os.initrd},
                                  {"agent.img", ram_os.agent_initrd}};
  const bool brings_loaders = !ram_os.shim.empty();
  if (brings_loaders) {
    originals.push_back({kShimArm64, ram_os.shim});
    originals.push_back({kGrubArm64, ram_os.grub});
  } else {
    for (const auto& file : kSigned)
      if (!fs::exists(file.original, error))
        return fail(ErrorCode::NotFound, fmt::format("{} is missing; install the package {}",
                                                     file.original, file.package));
  }
  std::string set;
  for (const auto& file : originals) {
    TRY(digest, digests_.sha256(file.from));
    set += digest;
  }
  const auto ramos =
      fmt::format("{}-{}", kRamOsFolder, io::sha256Hex(set).substr(0, kSetNameDigits));
  TRY_OK(copyTo(ramos, originals));
  if (live)
    TRY_OK(copyTo(liveFolder(live->digest),
                  {{"vmlinuz", live->kernel}, {"modules.img", live->modules}}));
  // Made whole under a name that nobody asks for: who asks in between gets the old answer, never a
  // part.
  const auto folder = root_ / key, fresh = root_ / (key + ".new");
  fs::remove_all(fresh, error);
  TRY_OK(io::makeDirs(fresh / "grub", 0700));
  if (brings_loaders) {
    for (const char* name : {kShimArm64, kGrubArm64})
      TRY_OK(link(fs::path("..") / ramos / name, fresh / name));
  } else {
    for (const auto& file : kSigned) TRY_OK(link(file.original, fresh / file.name));
  }
  TRY_OK(link(fs::path("..") / ramos, fresh / kRamOsFolder));
  TRY_OK(link(fs::path("..") / "images", fresh / "images"));
  TRY_OK(io::writeFileAtomic(fresh / kGrubConfig, grub_script, 0600));
  for (const auto& path : {fresh / kGrubConfig, fresh / "grub", fresh})
    TRY_OK(giveToDnsmasq(path, reader_));
  if (reader_.empty()) fs::permissions(fresh, fs::perms::owner_all, error);
  fs::remove_all(folder, error);
  fs::rename(fresh, folder, error);
  if (error) return failOn(folder, error);
  forgetUnused(ramos);
  return {};
}

/// Sets of RAM OSs before this one that no armed node loads.
void TftpFolder::forgetUnused(const std::string& folder_in_use) {
  std::error_code error;
  std::set<std::string> used{folder_in_use};
  std::vector<fs::path> sets;
  for (const auto& entry : fs::directory_iterator(root_, error)) {
    if (entry.path().filename().string().starts_with(std::string(kRamOsFolder) + "-"))
      sets.push_back(entry.path());
    else if (const auto to = fs::read_symlink(entry.path() / kRamOsFolder, error); !error)
      used.insert(to.filename());
  }
  for (const auto& set : sets)
    if (!used.contains(set.filename())) fs::remove_all(set, error);
  digests_.dropMissing();
}

void TftpFolder::disarm(const std::string& key) {
  std::error_code ignored;
  fs::remove_all(root_ / key, ignored);
}

Result<void> TftpFolder::copyTo(const std::string& name_of_folder,
                                const std::vector<Original>& files) {
  const auto folder = root_ / name_of_folder;
  TRY_OK(io::makeDirs(folder));
  for (const auto& [name, from] : files) {
    const auto to = folder / name, fresh = folder / (std::string(name) + ".new");
    TRY(wanted, digests_.sha256(from));
    const auto there = digests_.sha256(to);
    if (there && *there == wanted) continue;
    if (there)
      logWarning("netboot", "{} differs from {}: it is copied again", to.string(), from.string());
    std::error_code error;
    fs::copy_file(from, fresh, fs::copy_options::overwrite_existing, error);
    if (!error) fs::permissions(fresh, fs::perms(0644), error);
    if (error) return failOn(to, error);
    TRY(copied, io::sha256File(fresh));
    if (copied != wanted) {
      fs::remove(fresh, error);
      return fail(
          ErrorCode::Corrupt,
          fmt::format(
              "{} does not read as {} does, so no machine is started with it: is the disk or the "
              "memory of this machine failing, or is muster image build at work? Try again",
              fresh.string(), from.string()));
    }
    fs::rename(fresh, to, error);
    if (error) return failOn(to, error);
  }
  return {};
}

}  // namespace muster::provision
