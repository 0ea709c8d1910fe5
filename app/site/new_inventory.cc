// SPDX-License-Identifier: Apache-2.0
#include "app/site/new_inventory.h"

#include "base/io/files.h"
#include "base/ip_address.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <regex>

namespace muster::app {
namespace {

constexpr int kMostPrefixBits = 28;  ///< fewer than 16 addresses are no provisioning network
constexpr std::uint32_t kMostPoolAddresses = 1024;

std::unexpected<Error> wrong(std::string_view answer, const std::string& value,
                             const std::string& must) {
  return fail(ErrorCode::InvalidInput, fmt::format("{} \"{}\": {}", answer, value, must));
}

bool fits(const std::string& text, const char* pattern) {
  return std::regex_match(text, std::regex(pattern));
}

/// The end of the network, away from where people number machines.
std::string defaultRange(const Cidr& network) {
  const std::uint32_t size = std::uint32_t{1} << (32 - network.prefix_bits);
  const auto pool = std::min(kMostPoolAddresses, size / 4);
  return fmt::format("{}-{}", network.host(size - 1 - pool).str(), network.host(size - 2).str());
}

}  // namespace

Result<std::string> newInventory(const SiteAnswers& answers) {
  if (!fits(answers.name, "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"))
    return wrong("the name of the cluster", answers.name,
                 "lower-case letters, digits and hyphens, as in a host name");
  const auto network = Cidr::parse(answers.network);
  if (!network) return wrong("the provisioning network", answers.network, network.error().text());
  if (network->prefix_bits > kMostPrefixBits || network->prefix_bits < 8)
    return wrong("the provisioning network", answers.network,
                 fmt::format("a prefix of 8 to {} bits", kMostPrefixBits));
  const auto text = answers.controller.empty() ? network->host(1).str() : answers.controller;
  const auto controller = Ipv4::parse(text);
  if (!controller) return wrong("the controller", text, "an IPv4 address");
  if (!network->contains(*controller))
    return wrong("the controller", text, fmt::format("an address in {}", network->str()));
  if (answers.dhcp != "authoritative" && answers.dhcp != "proxy")
    return wrong("DHCP", answers.dhcp, "authoritative or proxy");
  const auto range = answers.range.empty() ? defaultRange(*network) : answers.range;
  if (!fits(range, "[0-9.]{7,15}-[0-9.]{7,15}"))
    return wrong("the DHCP range", range, "two addresses, 10.20.240.1-10.20.247.254");
  const auto dash = range.find('-');
  const auto first = Ipv4::parse(range.substr(0, dash)), last = Ipv4::parse(range.substr(dash + 1));
  if (!first || !last || !network->contains(*first) || !network->contains(*last) ||
      first->value() > last->value())
    return wrong("the DHCP range", range,
                 fmt::format("two addresses in {}, the lower one first", network->str()));
  if (controller->value() >= first->value() && controller->value() <= last->value())
    return wrong("the DHCP range", range,
                 fmt::format("one without the controller's address {}", controller->str()));
  const auto bmcs = Cidr::parse(answers.bmc_network);
  if (!answers.bmc_network.empty() && !bmcs &&
      !fits(answers.bmc_network, "[0-9.]{7,15}-[0-9.]{7,15}"))
    return wrong("the BMCs' network", answers.bmc_network,
                 "10.20.250.0/24, or a range 10.20.250.1-10.20.250.200");
  if (!fits(answers.bmc_user, "[A-Za-z0-9._@-]{1,64}"))
    return wrong("the BMCs' user", answers.bmc_user, "letters, digits and . _ @ -");
  if (!fits(answers.bmc_password_file, "[A-Za-z0-9._/@+-]{1,200}"))
    return wrong("the file of the BMCs' password", answers.bmc_password_file,
                 "a path of letters, digits and . _ @ + - /");
  if (!fits(answers.suite, "[a-z]{3,30}"))
    return wrong("the suite", answers.suite, "bookworm, trixie, …");
  if (answers.scheduler != "none" && answers.scheduler != "slurm")
    return wrong("the scheduler", answers.scheduler,
                 "none or slurm (Kubernetes: see pools.md, it needs a server and a token)");
  const bool slurm = answers.scheduler == "slurm";
  const bool serves = answers.dhcp == "authoritative";

  std::string out = fmt::format(
      R"(# What this site should be. After each change: muster inventory check
# Every key with its meaning: muster inventory schema, or docs/inventory.md.
cluster: {{name: {}}}

networks:
  provisioning:                      # where nodes boot and are installed; its own network or VLAN
    cidr: {}
    controller: {}        # this host's address on it: muster listens here
    dhcp: {{mode: {}{}}}
)",
      answers.name, network->str(), controller->str(), answers.dhcp,
      serves ? ", range: " + range : "");
  out += serves ? "    # Machines without a row in `nodes` get an address of the range. Is there "
                  "another DHCP server? muster doctor looks; then {mode: proxy}.\n"
                : "    # Another server gives the addresses; muster only tells machines what to "
                  "boot.\n";
  out += fmt::format(R"(
credentials:
  bmc:
    username: {}
    password: {{file: {}}}   # mode 0600; the inventory never holds a password

images:
  base:
    build:
      suite: {}
      packages: [linux-image-amd64{}]
    # Who may log in as root (a public key each):
    # authorized_keys: ["ssh-ed25519 AAAA… me@example"]

gates:
  burn-in: {{level: quick, groups: [host]}}   # with GPUs: groups: [host, gpu]; docs/validation.md
)",
                     answers.bmc_user, answers.bmc_password_file, answers.suite,
                     slurm ? ", slurmd, munge" : "");
  out +=
      slurm
          ? "\npools:\n  batch: {slurm: {partition: batch}}   # the partition in slurm.conf\n"
          : "\n# pools:\n#   batch: {slurm: {partition: batch}}   # or Kubernetes: docs/pools.md\n";
  out += fmt::format(R"(
profiles:
  compute:                           # what a kind of node should be
    image: base
    gates: [burn-in]
{}    # expect: {{gpus: 8}}              # what inspection must find
    # drivers: [nvidia-570]            # docs/drivers.md
    # firmware: hgx-2026.1             # docs/firmware.md

discovery:
{}  credentials: [bmc]

# One line a node, or a hostlist with a CSV file (columns name, rack, unit, mac, address, bmc, serial):
#   - {{names: "node[001-064]", profile: compute, from: rows/racks.csv}}
# muster discover scan finds BMCs, muster discover approve takes them, muster discover --write rows/racks.csv adds their rows
# (rows/ is a folder that user muster may write: docs/first-machine.md).
nodes: []
)",
                     slurm ? "    pool: batch\n" : "    # pool: batch\n",
                     answers.bmc_network.empty()
                         ? "  # ranges: [10.20.250.0/24]          # where BMCs are looked for\n"
                         : fmt::format("  ranges: [{}]\n", answers.bmc_network));
  return out;
}

Result<void> writeNewInventory(const std::filesystem::path& file, const std::string& text) {
  if (file.has_parent_path()) TRY_OK(io::makeDirs(file.parent_path()));
  // Whole or not at all, and never over another: written beside, then linked to its name.
  const auto beside = std::filesystem::path(file.string() + ".new-" + std::to_string(::getpid()));
  TRY_OK(io::writeFileAtomic(beside, text, 0644));
  const int error = ::link(beside.c_str(), file.c_str()) == 0 ? 0 : errno;
  ::unlink(beside.c_str());
  if (error == 0) return {};
  if (error == EEXIST)
    return fail(ErrorCode::Conflict,
                fmt::format("{} is there already and was left as it is; name another: muster "
                            "--inventory FILE init",
                            file.string()));
  return fail(ErrorCode::Unavailable,
              fmt::format("{} cannot be written: {}", file.string(), std::strerror(error)));
}

}  // namespace muster::app
