// SPDX-License-Identifier: Apache-2.0
// The tables of `host` of a driver: what a site wants of a system beside its packages.
#include "base/io/regular_file.h"
#include "inventory/model/drivers.h"
#include "inventory/schema/binding.h"
#include "inventory/schema/change_spec.h"
#include "inventory/schema/declared.h"
#include "inventory/schema/formats.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::inventory {

namespace {

using wire::HostSettings;
using wire::HostUser;
using wire::SudoRight;

constexpr std::size_t kMaxPemBytes = 64u << 10;
constexpr int kLeastBaud = 300, kMostBaud = 4'000'000;
constexpr std::string_view kPemBegin = "-----BEGIN ";

Result<void> checkTimeServer(std::string_view text) {
  if (wire::isTimeServer(text)) return {};
  return fail(ErrorCode::InvalidInput, "write a host name or an address");
}
Result<void> checkPasswordHash(std::string_view text) {
  if (wire::isPasswordHash(text)) return {};
  return fail(ErrorCode::InvalidInput,
              "a password never stands here; write what `mkpasswd -m yescrypt` or `openssl passwd "
              "-6` prints");
}

constexpr TextFormat kTimeServer{"a host name or an address", "^[A-Za-z0-9.:-]+$", "10.20.0.1",
                                 checkTimeServer};
constexpr TextFormat kCertificates{"a path, or certificates in PEM", "", "keys/site-ca.pem"};
constexpr TextFormat kProxy{"an http URL of a proxy, without a password",
                            R"(^https?://[A-Za-z0-9.\-\[\]:]+/?$)", "http://10.20.0.3:3128"};
constexpr TextFormat kNoProxy{"a host, a domain or a network", R"(^[A-Za-z0-9.*_:/-]+$)",
                              "10.20.0.0/16"};
constexpr TextFormat kAccount{"a user name of at most 32 lower-case letters, digits, '_' and '-'",
                              "^[a-z_][a-z0-9_-]{0,31}$", "alice"};
constexpr TextFormat kShellPath{"the path of a shell", "^/[A-Za-z0-9._/-]+$", "/bin/bash"};
constexpr TextFormat kPasswordHash{"a hash of yescrypt or SHA-512",
                                   R"(^\$(y|6)\$[A-Za-z0-9./$=]+$)", "$y$j9T$…", checkPasswordHash};
constexpr TextFormat kCrashKernel{
    "memory for a crash kernel, as crashkernel= takes it",
    "^[0-9]+[MG](-([0-9]+[MG])?:[0-9]+[MG](,[0-9]+[MG]-([0-9]+[MG])?:[0-9]+[MG])*)?(,high|,low)?$",
    "512M"};
constexpr TextFormat kTty{"a serial line", "^(tty(S|AMA|USB)|hvc)[0-9]{1,2}$", "ttyS1"};

/// A file's content, or what stands in the inventory itself: both are printed as the content, so
/// that a digest tells when a file has changed.
void readAuthority(std::string& pem, const Value& value, const Shape& shape, Reader& reader) {
  const auto read = readText(value, shape, reader);
  if (!read) return;
  std::string content = *read;
  if (!read->starts_with(kPemBegin)) {
    std::filesystem::path path;
    const auto errors = reader.errors;
    readInto(path, value, shape, reader);
    if (reader.errors != errors) return;
    auto file = io::readRegularFile(path, kMaxPemBytes);
    if (!file)
      return reader.error(value,
                          fmt::format("cannot read {}: {}", path.string(), file.error().text()),
                          "the path starts at the inventory's folder");
    content = std::move(*file);
  }
  if (content.find("PRIVATE KEY") != std::string::npos)
    return reader.error(value, "this holds a private key, which would lie on every node",
                        "name a file with the certificate alone");
  if (!wire::isCertificatePem(content))
    return reader.error(value, "this holds no certificate in PEM",
                        "convert it: openssl x509 -inform DER -in CA.der -out CA.pem");
  pem = std::move(content);
}

void checkUser(HostUser& user, const Value& map, Reader& reader) {
  if (user.name == "root")
    reader.error(map, "root is no user of a site: its keys are those of the image",
                 "write authorized_keys of the image");
  if (user.uid != 0 && (user.uid < wire::kLeastUid || user.uid > wire::kMostUid))
    reader.error(place(map, "uid"), fmt::format("the uid {} is none of a person's", user.uid),
                 fmt::format("use one from {} to {}", wire::kLeastUid, wire::kMostUid));
  if (user.sudo == SudoRight::Password && user.password_hash.empty())
    reader.error(
        place(map, "sudo"),
        fmt::format("sudo would ask {} for a password that the account does not have", user.name),
        "add password_hash, or write sudo: free");
}

ObjectSpec make_hostUserSpec() {
  return Table<HostUser>("host-user", "user", "A person's account on nodes.")
      .optional("uid", &HostUser::uid, integer(0, wire::kMostUid),
                "Its number, the same on all nodes; 0: each node chooses.")
      .optional("keys", &HostUser::keys, listOf(text(kSshKey)),
                "Public keys that open it, beside those in its home.")
      .optional("groups", &HostUser::groups, listOf(text(kAccount)),
                "Groups that it is in beside its own; those that are missing are made.")
      .optional("shell", &HostUser::shell, text(kShellPath), "Its shell.")
      .optional("sudo", &HostUser::sudo, choice({"none", "password", "free"}),
                "Whether sudo lets it do everything; free: without asking for its password.")
      .optional("password_hash", &HostUser::password_hash, text(kPasswordHash),
                "What `mkpasswd -m yescrypt` prints; absent: no password opens the account.")
      .printsAlways()
      .check(checkUser)
      .spec();
}
MUSTER_SPEC(hostUserSpec)

void checkHost(HostSettings& host, const Value& map, Reader& reader) {
  std::map<int, std::string_view> uids;
  for (const auto& user : host.users) {
    const Value& where = place(place(map, "users"), user.name);
    if (user.uid != 0)
      if (auto [first, fresh] = uids.emplace(user.uid, user.name); !fresh)
        reader.error(place(where, "uid"),
                     fmt::format("{} and {} have the uid {}", first->second, user.name, user.uid),
                     "give one of them another");
    if (user.keys.empty() && user.password_hash.empty() && host.ssh_user_authorities.empty())
      reader.warning(where, fmt::format("nothing opens the account {}", user.name),
                     "add keys, or ssh_user_authorities");
  }
  if (!host.no_proxy.empty() && host.http_proxy.empty() && host.https_proxy.empty())
    reader.error(place(map, "no_proxy"), "no_proxy without a proxy means nothing",
                 "add http_proxy or https_proxy, or remove it");
  if (map.find("serial_baud") && host.serial_console.empty())
    reader.error(place(map, "serial_baud"), "serial_baud without serial_console means nothing",
                 "add serial_console");
  if (const auto bytes = wire::toJson(host).size(); bytes > wire::kMaxHostSettingsBytes)
    reader.error(map,
                 fmt::format("host has {} KiB, a task carries {}", bytes >> 10,
                             wire::kMaxHostSettingsBytes >> 10),
                 "name fewer authorities; a bundle of the world's is the system's own");
  if (host == HostSettings())
    reader.error(map, "host says nothing", "add one of its keys, or remove it");
}

ObjectSpec make_hostSettingsSpec() {
  return Table<HostSettings>(
             "host-settings", "host",
             "What a site wants of a system beside packages; docs/drivers.md. One driver of a "
             "profile has it.")
      .optional("time_servers", &HostSettings::time_servers, listOf(text(kTimeServer), 1),
                "All servers that chrony, or else systemd-timesyncd, asks for the time.")
      .custom("authorities", false, mapOf(text(kCertificates), kEntryName),
              "Certificates that the system trusts beside its own: files in PEM, by name.",
              [](HostSettings& host, const Value& value, const Shape& shape, Reader& reader) {
                if (!expectMap(value, shape, reader)) return;
                for (const auto& [key, entry] : value.entries)
                  readAuthority(host.authorities[key.text], entry, *shape.item, reader);
              })
      .prints(&HostSettings::authorities)
      .optional("http_proxy", &HostSettings::http_proxy, text(kProxy),
                "The proxy for http, of shells, services and apt.")
      .optional("https_proxy", &HostSettings::https_proxy, text(kProxy), "The same for https.")
      .optional("no_proxy", &HostSettings::no_proxy, listOf(text(kNoProxy)),
                "Hosts, domains and networks that are reached without it.")
      .optional("users", &HostSettings::users, mapOf(object(hostUserSpec), kAccount),
                "Accounts of people, by name. One that is declared no more is locked, never "
                "deleted.")
      .optional("ssh_user_authorities", &HostSettings::ssh_user_authorities,
                listOf(text(kSshKey), 1),
                "Public keys that sign users' certificates (sshd's TrustedUserCAKeys).")
      .optional("crash_kernel", &HostSettings::crash_kernel, text(kCrashKernel),
                "Memory that is reserved for a crash kernel; that it is loaded is checked, so "
                "kdump-tools (Debian) or kexec-tools (EL) must be installed.")
      .optional("serial_console", &HostSettings::serial_console, text(kTty),
                "The serial line that is the kernel's console and has a login.")
      .optional("serial_baud", &HostSettings::serial_baud, integer(kLeastBaud, kMostBaud),
                "Its speed.")
      .check(checkHost)
      .spec();
}

}  // namespace

MUSTER_SPEC(hostSettingsSpec)

/// Nothing but a program of these packages loads the crash kernel; the image may have it too.
void checkCrashKernel(const Driver& driver, const Value& map, Reader& reader) {
  if (!driver.host || driver.host->crash_kernel.empty()) return;
  for (const auto& argument : driver.kernel_args)
    if (argument.starts_with("crashkernel="))
      reader.error(place(map, "kernel_args"),
                   fmt::format("{} and host.crash_kernel reserve memory twice", argument),
                   "keep crash_kernel");
  const bool loads = std::ranges::any_of(driver.packages, [](const std::string& package) {
    const auto name = std::string_view(package).substr(0, package.find('='));
    return name == "kdump-tools" || name == "kexec-tools" || name == "kdump-utils";
  });
  if (!loads)
    reader.warning(place(place(map, "host"), "crash_kernel"),
                   "no package of this driver loads a crash kernel",
                   "add kdump-tools (Debian, Ubuntu) or kexec-tools (EL) to packages, unless the "
                   "image has it");
}

}  // namespace muster::inventory
