// SPDX-License-Identifier: Apache-2.0
#include "agent/imaging/root_system.h"

#include "agent/imaging/mount.h"
#include "agent/imaging/target_files.h"
#include "base/io/files.h"
#include "base/io/process.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace muster::agent {

namespace fs = std::filesystem;

namespace {

constexpr std::chrono::minutes kToolLimit{2}, kInitrdLimit{20};
constexpr const char* kSealing = "/run/muster/sealing";

Result<void> tool(std::string program, std::vector<std::string> args, std::string stdin_text = {},
                  std::chrono::seconds limit = kToolLimit) {
  io::Command command{.program = std::move(program), .args = std::move(args)};
  command.stdin_text = std::move(stdin_text);
  command.timeout = limit;
  TRY_OK(io::runChecked(command));
  return {};
}

/// The key as an object of this TPM that is loaded only while PCR 7 is what it is now; nobody else
/// can do anything with it.
Result<void> seal(const std::string& key, const fs::path& keys) {
  std::error_code ignored;
  fs::remove_all(kSealing, ignored);
  TRY_OK(io::makeDirs(kSealing, 0700));
  const auto file = [](const char* name) { return fmt::format("{}/{}", kSealing, name); };
  const auto work = [&]() -> Result<void> {
    TRY_OK(tool("tpm2_startauthsession", {"-Q", "-S", file("session")}));
    TRY_OK(tool("tpm2_policypcr",
                {"-Q", "-S", file("session"), "-l", "sha256:7", "-L", file("policy")}));
    TRY_OK(tool("tpm2_flushcontext", {file("session")}));
    TRY_OK(tool("tpm2_createprimary", {"-Q", "-C", "o", "-c", file("primary")}));
    return tool("tpm2_create",
                {"-Q", "-C", file("primary"), "-i", "-", "-u", (keys / "root.tpm.pub").string(),
                 "-r", (keys / "root.tpm.priv").string(), "-L", file("policy"), "-a",
                 "fixedtpm|fixedparent|noda"},
                key);
  };
  auto sealed = work();
  fs::remove_all(kSealing, ignored);
  if (!sealed)
    return fail(Error(ErrorCode::Unavailable, sealed.error().text())
                    .within("sealing the key of the root to the TPM"));
  return {};
}

Result<void> configureKey(const fs::path& root, const RootPlan& plan, const std::string& key) {
  if (plan.key == wire::RootKey::None) return {};
  TRY_OK(needPackage(has(root, {"usr/share/initramfs-tools/hooks/cryptroot"}),
                     "cryptsetup-initramfs", "encrypted roots"));
  TRY_OK(putLines(root, "etc/crypttab", plan.crypttab));
  TRY_OK(put(root, "etc/initramfs-tools/conf.d/muster-root", "UMASK=0077\n"));
  TRY_OK(io::makeDirs(root / "etc/muster/keys", 0700));
  if (plan.key == wire::RootKey::File) {
    TRY_OK(put(root, "etc/muster/keys/root.key", key, kSecretMode));
    return putLines(root, "etc/cryptsetup-initramfs/conf-hook",
                    {"KEYFILE_PATTERN=/etc/muster/keys/root.key"});
  }
  TRY_OK(needPackage(has(root, {"usr/bin/tpm2"}), "tpm2-tools", "keys in a TPM"));
  TRY_OK(seal(key, root / "etc/muster/keys"));
  TRY_OK(put(root, "usr/lib/muster/unlock-root", recipe("unlock-root"), 0755));
  return put(root, "etc/initramfs-tools/hooks/muster-root", recipe("muster-root"), 0755);
}

std::string newest(const fs::path& folder, std::string_view prefix) {
  std::string best;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (const std::string name = entry.path().filename();
        name.starts_with(prefix) && (best.empty() || ::strverscmp(name.c_str(), best.c_str()) > 0))
      best = name;
  return best;
}

}  // namespace

Layout layoutOf(const RootPlan& plan) {
  Layout layout;
  layout.esp = partitionNode(plan.disks.front().path, kEspPartition);
  layout.root = plan.root;
  layout.boot = plan.boot;
  layout.kernel_partition = kComposedBootPartition;
  layout.root_line = fmt::format("{} / ext4 errors=remount-ro 0 1", plan.root.string());
  layout.boot_line = fmt::format("UUID={} /boot ext4 defaults,nofail 0 2", plan.boot_uuid);
  layout.root_argument = plan.root_argument;
  for (std::size_t i = 1; i < plan.disks.size(); ++i)
    layout.copies.push_back({plan.disks[i].path, partitionNode(plan.disks[i].path, kEspPartition)});
  return layout;
}

Result<void> moveBoot(const fs::path& root, const fs::path& boot_mount) {
  TRY_OK(tool("cp", {"--archive", (root / "boot").string() + "/.", boot_mount.string()}));
  std::error_code error;
  for (const auto& [link, prefix] :
       {std::pair("vmlinuz", "vmlinuz-"), std::pair("initrd.img", "initrd.img-")}) {
    const std::string target = newest(boot_mount, prefix);
    if (target.empty())
      return fail(
          ErrorCode::InvalidInput,
          fmt::format(
              "the image has no /boot/{}*, which a system disk of several parts starts from",
              prefix));
    fs::remove(boot_mount / link, error);
    fs::create_symlink(target, boot_mount / link, error);
    if (error)
      return fail(ErrorCode::Internal,
                  fmt::format("cannot make /boot/{}: {}", link, error.message()));
  }
  // Debian's kernels keep the two names up to date in /boot then.
  TRY_OK(put(root, "etc/kernel-img.conf",
             "do_symlinks = yes\ndo_bootloader = no\nlink_in_boot = yes\n"));
  return io::makeDirs(boot_mount / "muster");  // the agent puts kernel arguments of drivers there
}

Result<void> configureRoot(const fs::path& root, const RootPlan& plan, const std::string& key,
                           const InSystem& run) {
  TRY_OK(needPackage(has(root, {"usr/sbin/update-initramfs"}), "initramfs-tools",
                     "system disks of several parts"));
  if (!plan.mdadm.empty())
    TRY_OK(needPackage(has(root, {"usr/share/initramfs-tools/hooks/mdadm"}), "mdadm",
                       "the arrays of its system disk"));
  const bool lvm = std::any_of(plan.steps.begin(), plan.steps.end(), [](const StorageStep& step) {
    return step.program == "lvm" && !step.may_fail;
  });
  if (lvm)
    TRY_OK(needPackage(has(root, {"usr/share/initramfs-tools/hooks/lvm2"}), "lvm2",
                       "the volume of its system disk"));
  TRY_OK(putLines(root, "etc/mdadm/mdadm.conf", plan.mdadm));
  TRY_OK(configureKey(root, plan, key));
  return run(root, {"update-initramfs", "-u", "-k", "all"});
}

Result<void> runInSystem(const fs::path& root, const std::vector<std::string>& command) {
  std::vector<Mount> mounts;
  for (const char* folder : {"dev", "proc", "sys", "run"}) {
    auto mounted = Mount::bind(fs::path("/") / folder, root / folder);
    if (!mounted) return fail(std::move(mounted).error());
    mounts.push_back(std::move(*mounted));
  }
  std::vector<std::string> args{root.string()};
  args.insert(args.end(), command.begin(), command.end());
  auto done = tool("chroot", std::move(args), {}, kInitrdLimit);
  while (!mounts.empty()) mounts.pop_back();
  return done;
}

}  // namespace muster::agent
