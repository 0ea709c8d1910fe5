// SPDX-License-Identifier: Apache-2.0
#include "provision/storage/storage.h"

#include "base/io/crypto.h"
#include "base/json_output.h"
#include "inventory/model/bmc_trust.h"
#include "inventory/model/mounts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <array>
#include <cctype>

namespace muster::provision {
namespace {

using inventory::MountKind;

constexpr std::size_t kDigestDigits = 12;

/// What each kind is to the system. A new kind is a row.
struct KindRow {
  MountKind kind;
  std::string_view word, type;     ///< type: as mount(8) is told
  std::string_view mounted_types;  ///< as /proc/self/mounts may show it, separated by spaces
  std::string_view
      package;             ///< Debian's; RHEL-likes' other names go into the inventory's `packages`
  std::string_view needs;  ///< lines of the unit's [Unit]
};
constexpr std::array<KindRow, 3> kRows = {{
    {MountKind::Nfs, "nfs", "nfs", "nfs nfs4", "nfs-common",
     "After=network-online.target\nWants=network-online.target\n"},
    {MountKind::Lustre, "lustre", "lustre", "lustre", "",
     "After=network-online.target lnet.service\nWants=network-online.target\n"},
    {MountKind::Gpfs, "gpfs", "gpfs", "gpfs", "", "After=gpfs.service\nRequires=gpfs.service\n"},
}};

const KindRow& rowOf(MountKind kind) {
  return *std::find_if(kRows.begin(), kRows.end(),
                       [&](const KindRow& row) { return row.kind == kind; });
}

}  // namespace

std::string mountUnitName(const std::string& path) {
  std::string out;
  for (std::size_t i = 1; i < path.size(); ++i) {
    const auto c = static_cast<unsigned char>(path[i]);
    if (c == '/')
      out += '-';
    else if (std::isalnum(c) || c == '_' || c == ':' || (c == '.' && !out.empty()))
      out += static_cast<char>(c);
    else
      out += fmt::format("\\x{:02x}", c);
  }
  return out + ".mount";
}

std::string mountUnit(const inventory::MountedSystem& storage) {
  const auto& row = rowOf(storage.kind);
  auto options = storage.options;
  if (std::find(options.begin(), options.end(), "_netdev") == options.end())
    options.push_back("_netdev");
  const auto escaped = [](std::string text) {  // a percent sign is a specifier to systemd
    for (std::size_t at = 0; (at = text.find('%', at)) != std::string::npos; at += 2)
      text.insert(at, 1, '%');
    return text;
  };
  // By the first line the agent knows what it wrote at an earlier place.
  return fmt::format(
      "# Written by muster for storage {}; changes are put back.\n[Unit]\nDescription=storage {} "
      "({})\n{}\n[Mount]\nWhat={}\nWhere={}\nType={}\n{}TimeoutSec=120\n\n"
      "[Install]\nWantedBy={}\n",
      storage.name, storage.name, row.word, row.needs, escaped(storage.source), storage.mount,
      row.type,
      options.empty()
          ? std::string()
          : fmt::format("Options={}\n", escaped(fmt::format("{}", fmt::join(options, ",")))),
      "remote-fs.target");
}

/// Without `value`, which is the digest of the rest.
static wire::MountParams withoutValue(const inventory::MountedSystem& storage) {
  const auto& row = rowOf(storage.kind);
  wire::MountParams params;
  params.name = storage.name;
  params.unit = mountUnit(storage);
  params.unit_name = mountUnitName(storage.mount);
  if (!row.package.empty()) params.packages.emplace_back(row.package);
  params.packages.insert(params.packages.end(), storage.packages.begin(), storage.packages.end());
  params.source = storage.source;
  params.at = storage.mount;
  params.types = row.mounted_types;
  params.options = storage.options;
  params.read_mb_s = storage.read_mb_s.value_or(0);
  params.write_mb_s = storage.write_mb_s.value_or(0);
  return params;
}

std::string storageValue(const inventory::MountedSystem& storage) {
  return "mounted:" + io::sha256Hex(toJson(withoutValue(storage))).substr(0, kDigestDigits);
}

wire::MountParams storageParams(const inventory::MountedSystem& storage) {
  auto params = withoutValue(storage);
  params.value = storageValue(storage);
  return params;
}

}  // namespace muster::provision
