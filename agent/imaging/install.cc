// SPDX-License-Identifier: Apache-2.0
#include "agent/imaging/install.h"

#include "agent/imaging/carried_libc.h"
#include "agent/imaging/grow_ext4.h"
#include "agent/imaging/mount.h"
#include "agent/imaging/root_system.h"
#include "agent/imaging/secure_boot.h"
#include "agent/imaging/target_files.h"
#include "agent/imaging/uefi_boot.h"
#include "agent/network/network_files.h"
#include "base/architecture.h"
#include "base/io/files.h"
#include "base/io/process.h"
#include "base/io/selinux.h"
#include "base/json_output.h"
#include "base/log.h"
#include "wire/carried_libc.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace muster::agent {

namespace fs = std::filesystem;

namespace {

constexpr std::chrono::minutes kToolLimit{5};
constexpr std::size_t kMaxConfigBytes = 64u << 10;
constexpr const char* kMountFolder = "/run/muster/target";
/// The RAM OS installs systems of its own processor alone.
constexpr const ArchitectureTraits& kOwn = traitsOf(kBuiltFor);

std::string replaced(std::string text, std::string_view mark, const std::string& value) {
  for (auto at = text.find(mark); at != std::string::npos; at = text.find(mark, at + value.size()))
    text.replace(at, mark.size(), value);
  return text;
}

Result<void> tool(std::string program, std::vector<std::string> args) {
  io::Command command{.program = std::move(program), .args = std::move(args)};
  command.timeout = kToolLimit;
  TRY_OK(io::runChecked(command));
  return {};
}

/// systemd-networkd brings up the provisioning NIC, found by its address; every other NIC is left
/// to whom it concerns.
std::string networkFile(const wire::WriteImageParams& params, const std::string& mac) {
  std::string text = fmt::format(
      "[Match]\nMACAddress={}\n\n[Network]\nLinkLocalAddressing=no\nIPv6AcceptRA=no\n", mac);
  if (params.address_cidr.empty())
    return text + "DHCP=ipv4\n\n[DHCPv4]\nClientIdentifier=mac\nUseHostname=no\n";
  text += fmt::format("Address={}\n", params.address_cidr);
  if (!params.gateway.empty()) text += fmt::format("Gateway={}\n", params.gateway);
  for (const auto& server : params.dns) text += fmt::format("DNS={}\n", server);
  return text;
}

/// The same for systems that have NetworkManager only.
std::string networkManagerFile(const wire::WriteImageParams& params, const std::string& mac) {
  std::string text = fmt::format(
      "[connection]\nid=muster-provisioning\ntype=ethernet\nautoconnect-priority=100\n\n[ethernet]"
      "\nmac-address={}\n\n[ipv4]\n",
      mac);
  if (params.address_cidr.empty()) {
    text += "method=auto\ndhcp-client-id=mac\ndhcp-send-hostname=false\n";
  } else {
    text += fmt::format("method=manual\naddress1={}{}{}\n", params.address_cidr,
                        params.gateway.empty() ? "" : ",", params.gateway);
    if (!params.dns.empty()) text += fmt::format("dns={};\n", fmt::join(params.dns, ";"));
  }
  return text + "\n[ipv6]\nmethod=disabled\n";
}

Result<void> configureNetwork(const fs::path& root, const wire::WriteImageParams& params,
                              const std::string& mac) {
  if (params.network) {
    // What it was given is looked at from then on (agent/network/).
    TRY_OK(put(root, kNetworkDeclaration, toJson(*params.network)));
    return writeNetworkFiles(root, *params.network, networkStackOf(root));
  }
  TRY_OK(put(root, "etc/systemd/network/10-muster-provisioning.network", networkFile(params, mac)));
  std::error_code error;
  if (fs::exists(root / "usr/lib/systemd/systemd-networkd", error) ||
      fs::exists(root / "lib/systemd/systemd-networkd", error) ||
      !fs::exists(root / "usr/sbin/NetworkManager", error))
    return {};
  TRY_OK(put(root, "etc/NetworkManager/conf.d/10-muster.conf", "[main]\nno-auto-default=*\n"));
  return put(root, "etc/NetworkManager/system-connections/muster-provisioning.nmconnection",
             networkManagerFile(params, mac), kSecretMode);  // it takes no other mode
}

/// The node's name leads to its address on the provisioning network, never to 127.0.1.1: what asks
/// for the own name and tells others the answer (MPI, NCCL's bootstrap, slurmd, Kubernetes) would
/// tell them to call themselves. Its IPv6 addresses are not there, so that the answer is one.
std::string hostsFile(const wire::WriteImageParams& params) {
  std::string text = "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n";
  if (params.address_cidr.empty()) return text;  // who asks DNS or nss-myhostname gets the lease's
  std::string names = params.hostname;
  if (params.network && !params.network->search.empty())
    names = fmt::format("{0}.{1} {0}", params.hostname, params.network->search.front());
  const auto address = params.address_cidr.substr(0, params.address_cidr.find('/'));
  return text + fmt::format("{} {}\n", address, names);
}

/// Empty: the system keeps its own.
std::string fileSystemTable(const Layout& layout) {
  if (layout.root_line.empty() && layout.root_partuuid.empty()) return {};
  std::string table =
      layout.root_line.empty()
          ? fmt::format("PARTUUID={} / ext4 errors=remount-ro 0 1", layout.root_partuuid)
          : layout.root_line;
  if (!layout.boot_line.empty()) table += "\n" + layout.boot_line;
  return table +
         fmt::format("\nPARTUUID={} /boot/efi vfat umask=0077,nofail 0 0\n", layout.esp_partuuid);
}

Result<void> copyAgent(const fs::path& from, const fs::path& root) {
  const fs::path to = root / "usr/lib/muster";
  TRY_OK(io::makeDirs(to));
  std::error_code error;
  // Of an agent that was there before: another's C library must not be mixed with this one's.
  fs::remove(to / wire::kProgramLoaderName, error);
  fs::remove_all(to / wire::kCarriedLibcFolder, error);
  fs::copy(from, to,
           fs::copy_options::recursive | fs::copy_options::overwrite_existing |
               fs::copy_options::copy_symlinks,
           error);
  if (error)
    return fail(ErrorCode::Internal,
                fmt::format("cannot copy the agent from {}: {}", from.string(), error.message()));
  fs::remove(to / "dhcp.sh", error);  // belongs to the RAM OS
  return chooseLibc(root);
}

}  // namespace

Result<void> configureSystem(const fs::path& root, const wire::WriteImageParams& params,
                             const InstalledIdentity& identity, const Layout& layout,
                             const std::string& provisioning_mac, const fs::path& agent_folder) {
  TRY_OK(put(root, "etc/hostname", params.hostname + "\n"));
  TRY_OK(put(root, "etc/hosts", hostsFile(params)));
  TRY_OK(put(root, "etc/machine-id", ""));  // made at the first boot
  if (const auto table = fileSystemTable(layout); !table.empty())
    TRY_OK(put(root, "etc/fstab", table));
  TRY_OK(configureNetwork(root, params, provisioning_mac));
  if (!params.authorized_keys.empty()) {
    TRY_OK(io::makeDirs(root / "root/.ssh", 0700));
    TRY_OK(put(root, "root/.ssh/authorized_keys",
               fmt::format("{}\n", fmt::join(params.authorized_keys, "\n")), kSecretMode));
  }

  const nlohmann::json agent{{"url", params.agent.url},
                             {"node", params.hostname},
                             {"ca_pem_file", "/etc/muster/ca.pem"},
                             {"key_file", "/etc/muster/agent.key"},
                             {"certificate_file", "/etc/muster/agent.pem"},
                             {"image_digest", params.digest}};
  TRY_OK(io::makeDirs(root / "etc/muster", 0755));
  TRY_OK(put(root, "etc/muster/agent.json", jsonText(agent, 2) + "\n"));
  TRY_OK(put(root, "etc/muster/ca.pem", params.agent.ca_pem));
  TRY_OK(put(root, "etc/muster/agent.pem", identity.certificate_pem));
  TRY_OK(put(root, "etc/muster/agent.key", identity.key_pem.reveal(), kSecretMode));
  TRY_OK(copyAgent(agent_folder, root));
  for (const char* hook : {"slurm-health-check", "slurm-prolog"})
    TRY_OK(put(root, fs::path("usr/lib/muster") / hook, recipe(hook), 0755));
  TRY_OK(put(root, "etc/systemd/system/muster-agent.service", recipe("muster-agent.service")));
  const fs::path wants = root / "etc/systemd/system/multi-user.target.wants";
  TRY_OK(io::makeDirs(wants));
  std::error_code error;
  fs::remove(wants / "muster-agent.service", error);
  fs::create_symlink("/etc/systemd/system/muster-agent.service", wants / "muster-agent.service",
                     error);
  if (error)
    return fail(ErrorCode::Internal, fmt::format("cannot enable the agent: {}", error.message()));
  return {};
}

Result<void> labelSystem(const fs::path& root,
                         const std::function<void(const std::string&)>& notify) {
  const auto config = io::readFile(root / io::kSelinuxConfig, kMaxConfigBytes).value_or("");
  if (!io::parseSelinuxConfig(config).enforcing) return {};
  notify("labelling the files for SELinux");
  TRY_OK(io::labelTree(root));
  return {};
}

std::string grubConfiguration(const wire::WriteImageParams& params, const Layout& layout) {
  std::string text = recipe("grub.cfg");
  text = replaced(std::move(text), "@KERNEL_PARTITION@", std::to_string(layout.kernel_partition));
  text = replaced(std::move(text), "@ROOT@",
                  layout.root_argument.empty() ? "root=PARTUUID=" + layout.root_partuuid
                                               : layout.root_argument);
  text = replaced(std::move(text), "@CONSOLE@", kOwn.serial_console);
  return replaced(std::move(text), "@KERNEL_ARGS@",
                  fmt::format("{}", fmt::join(params.kernel_args, " ")));
}

Result<void> installBootLoader(const fs::path& disk, const fs::path& esp,
                               const wire::WriteImageParams& params, const Layout& layout) {
  const std::string boot_folder = "--boot-directory=" + esp.string();
  const std::string modules =
      "--install-modules=normal linux part_gpt fat ext2 serial terminal regexp test echo gzio "
      "reboot halt ls cat";
  if (kBuiltFor == Architecture::Amd64)  // other machines have no BIOS
    TRY_OK(tool("grub-install", {"--target=i386-pc", boot_folder, modules,
                                 "--fonts=", "--locales=", "--themes=", disk.string()}));
  TRY_OK(tool("grub-install",
              {std::string("--target=") + kOwn.grub_platform, "--removable", "--no-nvram",
               "--no-uefi-secure-boot", "--efi-directory=" + esp.string(), boot_folder, modules,
               "--fonts=", "--locales=", "--themes=", disk.string()}));
  if (params.secure_boot) TRY_OK(installSignedLoader(esp));
  return put(esp, "grub/grub.cfg", grubConfiguration(params, layout));
}

namespace {

/// The file system of /boot gets what the image has there, and takes its place.
Result<Mount> mountBoot(const fs::path& root, const fs::path& device) {
  {
    auto beside = Mount::make(device, "/run/muster/boot", "ext4");
    if (!beside) return fail(std::move(beside).error());
    TRY_OK(moveBoot(root, "/run/muster/boot"));
    TRY_OK(beside->end());
  }
  return Mount::make(device, root / "boot", "ext4");
}

/// The machine must start from any of its disks.
Result<void> copyBootLoader(const Layout::BootDisk& copy, const wire::WriteImageParams& params,
                            const Layout& layout) {
  TRY_OK(tool("mkfs.vfat", {"-F", "32", "-n", "MUSTER-ESP", copy.esp.string()}));
  auto esp = Mount::make(copy.esp, "/run/muster/esp", "vfat");
  if (!esp) return fail(std::move(esp).error());
  TRY_OK(installBootLoader(copy.disk, "/run/muster/esp", params, layout));
  return esp->end();
}

/// The EFI system partitions of the installation, the first disk's first.
Result<std::vector<InstalledEsp>> installedEsps(const fs::path& disk, const Layout& layout) {
  std::vector<fs::path> disks = {disk};
  for (const auto& copy : layout.copies) disks.push_back(copy.disk);
  std::vector<InstalledEsp> out;
  for (auto& one : disks) {
    TRY(partuuid, partitionUuid(one, kEspPartition));
    out.push_back({std::move(one), kEspPartition, std::move(partuuid)});
  }
  return out;
}

/// What the check system.boot-order takes for this system.
Result<void> writeEspPartitions(const fs::path& root, const std::vector<InstalledEsp>& esps) {
  std::string text;
  for (const auto& esp : esps) text += esp.partuuid + "\n";
  return put(root, "etc/muster/esp-partitions", text);
}

/// Not an error of the installation: the loader lies where firmware looks by itself, and the BMC
/// can be told to boot from the disk. But it is said, and the check system.boot-order fails.
void mendBootOrder(const std::vector<InstalledEsp>& esps,
                   const std::function<void(const std::string&)>& notify) {
  if (!runsFromMemory()) return;
  const auto changes = mendUefiBoot(esps);
  if (!changes) {
    notify("the UEFI boot order was not mended: " + changes.error().str());
    logWarning("install", "the UEFI boot order was not mended: {}", changes.error().str());
    return;
  }
  for (const auto& change : *changes) notify("UEFI: " + change);
}

}  // namespace

Result<void> installSystem(const fs::path& disk, const Layout& layout,
                           const wire::WriteImageParams& params, const InstalledIdentity& identity,
                           const std::string& provisioning_mac, const fs::path& agent_folder,
                           const std::function<void(const std::string&)>& notify,
                           const std::function<Result<void>(const fs::path&)>& configure_more) {
  notify("growing the file system to its disk");
  TRY_OK(growExt4(layout.root));
  TRY_OK(tool("mkfs.vfat", {"-F", "32", "-n", "MUSTER-ESP", layout.esp.string()}));
  notify("configuring the system");
  auto root = Mount::make(layout.root, kMountFolder, "ext4");
  if (!root) return fail(std::move(root).error());
  const fs::path top = kMountFolder;
  std::optional<Mount> boot;
  if (!layout.boot.empty()) {
    TRY(mounted, mountBoot(top, layout.boot));
    boot.emplace(std::move(mounted));
  }
  auto esp = Mount::make(layout.esp, top / "boot/efi", "vfat");
  if (!esp) return fail(std::move(esp).error());
  TRY_OK(configureSystem(top, params, identity, layout, provisioning_mac, agent_folder));
  if (configure_more) TRY_OK(configure_more(top));
  std::error_code error;
  if (fs::exists(top / "usr/bin/ssh-keygen", error))
    TRY_OK(tool("chroot", {top.string(), "ssh-keygen", "-A"}));
  notify("installing the boot loader");
  TRY_OK(installBootLoader(disk, top / "boot/efi", params, layout));
  TRY_OK(esp->end());
  TRY(esps, installedEsps(disk, layout));
  TRY_OK(writeEspPartitions(top, esps));
  for (const auto& copy : layout.copies) TRY_OK(copyBootLoader(copy, params, layout));
  TRY_OK(labelSystem(top, notify));
  if (boot) TRY_OK(boot->end());
  TRY_OK(root->end());
  mendBootOrder(esps, notify);
  return {};
}

}  // namespace muster::agent
