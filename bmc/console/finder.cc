// Which console a node has: what the inventory says.
#include "bmc/console/desk.h"
#include "bmc/console/shared.h"
#include "bmc/ipmi_bmc.h"
#include "bmc/trust.h"

#include <fmt/format.h>

namespace muster::bmc {
namespace {

using inventory::ConsoleVia;

std::unique_ptr<ConsoleSource> solOf(const inventory::Cluster& cluster, const inventory::Node& node, const inventory::ConsoleSpec& spec, lifecycle::Store& store,
                                     Clock& clock) {
  const auto& name = spec.credential.empty() ? cluster.profileOf(node).bmc_credential : spec.credential;
  const auto credential = cluster.credentials.find(name);
  if (credential == cluster.credentials.end()) return makeNoConsole(fmt::format("the inventory has no credential \"{}\" for the console of {}", name, node.name.str()));
  SolOptions options;
  options.host = hostOf(node.bmc.url);
  options.port = spec.port;
  const bool own = spec.credential.empty() && !node.bmc.username_override.empty();
  options.username = own ? node.bmc.username_override : credential->second.username;
  options.password = [&store, node = node.name, account = credential->second, user = options.username] { return passwordOf(account, user, TrustMemory(store, node)); };
  // The same account, the same memory: a password that Redfish was refused is not tried here, nor the other way round.
  options.may_try = [&store, node = node.name, host = options.host, user = options.username](const Secret& password) { return TrustMemory(store, node).mayTry(host, user, password); };
  options.refused = [&store, node = node.name, user = options.username](const Secret& password) {
    if (auto kept = TrustMemory(store, node).rememberRefusal(user, password); !kept) logWarning("console", "{}: {}", node.str(), kept.error().str());
  };
  return makeSolConsole(std::move(options), clock);
}

std::unique_ptr<ConsoleSource> consoleOf(const inventory::Cluster& cluster, const inventory::Node& node, lifecycle::Store& store, Clock& clock, Workers& workers) {
  constexpr std::string_view kLibvirt = "libvirt:", kNode = "{node}";
  const bool domain = node.bmc.url.starts_with(kLibvirt);
  const auto spec = cluster.profileOf(node).console.value_or(inventory::ConsoleSpec{domain ? ConsoleVia::Libvirt : ConsoleVia::None, {}, {}, {}});
  switch (spec.via) {
    case ConsoleVia::None: return nullptr;
    case ConsoleVia::Sol:
      return domain ? makeNoConsole(fmt::format("{} is a libvirt domain: it has no serial over LAN", node.name.str())) : solOf(cluster, node, spec, store, clock);
    case ConsoleVia::Libvirt:
      return domain ? makeDomainConsole(node.bmc.url.substr(kLibvirt.size()), {}, workers) : makeNoConsole(fmt::format("the BMC of {} is no libvirt domain", node.name.str()));
    case ConsoleVia::Socket: {
      auto path = spec.path;
      if (const auto at = path.find(kNode); at != std::string::npos) path.replace(at, kNode.size(), node.name.str());
      return makeSocketConsole(path);
    }
  }
  return nullptr;
}

}  // namespace

ConsoleFinder inventoryConsoles(const inventory::Cluster& cluster, lifecycle::Store& store, Clock& clock, Workers& workers, std::filesystem::path run_folder) {
  return [&cluster, &store, &clock, &workers, run = std::move(run_folder)](const NodeName& name) -> std::unique_ptr<ConsoleSource> {
    const auto* node = cluster.findNode(name);
    auto source = node ? consoleOf(cluster, *node, store, clock, workers) : nullptr;
    return source ? shareConsole(std::move(source), run, name) : nullptr;
  };
}

}  // namespace muster::bmc
