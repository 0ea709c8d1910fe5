// SPDX-License-Identifier: Apache-2.0
// The files that hold the site's secrets: whether muster can read them, and nobody else.
#include "app/doctor/checks.h"
#include "inventory/model/cluster.h"
#include "inventory/model/credentials.h"
#include "inventory/model/notifications.h"
#include "inventory/model/pools.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

namespace muster::app::doctor {

namespace fs = std::filesystem;
using enum DoctorVerdict;

namespace {

struct SecretFile {
  fs::path file;
  std::string whose;
};

/// Every file of the inventory that holds one.
std::vector<SecretFile> secretFilesOf(const inventory::Cluster& cluster) {
  std::vector<SecretFile> out;
  const auto add = [&out](const inventory::SecretRef& secret, std::string whose) {
    if (const auto* file = std::get_if<fs::path>(&secret.source))
      out.push_back({*file, std::move(whose)});
  };
  for (const auto& [name, credential] : cluster.credentials) {
    add(credential.password, "the credential " + name);
    add(credential.rotate_to, "the credential " + name);
  }
  for (const auto& [name, receiver] : cluster.notifications)
    if (receiver.secret) add(*receiver.secret, "the receiver of notifications " + name);
  for (const auto& [name, pool] : cluster.pools) {
    if (!pool.kubernetes) continue;
    add(pool.kubernetes->token, "the pool " + name);
    if (const auto& key = pool.kubernetes->client_key; !key.empty())
      out.push_back({key, "the pool " + name});
  }
  return out;
}

/// Once each: several may name one file.
std::string listed(std::vector<std::string> texts, const char* between) {
  std::ranges::sort(texts);
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  return fmt::format("{}", fmt::join(texts, between));
}

}  // namespace

void lookAtSecrets(const inventory::Cluster& cluster, Lines& out) {
  std::vector<std::string> open, open_files, shut, shut_files;
  for (const auto& [file, whose] : secretFilesOf(cluster)) {
    const auto said = fmt::format("{} (of {})", file.string(), whose);
    struct stat status{};
    const bool is_seen = ::stat(file.c_str(), &status) == 0;
    // One that is not there is an error of the inventory, which says so itself.
    if (!is_seen && errno != EACCES) continue;
    if (is_seen && (status.st_mode & 0077) != 0) {
      open.push_back(said);
      open_files.push_back(file.string());
    }
    if (!is_seen || ::access(file.c_str(), R_OK) != 0) {
      shut.push_back(said);
      shut_files.push_back(file.string());
    }
  }
  if (!shut.empty())
    out.push_back({"secrets", Bad,
                   fmt::format("this user ({}) cannot read {}", ::geteuid(), listed(shut, ", ")),
                   "what it opens (a BMC, a receiver, a pool) refuses muster",
                   fmt::format("chown {} {}", ::geteuid(), listed(shut_files, " "))});
  if (!open.empty())
    out.push_back({"secrets", Bad, fmt::format("other users can read {}", listed(open, ", ")),
                   "who reads it may do with it what muster does",
                   fmt::format("chmod 600 {}", listed(open_files, " "))});
  if (shut.empty() && open.empty()) ok(out, "secrets", "readable by their owner alone");
}

}  // namespace muster::app::doctor
