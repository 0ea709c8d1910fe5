// SPDX-License-Identifier: Apache-2.0
#include "agent/network/network_change.h"

#include "agent/network/network_files.h"
#include "base/io/files.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace muster::agent {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMaxDeclarationBytes = 1u << 20, kMaxNetworkFileBytes = 1u << 20;
constexpr const char* kCloudInitFile = "etc/cloud/cloud.cfg.d/99-muster-network.cfg";

/// In words that every /bin/sh has. `new`: files of the change; `old`: those before it, kept in
/// `before`; `made`: links that the change makes; `links`: all that it or the network before has an
/// address on. systemd-networkd keeps addresses that it did not set itself since it was started.
constexpr std::string_view kBackScript = R"(#!/bin/sh
# Written by muster: brings back the network before its last change, unless that was confirmed.
# $1: now, or boot before the network is up (files only). MUSTER_ROOT: for tests.
root=${MUSTER_ROOT:-}
cd "$root/var/lib/muster/network-change" || exit 0
# Who renames the mark first decides: this, or the agent that has reached its controller.
[ -e taking ] || mv pending taking 2>/dev/null || exit 0
while read -r file; do rm -f "$root/$file"; done < new
while read -r file; do
  cp -p "before/$file" "$root/$file.back" && mv -f "$root/$file.back" "$root/$file"
done < old
sync
if [ "$1" = now ]; then
  systemctl stop systemd-networkd.socket systemd-networkd
  while read -r link; do ip link delete dev "$link" 2>/dev/null; done < made
  while read -r link; do
    ip address flush dev "$link" scope global
    ip -4 route flush dev "$link"
    ip -6 route flush dev "$link" proto static
  done < links 2>/dev/null
  systemctl start systemd-networkd.socket systemd-networkd
fi
mv taking reverted
)";

constexpr std::string_view kBackUnit = R"([Unit]
Description=Take back a change of the network that muster could not confirm
DefaultDependencies=no
RequiresMountsFor=/var/lib/muster
ConditionDirectoryNotEmpty=/var/lib/muster/network-change
After=local-fs.target systemd-remount-fs.service
Before=network-pre.target systemd-networkd.service
Wants=network-pre.target

[Service]
Type=oneshot
ExecStart=/bin/sh /var/lib/muster/network-change/back boot

[Install]
WantedBy=sysinit.target
)";

fs::path folderOf(const fs::path& root) { return root / kNetworkChange; }

std::string lines(const std::vector<std::string>& words) {
  std::string out;
  for (const auto& word : words) out += word + "\n";
  return out;
}

/// Of the network that lies there now, whoever declared it.
std::vector<std::string> presentFiles(const fs::path& root) {
  auto files = ownNetworkFiles(root);
  std::error_code error;
  for (const char* more : {kNetworkDeclaration, kCloudInitFile})
    if (fs::exists(root / more, error)) files.emplace_back(more);
  return files;
}

std::vector<std::string> filesOf(const fs::path& root, const wire::NodeNetwork& network) {
  std::vector<std::string> out = {kNetworkDeclaration, kCloudInitFile};
  for (const auto& file : networkFiles(network, networkStackOf(root))) out.push_back(file.path);
  return out;
}

}  // namespace

std::vector<std::string> linksToDelete(const wire::NodeNetwork& from, const wire::NodeNetwork& to) {
  std::vector<std::string> out;
  std::set<std::string_view> gone;
  for (const auto& link : from.links) {  // each after what it is made of
    if (link.kind == wire::LinkKind::Ethernet) continue;
    const auto* next = to.find(link.name);
    const bool same = next && next->kind == link.kind && next->members == link.members &&
                      next->bond == link.bond && next->mac == link.mac &&
                      next->parent == link.parent && next->vlan_id == link.vlan_id &&
                      !gone.contains(link.parent);
    if (same) continue;
    gone.insert(link.name);
    out.insert(out.begin(), link.name);
  }
  return out;
}

std::vector<std::string> linksOf(const wire::NodeNetwork& a, const wire::NodeNetwork& b) {
  std::set<std::string> names;
  for (const auto* network : {&a, &b})
    for (const auto& link : network->links) names.insert(link.name);
  return {names.begin(), names.end()};
}

Result<wire::NodeNetwork> givenNetwork(const fs::path& root) {
  std::error_code error;
  if (!fs::exists(root / kNetworkDeclaration, error))
    return fail(ErrorCode::NotFound, "the node was given no network");
  TRY(text, io::readFile(root / kNetworkDeclaration, kMaxDeclarationBytes));
  return wire::parseNodeNetwork(text);
}

std::string changedNetworkFile(const fs::path& root, const wire::NodeNetwork& given) {
  std::error_code error;
  const auto files = networkFiles(given, networkStackOf(root));
  for (const auto& file : files) {
    const auto text = fs::exists(root / file.path, error)
                          ? io::readFile(root / file.path, kMaxNetworkFileBytes)
                          : Result<std::string>(fail(ErrorCode::NotFound, "missing"));
    if (!text || *text != file.content) return file.path;
  }
  for (const auto& own : ownNetworkFiles(root))
    if (std::ranges::none_of(files, [&](const NetworkFile& file) { return file.path == own; }))
      return own;
  return {};
}

bool isNetworkChangePending(const fs::path& root) {
  std::error_code error;
  return fs::exists(folderOf(root) / "pending", error) ||
         fs::exists(folderOf(root) / "taking", error);
}

Result<void> beginNetworkChange(const fs::path& root, const std::optional<wire::NodeNetwork>& now,
                                const wire::NodeNetwork& next) {
  if (isNetworkChangePending(root))
    return fail(ErrorCode::Conflict, "an earlier change of the network is still pending");
  const auto folder = folderOf(root);
  std::error_code error;
  fs::remove_all(folder, error);
  const auto present = presentFiles(root);
  for (const auto& file : present) {
    TRY(text, io::readFile(root / file, kMaxNetworkFileBytes));
    TRY_OK(io::makeDirs((folder / "before" / file).parent_path(), 0755));
    const auto mode = static_cast<unsigned>(fs::status(root / file, error).permissions());
    TRY_OK(io::writeFileAtomic(folder / "before" / file, text, mode));
  }
  TRY_OK(io::makeDirs(folder, 0755));
  TRY_OK(io::writeFileAtomic(folder / "old", lines(present)));
  TRY_OK(io::writeFileAtomic(folder / "new", lines(filesOf(root, next))));
  TRY_OK(io::writeFileAtomic(folder / "made",
                             lines(linksToDelete(next, now.value_or(wire::NodeNetwork())))));
  TRY_OK(io::writeFileAtomic(folder / "links",
                             lines(linksOf(now.value_or(wire::NodeNetwork()), next))));
  TRY_OK(io::writeFileAtomic(root / kNetworkBack, kBackScript, 0755));
  TRY_OK(io::makeDirs((root / kNetworkBackUnit).parent_path()));
  TRY_OK(io::writeFileAtomic(root / kNetworkBackUnit, kBackUnit));
  return io::writeFileAtomic(folder / "pending", wire::digestOf(next) + "\n");
}

Result<void> putNetwork(const fs::path& root, const wire::NodeNetwork& next) {
  TRY_OK(writeNetworkFiles(root, next, networkStackOf(root)));
  TRY_OK(io::makeDirs((root / kNetworkDeclaration).parent_path()));
  return io::writeFileAtomic(root / kNetworkDeclaration, wire::toJson(next));
}

Result<void> confirmNetworkChange(const fs::path& root) {
  std::error_code error;
  fs::rename(folderOf(root) / "pending", folderOf(root) / "confirmed", error);
  if (error)
    return fail(ErrorCode::Conflict,
                "the change of the network was taken back before it could be confirmed");
  return {};
}

}  // namespace muster::agent
