// SPDX-License-Identifier: Apache-2.0
// Cluster: look-ups, and secrets at the moment of use.
#include "inventory/model/cluster.h"

#include "base/io/process.h"
#include "base/io/regular_file.h"
#include "inventory/model/sections.h"
#include "inventory/parse/hostlist.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

namespace muster::inventory {

static_assert(BmcTrustPolicy{} == BmcTrustPolicy::FirstContact);  // what Cluster begins with

namespace {

constexpr std::size_t kMaxSecretBytes = 64 << 10;
constexpr std::chrono::seconds kSecretCommandTimeout{30};

Result<Secret> usable(std::string text, const std::string& origin) {
  if (text.ends_with('\n')) text.pop_back();
  if (text.ends_with('\r')) text.pop_back();
  if (text.empty())
    return fail(ErrorCode::NotFound,
                fmt::format("the secret from {} is empty; write it there", origin));
  return Secret(std::move(text));
}

Result<Secret> fromCommand(const std::string& line) {
  io::Command command;
  command.program = "/bin/sh";
  command.args = {"-c", line};
  command.timeout = kSecretCommandTimeout;
  command.max_output_bytes = kMaxSecretBytes;
  std::string origin = fmt::format("the command \"{}\"", line.substr(0, line.find(' ')));
  auto done = io::runBlocking(command);
  if (!done)
    return fail(
        ErrorCode::NotFound,
        done.error().code() == ErrorCode::Timeout
            ? fmt::format(
                  "{} did not end within {} s", origin,
                  std::chrono::duration_cast<std::chrono::seconds>(kSecretCommandTimeout).count())
            : fmt::format("{} cannot be started", origin));
  if (done->code != 0)
    return fail(
        ErrorCode::NotFound,
        fmt::format("{} ended with status {}; run it by hand to see why", origin, done->code));
  return usable(done->out.substr(0, done->out.find('\n')), origin);
}

}  // namespace

Result<Secret> SecretRef::read() const {
  if (!env.empty()) {
    const char* value = std::getenv(env.c_str());
    if (!value)
      return fail(
          ErrorCode::NotFound,
          fmt::format("the environment variable {} is not set; export it before muster starts",
                      env));
    return usable(value, env);
  }
  if (const auto* path = std::get_if<std::filesystem::path>(&source)) {
    auto text = io::readRegularFile(*path, kMaxSecretBytes);
    if (!text)
      return fail(ErrorCode::NotFound,
                  fmt::format("the secret cannot be read: {}", text.error().text()));
    return usable(std::move(*text), path->string());
  }
  if (const auto* line = std::get_if<std::string>(&source)) return fromCommand(*line);
  return fail(ErrorCode::NotFound,
              "no secret is declared; write password: {file: …} in the inventory");
}

BmcTrust bmcTrustOf(const Cluster& cluster, const Node& node) {
  const auto& of_profile = cluster.profileOf(node).bmc_trust;
  BmcTrust trust = node.bmc.trust->declaresCertificate() ? *node.bmc.trust : *of_profile;
  trust.ssh_key = node.bmc.trust->ssh_key.empty() ? of_profile->ssh_key : node.bmc.trust->ssh_key;
  return trust;
}

const std::string& bmcCredentialOf(const Cluster& cluster, const Node& node) {
  return node.bmc.credential.empty() ? cluster.profileOf(node).bmc_credential : node.bmc.credential;
}

std::string_view word(BmcTrustPolicy policy) {
  return policy == BmcTrustPolicy::Declared ? "declared" : "first-contact";
}

const Node* Cluster::findNode(const NodeName& name) const {
  auto found = std::lower_bound(nodes.begin(), nodes.end(), name,
                                [](const Node& node, const NodeName& wanted) {
                                  return naturalLess(node.name.str(), wanted.str());
                                });
  return found != nodes.end() && found->name == name ? &*found : nullptr;
}

const Profile& Cluster::profileOf(const Node& node) const { return profiles.at(node.profile); }

bool Cluster::isLive(const Profile& profile) const {
  const auto image = images.find(profile.image);
  return image != images.end() && image->second.kind == ImageKind::Live;
}

const Network& Cluster::provisioning() const {
  auto found = std::find_if(networks.begin(), networks.end(),
                            [](const Network& network) { return network.name == "provisioning"; });
  if (found == networks.end()) std::abort();  // load() refuses such an inventory
  return *found;
}

}  // namespace muster::inventory
