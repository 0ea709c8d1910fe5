// SPDX-License-Identifier: Apache-2.0
#include "bmc/redfish/console.h"

#include <algorithm>
#include <cmath>

namespace muster::bmc {
namespace {

constexpr double kLastPort = 65'535;

bool isOn(const Json& console, const char* way) {
  return boolAt(console, std::string(way) + "/ServiceEnabled").value_or(false);
}

}  // namespace

SerialConsoleEndpoint serialConsoleOf(const Json& console) {
  SerialConsoleEndpoint out;
  out.ssh = isOn(console, "SSH");
  out.ipmi = isOn(console, "IPMI");
  if (const auto port = numberAt(console, "SSH/Port"); port && *port >= 1 && *port <= kLastPort)
    out.ssh_port = static_cast<int>(std::lround(*port));
  const auto command = textAt(console, "SSH/ConsoleEntryCommand");
  // A command line is shown and nothing is said of how it goes on: that is not known, which is not
  // the same as nothing.
  if (!command.empty() || !boolAt(console, "SSH/SharedWithManagerCLI").value_or(false))
    out.ssh_command = command;
  return out;
}

SerialConsoleEndpoint listedSerialConsoleOf(const Json& console) {
  SerialConsoleEndpoint out;
  const Json* ways = boolAt(console, "ServiceEnabled").value_or(false)
                         ? find(console, "ConnectTypesSupported")
                         : nullptr;
  if (!ways || !ways->is_array()) return out;
  out.ssh = std::find(ways->begin(), ways->end(), "SSH") != ways->end();
  out.ipmi = std::find(ways->begin(), ways->end(), "IPMI") != ways->end();
  return out;
}

Async<SerialConsoleEndpoint> RedfishConsole::serialConsole() {
  CO_TRY(at, co_await resources_.uris());
  CO_TRY(system, co_await resources_.readSystem());
  if (const Json* console = find(system->body, "SerialConsole"); console && console->is_object())
    co_return serialConsoleOf(*console);
  CO_TRY(manager, co_await resources_.session().get(at.manager));
  const Json* console = find(manager.body, "SerialConsole");
  if (!console || !console->is_object())
    co_return fail(ErrorCode::NotFound, "the BMC at " + address() + " shows no serial console");
  co_return listedSerialConsoleOf(*console);
}

}  // namespace muster::bmc
