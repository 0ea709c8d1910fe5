// SPDX-License-Identifier: Apache-2.0
#include "cli/arguments/host_commands.h"

#include <fmt/format.h>

namespace muster::cli {
namespace {

using enum Place;

constexpr std::string_view kInventoryFiles = "it reads the inventory's files";
constexpr std::string_view kKeys = "the site's keys do not leave its host";
constexpr std::string_view kIdentity =
    "whom a TPM or an agent is believed to be is decided on the site's host";
constexpr std::string_view kBmcSettings = "it asks the BMC from the site's host";
constexpr std::string_view kFabric = "it works with the fabric, or with files, from a host on it";
constexpr std::string_view kImageFiles = "it works with files of the site's image cache";
constexpr std::string_view kProbes = "it listens and probes on the site's networks";
constexpr std::string_view kNotifications =
    "receivers' secrets are known to the site's host, and so are the ways to them";

}  // namespace

const std::vector<HostCommand>& hostCommands() {
  static const std::vector<HostCommand> rows{
      {"audit archive", SiteHost, "it moves entries of the store into a file beside it"},
      {"audit verify", SiteHost, "it reads the whole log of the store, or an archive"},
      {"backup", SiteHost, "it holds the site's keys and secrets, which do not leave its host"},
      {"bmc approve-key", SiteHost, kIdentity},
      {"bmc boot", SiteHost, kBmcSettings},
      {"bmc boot-order", SiteHost, kBmcSettings},
      {"bmc forget-key", SiteHost, kIdentity},
      {"bmc forget-tpm", SiteHost, kIdentity},
      {"bmc media", SiteHost, kBmcSettings},
      {"bmc revoke-key", SiteHost, kIdentity},
      {"cert export", SiteHost, "it writes a folder of the site's host"},
      {"completion", AnyHost, "it prints words of this program"},
      {"discover scan", SiteHost, kProbes},
      {"discover watch", SiteHost, kProbes},
      {"doctor", SiteHost, "it looks at this host"},
      {"fabric diff", SiteHost,
       "it discovers the fabric from a host on it (`fabric show`: the newest look)"},
      {"fabric health", SiteHost,
       "it reads counters from a host on the fabric (`fabric show`: the newest reading)"},
      {"fabric plan", SiteHost, kInventoryFiles},
      {"fabric plot", SiteHost, kFabric},
      {"fabric qos-check", SiteHost, kFabric},
      {"fabric rehearse", SiteHost, "it simulates the fabric on this host"},
      {"fabric render", SiteHost, "it writes files of the fabric's declaration"},
      {"firmware sign", SiteHost, kKeys},
      {"image diff", SiteHost, kImageFiles},
      {"image export", SiteHost, kImageFiles},
      {"image gc", SiteHost, kImageFiles},
      {"image import", SiteHost, kImageFiles},
      {"image key", SiteHost, kKeys},
      {"image sign", SiteHost, kKeys},
      {"image verify", SiteHost, kImageFiles},
      {"init", AnyHost, "it writes an inventory here"},
      {"inventory", AnyHost, kInventoryFiles},
      {"key", SiteHost, kKeys},
      {"lab", AnyHost, "the twin runs on this host"},
      {"man", AnyHost, "it prints words of this program"},
      {"notify secret", AnyHost, "it makes a new secret, for the inventory's files"},
      {"notify test", SiteHost, kNotifications},
      {"restore", SiteHost, "it makes the state folder of this host anew"},
      {"rma", SiteHost, "it gathers files of the site's host"},
      {"server", SiteHost, "it is the server"},
      {"store", SiteHost, "it reads the store itself"},
      {"ui", SiteHost,
       "it opens the page of this host's server; a browser elsewhere opens https://HOST:PORT"},
      {"validate checks", AnyHost, "it prints the checks of this program"},
  };
  return rows;
}

const HostCommand* hostCommandOf(std::string_view words) {
  for (const auto& row : hostCommands())
    if (words == row.words || (words.starts_with(row.words) && words[row.words.size()] == ' '))
      return &row;
  return nullptr;
}

std::string commandWords(const CLI::App& app) {
  std::string out;
  for (const auto* at = &app; !at->get_subcommands().empty();) {
    at = at->get_subcommands().front();
    out += (out.empty() ? "" : " ") + at->get_name();
  }
  return out;
}

std::string refusalText(const HostCommand& command, std::string_view words) {
  return command.place == Place::AnyHost
             ? fmt::format("`muster {}` asks no server: {}; leave out --server", words, command.why)
             : fmt::format(
                   "`muster {}` asks no server: {}; leave out --server, or run it on a "
                   "host of the site",
                   words, command.why);
}

}  // namespace muster::cli
