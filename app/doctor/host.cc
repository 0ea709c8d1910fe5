// SPDX-License-Identifier: Apache-2.0
#include "app/controller/controller.h"
#include "app/doctor/checks.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "inventory/model/fabric_membership.h"
#include "inventory/model/profile.h"
#include "provision/images/agent_initrd.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <fstream>

namespace muster::app::doctor {
namespace {

namespace fs = std::filesystem;
using enum DoctorVerdict;

struct NeededProgram {
  const char* program;
  const char* package;
  const char* why;
};
constexpr std::array<NeededProgram, 10> kAlways{{
    {"dnsmasq", "dnsmasq-base", "nodes get no address and no boot file"},
    {"ip", "iproute2", "addresses of this host cannot be read"},
    {"mmdebstrap", "mmdebstrap", "no image and no RAM OS can be built"},
    {"mksquashfs", "squashfs-tools", "no RAM OS can be built"},
    {"mkfs.ext4", "e2fsprogs", "no image can be built"},
    {"cpio", "cpio", "no initrd can be made"},
    {"xz", "xz-utils", "no image can be imported or built"},
    {"zstd", "zstd", "kernels' modules cannot be unpacked"},
    {"ldd", "libc-bin", "the agent's libraries cannot be found"},
    {"openssl", "openssl", "certificates of BMCs cannot be shown"},
}};

struct Missing {
  std::vector<std::string> packages, programs, why;
  void add(const char* program, const char* package, const char* reason) {
    programs.emplace_back(program);
    packages.emplace_back(package);
    why.emplace_back(reason);
  }
};

/// Free bytes where the folder is, or will be.
std::optional<std::uintmax_t> freeAt(fs::path folder) {
  std::error_code unknown;
  while (!fs::exists(folder, unknown) && folder.has_parent_path() && folder != folder.parent_path())
    folder = folder.parent_path();
  struct statvfs space{};
  if (::statvfs(folder.c_str(), &space) != 0) return std::nullopt;
  return static_cast<std::uintmax_t>(space.f_bavail) * space.f_frsize;
}

std::string firstLine(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

}  // namespace

bool isInstalled(const std::string& program) {
  std::string folders = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  if (const char* path = std::getenv("PATH")) folders = std::string(path) + ":" + folders;
  while (!folders.empty()) {
    const auto end = std::min(folders.find(':'), folders.size());
    if (end > 0 && ::access((folders.substr(0, end) + "/" + program).c_str(), X_OK) == 0)
      return true;
    folders.erase(0, std::min(end + 1, folders.size()));
  }
  return false;
}

void lookAtPrograms(const Options& options, const inventory::Cluster* cluster, Lines& out) {
  Missing missing;
  for (const auto& needed : kAlways)
    if (!isInstalled(needed.program)) missing.add(needed.program, needed.package, needed.why);
  if (::access("/usr/lib/ipxe", R_OK) != 0)
    missing.add("/usr/lib/ipxe", "ipxe", "nodes find no boot loader");
  if (!options.store.empty() && !isInstalled("pg_dump"))
    missing.add("pg_dump", "postgresql-client", "muster backup cannot copy the store");
  if (cluster) {
    const bool runs_sm = std::ranges::any_of(cluster->fabrics, [](const auto& named) {
      return std::ranges::find(named.second.subnet_managers, "controller") !=
             named.second.subnet_managers.end();
    });
    if (runs_sm && !isInstalled("opensm"))
      missing.add("opensm", "opensm", "the fabric has no subnet manager");
    // The loaders of arm64 come with its RAM OS.
    const bool secure = std::ranges::any_of(cluster->profiles, [](const auto& named) {
      return named.second.secure_boot && named.second.arch == Architecture::Amd64;
    });
    if (secure && ::access("/usr/lib/shim/shimx64.efi.signed", R_OK) != 0)
      missing.add("shim", "shim-signed grub-efi-amd64-signed",
                  "nodes with Secure Boot do not boot");
    const bool arm64 = std::ranges::any_of(cluster->profiles, [](const auto& named) {
      return named.second.arch == Architecture::Arm64;
    });
    const auto agent = provision::agentFor(binaryFolder() / "muster-agent", Architecture::Arm64);
    if (arm64 && ::access(agent.c_str(), R_OK) != 0)
      missing.add("the agent for arm64", "muster-agent-arm64",
                  "nodes with arm64 have no RAM OS (in a source tree: ./run build arm64)");
    const bool ipmi = std::ranges::any_of(cluster->nodes, [](const inventory::Node& node) {
      return node.bmc.url.starts_with("ipmi:");
    });
    if (ipmi && !isInstalled("ipmitool"))
      missing.add("ipmitool", "ipmitool", "BMCs without Redfish cannot be reached");
  }
  if (missing.packages.empty()) return ok(out, "programs", "all are here");
  out.push_back({"programs", Bad, fmt::format("missing: {}", fmt::join(missing.programs, ", ")),
                 fmt::format("{}", fmt::join(missing.why, "; ")),
                 fmt::format("apt install {}", fmt::join(missing.packages, " "))});
}

void lookAtTime(Lines& out) {
  timex now{};
  if (::adjtimex(&now) >= 0 && (now.status & STA_UNSYNC) == 0)
    return ok(out, "time", "synchronized");
  out.push_back({"time", Warning, "this host's clock is not synchronized",
                 "certificates of agents and nodes count by it; logs of two hosts do not fit",
                 "apt install systemd-timesyncd && timedatectl set-ntp true"});
}

void lookAtSpace(const std::string& what, const fs::path& folder, std::uintmax_t needed,
                 const char* why, Lines& out) {
  const auto free = freeAt(fs::absolute(folder));
  if (free && *free >= needed)
    return ok(out, what, fmt::format("{} GiB are free at {}", *free >> 30, folder.string()));
  // With a tenth of it the next image or the next day's journal does not fit.
  out.push_back({what, free && *free < needed / 10 ? Bad : Warning,
                 free ? fmt::format("{} MiB are free at {}, {} GiB are wanted", *free >> 20,
                                    folder.string(), needed >> 30)
                      : fmt::format("{} cannot be looked at", folder.string()),
                 why, fmt::format("df -h {0}; du -xh --max-depth=2 {0}", folder.string())});
}

void lookAtState(const Options& options, Lines& out) {
  struct stat status{};
  const auto text = options.state.string();
  if (::stat(options.state.c_str(), &status) != 0)
    return ok(out, "state", fmt::format("{} is made when muster first works", text));
  if (status.st_uid != ::geteuid()) {
    out.push_back(
        {"state", Bad,
         fmt::format("{} belongs to user {}, this is user {}", text, status.st_uid, ::geteuid()),
         "muster does not work in a folder that another user could change",
         status.st_uid == 0 ? std::string("sudo muster …")
                            : fmt::format("chown -R {} {}", ::geteuid(), text)});
    return;
  }
  if ((status.st_mode & 0077) == 0) return ok(out, "state", fmt::format("{} is private", text));
  out.push_back({"state", Bad, fmt::format("{} has mode {:04o}", text, status.st_mode & 07777),
                 "other users could read the site's keys", fmt::format("chmod 700 {}", text)});
}

void lookAtKvm(Lines& out) {
  if (::access("/dev/kvm", R_OK | W_OK) == 0) return ok(out, "kvm", "/dev/kvm can be used");
  if (!isInstalled("qemu-system-x86_64")) return;  // who has no twin needs none
  out.push_back({"kvm", Warning, "/dev/kvm cannot be used",
                 "the twin's machines are emulated: about ten times slower",
                 "modprobe kvm_intel || modprobe kvm_amd; as a guest: nested virtualization"});
}

namespace {

/// `hca`: the only one that counts; empty: any.
void lookAtLink(const std::string& hca, const std::string& fabric, Lines& out) {
  std::vector<std::string> seen;
  std::error_code none;
  for (const auto& device : fs::directory_iterator("/sys/class/infiniband", none))
    for (const auto& port : fs::directory_iterator(device.path() / "ports", none)) {
      if (!hca.empty() && device.path().filename() != hca) continue;
      if (firstLine(port.path() / "link_layer") != "InfiniBand") continue;
      const auto name = fmt::format("{} port {}", device.path().filename().string(),
                                    port.path().filename().string());
      const auto state = firstLine(port.path() / "phys_state");  // "5: LinkUp"
      if (state.starts_with("5:")) return ok(out, "fabric", name + " has a link");
      seen.push_back(fmt::format("{} ({})", name, state));
    }
  out.push_back({"fabric", Bad,
                 seen.empty() ? hca.empty()
                                    ? std::string("this host has no InfiniBand port")
                                    : fmt::format("this host has no InfiniBand port {}", hca)
                              : fmt::format("no link: {}", fmt::join(seen, ", ")),
                 fabric.empty() ? std::string("subnet_managers names the controller, whose opensm "
                                              "needs a port")
                                : fmt::format("the fabric {} is looked at through {} "
                                              "(controller_hca)",
                                              fabric, hca),
                 seen.empty() ? "apt install rdma-core and look at lspci; or name nodes in "
                                "fabric.….subnet_managers"
                              : "look at the cable, then: ibstat"});
}

}  // namespace

void lookAtFabric(const inventory::Cluster& cluster, Lines& out) {
  const bool runs_sm = std::ranges::any_of(cluster.fabrics, [](const auto& named) {
    return std::ranges::find(named.second.subnet_managers, "controller") !=
           named.second.subnet_managers.end();
  });
  if (!runs_sm) return;
  if (const auto fabrics = inventory::infiniBandFabrics(cluster); fabrics.size() > 1) {
    for (const auto* fabric : fabrics) lookAtLink(fabric->controller_hca, fabric->name, out);
    return;
  }
  lookAtLink({}, {}, out);
}

}  // namespace muster::app::doctor
