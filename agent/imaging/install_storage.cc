// SPDX-License-Identifier: Apache-2.0
// What an installed system needs beyond starting: its other disks, and its owner's user data.
#include "agent/imaging/install.h"
#include "agent/imaging/target_files.h"
#include "base/io/files.h"
#include "base/json_output.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace muster::agent {

namespace fs = std::filesystem;

namespace {

/// As an installer of CoreOS leaves it: the configuration beside the kernel, and a stamp that asks
/// for it at the next start.
Result<void> configureIgnition(const fs::path& root, const std::string& user_data) {
  TRY_OK(needPackage(has(root, {"usr/lib/dracut/modules.d/30ignition", "usr/bin/ignition",
                                "usr/libexec/ignition"}),
                     "Ignition", "its user data"));
  TRY_OK(put(root, "boot/ignition/config.ign", user_data, kSecretMode));
  return put(root, "boot/ignition.firstboot", "");
}

}  // namespace

Result<void> configureStorage(const fs::path& root, const StoragePlan& plan,
                              const std::map<std::string, std::string>& keys) {
  if (!plan.mdadm.empty())
    TRY_OK(needPackage(has(root, {"usr/sbin/mdadm", "sbin/mdadm"}), "mdadm",
                       "the arrays of its storage"));
  if (!plan.crypttab.empty())
    TRY_OK(needPackage(has(root, {"usr/sbin/cryptsetup", "sbin/cryptsetup"}), "cryptsetup",
                       "the encrypted disks of its storage"));
  const bool lvm = std::any_of(plan.steps.begin(), plan.steps.end(), [](const auto& step) {
    return step.program == "lvm" && !step.may_fail;
  });
  if (lvm)
    TRY_OK(
        needPackage(has(root, {"usr/sbin/lvm", "sbin/lvm"}), "lvm2", "the volumes of its storage"));
  TRY_OK(putLines(root, "etc/fstab", plan.fstab));
  TRY_OK(putLines(root, "etc/crypttab", plan.crypttab));
  TRY_OK(putLines(root, "etc/mdadm/mdadm.conf", plan.mdadm));
  if (!plan.keys.empty()) TRY_OK(io::makeDirs(root / "etc/muster/keys", 0700));
  for (const auto& name : plan.keys) {
    const auto key = keys.find(name);
    if (key == keys.end())
      return fail(ErrorCode::Internal, fmt::format("disks of {}: there is no key for them", name));
    TRY_OK(put(root, "etc/muster/keys/" + name + ".key", key->second, kSecretMode));
  }
  for (const auto& line : plan.fstab) {
    const auto from = line.find(' ') + 1;
    TRY_OK(io::makeDirs(root / line.substr(from + 1, line.find(' ', from) - from - 1)));
  }
  return {};
}

Result<void> configureUserData(const fs::path& root, const wire::WriteImageParams& params) {
  if (params.user_data.empty()) return {};
  if (params.user_data[std::min(params.user_data.find_first_not_of(" \t\r\n"),
                                params.user_data.size() - 1)] == '{')
    return configureIgnition(root, params.user_data);
  TRY_OK(needPackage(has(root, {"usr/bin/cloud-init"}), "cloud-init", "user data"));
  const nlohmann::json meta{{"instance-id", params.hostname + "-" + params.digest.substr(0, 12)},
                            {"local-hostname", params.hostname}};
  TRY_OK(put(root, "var/lib/cloud/seed/nocloud/meta-data", jsonText(meta) + "\n"));
  TRY_OK(put(root, "var/lib/cloud/seed/nocloud/user-data", params.user_data, kSecretMode));
  // The network is muster's own; cloud-init must not lay another configuration over it, nor look
  // for a cloud.
  return put(root, "etc/cloud/cloud.cfg.d/99-muster.cfg",
             "datasource_list: [NoCloud]\nnetwork: {config: disabled}\n");
}

}  // namespace muster::agent
