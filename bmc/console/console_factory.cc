// SPDX-License-Identifier: Apache-2.0
// Which console a node has: what the inventory says.
#include "bmc/console/console_recorder.h"
#include "bmc/console/shared.h"
#include "bmc/ipmi/ipmi_bmc.h"
#include "bmc/trust.h"
#include "inventory/model/access.h"
#include "inventory/model/bmc_trust.h"
#include "inventory/model/cluster.h"
#include "inventory/model/credentials.h"
#include "inventory/model/profile.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::bmc {
namespace {

using inventory::ConsoleVia;

/// The same account as Redfish's unless another is declared, and the same memory: a password that
/// one was refused is not tried by the other.
Result<ConsoleAccount> accountOf(const ConsoleServices& use, const inventory::Node& node,
                                 const inventory::ConsoleSpec& spec) {
  const auto& name =
      spec.credential.empty() ? inventory::bmcCredentialOf(use.cluster, node) : spec.credential;
  const auto credential = use.cluster.credentials.find(name);
  if (credential == use.cluster.credentials.end())
    return fail(ErrorCode::NotFound,
                fmt::format("the inventory has no credential \"{}\" for the console of {}", name,
                            node.name.str()));
  const bool own = spec.credential.empty() && !node.bmc.username_override.empty();
  ConsoleAccount out;
  out.username = own ? node.bmc.username_override : credential->second.username;
  auto* store = &use.store;
  out.password = [store, node = node.name, account = credential->second, user = out.username] {
    return passwordOf(account, user, TrustMemory(*store, node));
  };
  out.may_try = [store, node = node.name, host = hostOf(node.bmc.url),
                 user = out.username](const Secret& password) {
    return TrustMemory(*store, node).mayTry(host, user, password);
  };
  out.refused = [store, node = node.name, user = out.username](const Secret& password) {
    if (auto kept = TrustMemory(*store, node).rememberRefusal(user, password); !kept)
      logWarning("console", "{}: {}", node.str(), kept.error().str());
  };
  return out;
}

constexpr std::size_t kMaxCommandChars = 200;  ///< as of a declared one

bool isCommandLine(const std::string& text) {
  return text.size() <= kMaxCommandChars &&
         std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return c >= 0x20 && c <= 0x7e; });
}

/// What is declared holds; what is not, the BMC says.
Result<SshConsoleEndpoint> placeFrom(const SerialConsoleEndpoint& told,
                                     const inventory::ConsoleSpec& spec, const NodeName& node) {
  if (!told.ssh)
    return fail(ErrorCode::NotFound,
                fmt::format("the BMC of {} does not offer its serial console by SSH{}", node.str(),
                            told.ipmi ? ", but by IPMI: declare console: {via: sol}"
                                      : "; switch it on there"));
  if (spec.command.empty() && (!told.ssh_command || !isCommandLine(*told.ssh_command)))
    return fail(ErrorCode::InvalidInput,
                fmt::format("the BMC of {} offers its serial console by SSH, but does not say by "
                            "what command; declare it: console: {{via: redfish, command: …}}",
                            node.str()));
  return SshConsoleEndpoint{spec.port.value_or(told.ssh_port.value_or(kSshPort)),
                            spec.command.empty() ? *told.ssh_command : spec.command};
}

/// A BMC that tells of no console may have one all the same, where it is declared.
Async<SshConsoleEndpoint> askForPlace(ConsoleServices use, inventory::ConsoleSpec spec,
                                      NodeName node) {
  auto told = co_await use.bmcs.at(node).serialConsole();
  if (!told && told.error().code() == ErrorCode::NotFound && spec.port)
    co_return SshConsoleEndpoint{*spec.port, spec.command};
  if (!told) co_return std::unexpected(std::move(told).error());
  CO_TRY(place, placeFrom(*told, spec, node));
  CO_TRY_OK(TrustMemory(use.store, node).setConsoleEndpoint(*told));
  co_return place;
}

/// A BMC is asked once: two programs that log in at its Redfish, `muster console` beside `muster
/// apply`, would end each other's sessions.
std::unique_ptr<ConsoleSource> sshOf(const ConsoleServices& use, const inventory::Node& node,
                                     const inventory::ConsoleSpec& spec,
                                     const std::filesystem::path& run) {
  auto account = accountOf(use, node, spec);
  if (!account) return makeNoConsole(account.error().text());
  SshOptions options{hostOf(node.bmc.url), node.name, std::move(*account), {}, {}, {}, {}, run};
  if (spec.port && !spec.command.empty()) {
    options.place = SshConsoleEndpoint{*spec.port, spec.command};
  } else {
    options.ask = [use, spec, name = node.name] { return askForPlace(use, spec, name); };
    const auto known = TrustMemory(use.store, node.name).consoleEndpoint();
    const auto place = known && *known
                           ? placeFrom(**known, spec, node.name)
                           : Result<SshConsoleEndpoint>(fail(ErrorCode::NotFound, "not known"));
    if (place) options.place = *place;
  }
  auto* store = &use.store;
  const auto declared = inventory::bmcTrustOf(use.cluster, node).ssh_key;
  options.key_declared = !declared.empty();
  const bool must_be_declared = use.cluster.bmc_trust == inventory::BmcTrustPolicy::Declared;
  options.host_keys = [store, name = node.name, host = options.host, declared,
                       must_be_declared]() -> Result<std::string> {
    if (!declared.empty()) return fmt::format("{} {}\n", name.str(), declared);
    if (!must_be_declared) return TrustMemory(*store, name).hostKeys();
    return fail(ErrorCode::Denied,
                fmt::format("bmc_trust is declared, and the inventory does not declare the SSH "
                            "host key of {}'s BMC; no password was sent. See what it shows "
                            "(ssh-keyscan {}), compare it with the BMC's own display or web page, "
                            "and write it as bmc_ssh_key of {}",
                            name.str(), host, name.str()));
  };
  options.keep_host_keys = [store, name = node.name](std::string lines) {
    return TrustMemory(*store, name).setHostKeys(lines);
  };
  return makeSshConsole(std::move(options), use.clock);
}

std::unique_ptr<ConsoleSource> solOf(const ConsoleServices& use, const inventory::Node& node,
                                     const inventory::ConsoleSpec& spec) {
  auto account = accountOf(use, node, spec);
  if (!account) return makeNoConsole(account.error().text());
  return makeSolConsole(
      {hostOf(node.bmc.url), spec.port.value_or(inventory::kIpmiPort), std::move(*account), {}},
      use.clock);
}

std::unique_ptr<ConsoleSource> consoleOf(const ConsoleServices& use, const inventory::Node& node,
                                         const std::filesystem::path& run) {
  constexpr std::string_view kLibvirt = "libvirt:", kNode = "{node}";
  const bool domain = node.bmc.url.starts_with(kLibvirt);
  const auto& declared = use.cluster.profileOf(node).console;
  const auto spec =
      declared ? *declared
               : inventory::ConsoleSpec{.via = domain ? ConsoleVia::Libvirt : ConsoleVia::None};
  const auto unlessDomain = [&](std::string_view what, auto make) {
    return domain ? makeNoConsole(
                        fmt::format("{} is a libvirt domain: it has no {}", node.name.str(), what))
                  : make();
  };
  switch (spec.via) {
    case ConsoleVia::None:
      return nullptr;
    case ConsoleVia::Sol:
      return unlessDomain("serial over LAN", [&] { return solOf(use, node, spec); });
    case ConsoleVia::Redfish:
      return unlessDomain("Redfish", [&] { return sshOf(use, node, spec, run); });
    case ConsoleVia::Libvirt:
      return domain ? makeDomainConsole(node.bmc.url.substr(kLibvirt.size()), {}, use.workers)
                    : makeNoConsole(
                          fmt::format("the BMC of {} is no libvirt domain", node.name.str()));
    case ConsoleVia::Socket: {
      auto path = spec.path;
      if (const auto at = path.find(kNode); at != std::string::npos)
        path.replace(at, kNode.size(), node.name.str());
      return makeSocketConsole(path);
    }
  }
  return nullptr;
}

}  // namespace

ConsoleFactory makeConsoleFactory(ConsoleServices use, std::filesystem::path run_folder) {
  return
      [use, run = std::move(run_folder)](const NodeName& name) -> std::unique_ptr<ConsoleSource> {
        const auto* node = use.cluster.findNode(name);
        auto source = node ? consoleOf(use, *node, run) : nullptr;
        return source ? shareConsole(std::move(source), run, name) : nullptr;
      };
}

}  // namespace muster::bmc
