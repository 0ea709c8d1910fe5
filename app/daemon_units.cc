// SPDX-License-Identifier: Apache-2.0
#include "app/daemon_units.h"

#include "app/site/service_user.h"
#include "base/io/daemon_server.h"
#include "base/log.h"
#include "fabric/opensm/opensm_files.h"
#include "provision/netboot/dnsmasq_check.h"
#include "provision/netboot/dnsmasq_config.h"
#include "provision/netboot/netboot.h"

#include <fmt/format.h>

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace muster::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSharedFolder = "/run/muster";
constexpr int kFirstSocket = 3;  // SD_LISTEN_FDS_START

/// Nodes that stand by as subnet managers have a muster-opensm.service (fabric/node_files.cc), and
/// a controller may be one: so this one has another name.
io::DaemonUnit dnsmasqUnitHere() {
  return {"muster-dnsmasq", "/run/muster-units/dnsmasq", "/var/lib/muster-dnsmasq"};
}
io::DaemonUnit opensmUnitHere() {
  return {"muster-subnet-manager", "/run/muster-units/opensm", "/var/lib/muster-opensm"};
}

bool isThere(const io::DaemonUnit& unit) {
  std::error_code error;
  return fs::exists(unit.socket, error);
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

io::ServedDaemon dnsmasq(const fs::path& folder) {
  const fs::path conf = folder / provision::kDnsmasqConf;
  return {.name = "dnsmasq",
          .command = {.program = "dnsmasq", .args = provision::dnsmasqArguments(conf)},
          .check =
              [folder](const std::string& name, const std::string& text) {
                return provision::checkDnsmasqFile(name, text, {folder, kSharedFolder});
              },
          .needed = {provision::kDnsmasqConf},
          .first = {provision::dnsmasqLeaseFile("").string()},
          .removed = {}};
}

io::ServedDaemon opensm(const fs::path& folder) {
  const fs::path conf = folder / fabric::kOpensmConf;
  return {.name = "opensm",
          .command =
              fabric::opensmCommand({.program = "opensm", .args = {"-F", conf.string()}}, folder),
          .check =
              [folder](const std::string& name, const std::string& text) {
                return fabric::checkOpensmFile(name, text, folder);
              },
          .needed = {std::string(fabric::kOpensmConf), std::string(fabric::kPartitionsConf)},
          .first = {std::string(fabric::kGuidToLid)},
          .removed = {std::string(fabric::kOpensmLog), std::string(fabric::kSubnetList)},
          .ends_with_asker = false};
}

}  // namespace

std::optional<io::DaemonUnit> dnsmasqUnit(bool in_twin) {
  auto unit = dnsmasqUnitHere();
  if (in_twin || !isServiceUser()) return std::nullopt;
  // A process that cannot serve DHCP by itself asks a unit that is away, too: so it is said.
  if (!isThere(unit) && io::mayBindLowPorts()) return std::nullopt;
  return unit;
}

std::optional<io::DaemonUnit> opensmUnit(bool in_twin) {
  auto unit = opensmUnitHere();
  if (in_twin || !isServiceUser() || !isThere(unit)) return std::nullopt;
  return unit;
}

Result<void> serveDaemon(std::string_view name) {
  const fs::path folder = environment("STATE_DIRECTORY");
  if (::geteuid() == 0 || folder.empty() ||
      environment("LISTEN_PID") != std::to_string(::getpid()) || environment("LISTEN_FDS") != "1")
    return fail(ErrorCode::Denied,
                fmt::format("the unit of {} is started by systemd, for its socket", name));
  const auto* asker = ::getpwnam(kServiceUser);
  if (!asker)
    return fail(ErrorCode::NotFound, fmt::format("this host has no user {}", kServiceUser));
  startLog({}, LogLevel::Info);
  const auto daemon = name == "dnsmasq" ? dnsmasq(folder) : opensm(folder);
  if (daemon.name != name)
    return fail(ErrorCode::NotFound, fmt::format("no unit runs \"{}\"", name));
  return io::serveDaemon(kFirstSocket, daemon, {.folder = folder, .asker = asker->pw_uid});
}

}  // namespace muster::app
