// SPDX-License-Identifier: Apache-2.0
#include "agent/tasks/host_files.h"

#include "agent/tasks/package_manager.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace muster::agent {

namespace fs = std::filesystem;

namespace {

constexpr unsigned kSudoersMode = 0440;
constexpr std::string_view kHead = "# Written by muster for driver {}; changes are put back.\n";

std::string head(const std::string& name) { return fmt::format(kHead, name); }

bool isThere(const fs::path& root, std::string_view path) {
  std::error_code error;
  return fs::exists(root / path, error);
}

std::unexpected<Error> lacks(std::string_view what, std::string_view packages) {
  return fail(ErrorCode::NotFound,
              fmt::format("the system has no {}: add {} to the packages of the driver or the image",
                          what, packages));
}

Result<void> addTime(std::vector<HostFile>& files, const fs::path& root, const std::string& name,
                     const wire::HostSettings& settings) {
  if (settings.time_servers.empty()) return {};
  switch (timeClientOf(root)) {
    case TimeClient::None:
      return lacks("time client", "chrony");
    case TimeClient::Timesyncd:
      files.push_back({"etc/systemd/timesyncd.conf.d/90-muster.conf",
                       head(name) + fmt::format("[Time]\nNTP={}\nFallbackNTP=\n",
                                                fmt::join(settings.time_servers, " "))});
      return {};
    case TimeClient::Chrony:
      break;
  }
  // Whole: the distribution's file asks pools of the internet, which is another clock.
  auto text = head(name);
  for (const auto& server : settings.time_servers)
    text += fmt::format("server {} iburst\n", server);
  text += "driftfile /var/lib/chrony/drift\nmakestep 1 3\nrtcsync\n";
  files.push_back(
      {packageManager(root) == PackageManager::Apt ? "etc/chrony/chrony.conf" : "etc/chrony.conf",
       std::move(text)});
  return {};
}

Result<void> addAuthorities(std::vector<HostFile>& files, const fs::path& root,
                            const std::string& name, const wire::HostSettings& settings) {
  if (settings.authorities.empty()) return {};
  const bool debian = isThere(root, "usr/sbin/update-ca-certificates");
  if (!debian && !isThere(root, "usr/bin/update-ca-trust"))
    return lacks("trust store", "ca-certificates");
  // One certificate a file: update-ca-certificates passes over a file with two.
  for (const auto& [authority, pem] : settings.authorities) {
    const auto parts = certificatesIn(pem);
    for (std::size_t i = 0; i < parts.size(); ++i)
      files.push_back({fmt::format("{}/muster-{}-{}-{}.{}",
                                   debian ? "usr/local/share/ca-certificates"
                                          : "etc/pki/ca-trust/source/anchors",
                                   name, authority, i + 1, debian ? "crt" : "pem"),
                       parts[i]});
  }
  return {};
}

void addProxies(std::vector<HostFile>& files, const fs::path& root, const std::string& name,
                const wire::HostSettings& settings) {
  if (settings.http_proxy.empty() && settings.https_proxy.empty()) return;
  const auto none = fmt::format("{}", fmt::join(settings.no_proxy, ","));
  std::string shell = head(name), manager, apt = "// Written by muster; changes are put back.\n";
  const auto add = [&](std::string variable, const std::string& value) {
    if (value.empty()) return;
    for (int i = 0; i < 2; ++i) {
      shell += fmt::format("export {}='{}'\n", variable, value);
      manager += fmt::format(" \"{}={}\"", variable, value);
      std::ranges::transform(variable, variable.begin(),
                             [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    }
  };
  add("http_proxy", settings.http_proxy);
  add("https_proxy", settings.https_proxy);
  add("no_proxy", none);
  for (const auto& [scheme, url] :
       {std::pair("http", settings.http_proxy), std::pair("https", settings.https_proxy)}) {
    if (url.empty()) continue;
    apt += fmt::format("Acquire::{}::Proxy \"{}\";\n", scheme, url);
    for (const auto& host : settings.no_proxy)
      if (!host.starts_with('.') && host.find_first_of("/*:") == std::string::npos)
        apt += fmt::format("Acquire::{}::Proxy::{} \"DIRECT\";\n", scheme, host);
  }
  files.push_back({"etc/profile.d/90-muster-proxy.sh", shell});
  files.push_back({"etc/systemd/system.conf.d/90-muster-proxy.conf",
                   head(name) + "[Manager]\nDefaultEnvironment=" + manager.substr(1) + "\n"});
  if (packageManager(root) == PackageManager::Apt)
    files.push_back({"etc/apt/apt.conf.d/90muster-proxy", apt});
}

Result<void> addUsers(std::vector<HostFile>& files, const fs::path& root, const std::string& name,
                      const wire::HostSettings& settings) {
  std::string sudoers;
  for (const auto& user : settings.users) {
    std::string keys;
    for (const auto& key : user.keys) keys += key + "\n";
    if (!keys.empty())
      files.push_back({fmt::format("{}/{}", kUserKeysFolder, user.name), std::move(keys)});
    if (user.sudo != wire::SudoRight::None)
      sudoers += fmt::format("{} ALL=(ALL:ALL) {}ALL\n", user.name,
                             user.sudo == wire::SudoRight::Free ? "NOPASSWD: " : "");
  }
  if (!sudoers.empty()) {
    if (!isThere(root, "usr/sbin/visudo")) return lacks("sudo", "sudo");
    files.push_back({sudoersFile(name), head(name) + sudoers, kSudoersMode});
  }
  const bool any_key =
      std::ranges::any_of(settings.users, [](const auto& user) { return !user.keys.empty(); });
  if (!any_key && settings.ssh_user_authorities.empty()) return {};
  if (!isThere(root, "usr/sbin/sshd")) return lacks("sshd", "openssh-server");
  auto text = head(name);
  if (any_key)
    text += fmt::format("AuthorizedKeysFile .ssh/authorized_keys .ssh/authorized_keys2 /{}/%u\n",
                        kUserKeysFolder);
  if (!settings.ssh_user_authorities.empty()) {
    text += fmt::format("TrustedUserCAKeys /{}\n", userAuthoritiesFile(name));
    files.push_back({userAuthoritiesFile(name),
                     fmt::format("{}\n", fmt::join(settings.ssh_user_authorities, "\n"))});
  }
  // The first word counts in sshd's configuration, and these files are read first.
  files.push_back({"etc/ssh/sshd_config.d/10-muster.conf", std::move(text)});
  return {};
}

}  // namespace

TimeClient timeClientOf(const fs::path& root) {
  if (isThere(root, "usr/sbin/chronyd")) return TimeClient::Chrony;
  for (const char* place : {"usr/lib/systemd/systemd-timesyncd", "lib/systemd/systemd-timesyncd"})
    if (isThere(root, place)) return TimeClient::Timesyncd;
  return TimeClient::None;
}

std::string userAuthoritiesFile(const std::string& name) {
  return fmt::format("etc/muster/ssh/{}-user-authorities.pub", name);
}

std::string sudoersFile(const std::string& name) {
  auto file = "etc/sudoers.d/90-muster-" + name;
  // sudo passes over names with a dot.
  std::replace(file.begin() + static_cast<std::ptrdiff_t>(std::string_view("etc/sudoers.d").size()),
               file.end(), '.', '_');
  return file;
}

std::vector<std::string> certificatesIn(const std::string& pem) {
  constexpr std::string_view kBegin = "-----BEGIN CERTIFICATE-----",
                             kEnd = "-----END CERTIFICATE-----";
  std::vector<std::string> out;
  for (std::size_t at = 0; (at = pem.find(kBegin, at)) != std::string::npos;) {
    const auto end = pem.find(kEnd, at);
    if (end == std::string::npos) break;
    out.push_back(pem.substr(at, end + kEnd.size() - at) + "\n");
    at = end + kEnd.size();
  }
  return out;
}

std::string trustBundleOf(const fs::path& root) {
  return isThere(root, "usr/sbin/update-ca-certificates")
             ? "etc/ssl/certs/ca-certificates.crt"
             : "etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem";
}

Result<std::vector<HostFile>> hostFiles(const fs::path& root, const std::string& name,
                                        const wire::HostSettings& settings) {
  std::vector<HostFile> files;
  TRY_OK(addTime(files, root, name, settings));
  TRY_OK(addAuthorities(files, root, name, settings));
  addProxies(files, root, name, settings);
  TRY_OK(addUsers(files, root, name, settings));
  std::ranges::sort(files, {}, &HostFile::path);
  return files;
}

}  // namespace muster::agent
