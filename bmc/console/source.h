// SPDX-License-Identifier: Apache-2.0
// Seam: where a machine's serial console is. A new kind is one more of these.
#pragma once

#include "base/clock.h"
#include "base/ids.h"
#include "base/io/dialogue.h"
#include "base/log.h"
#include "bmc/bmc.h"
#include "inventory/model/access.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace muster::bmc {

class ConsoleSource {
 public:
  virtual ~ConsoleSource() = default;
  virtual std::string name() const = 0;  ///< for people
  /// The line, in both directions. Nobody's session is ended for it.
  /// Errors: NotFound (there is none), Conflict (somebody else's session has it), Denied,
  /// Unavailable
  virtual Async<std::unique_ptr<io::Dialogue>> open() = 0;
  /// Ends whoever's session has the line: what an operator orders. Sources that need no such thing
  /// do nothing.
  virtual Async<void> evict() { co_return Result<void>(); }
};

/// Who logs in, under the same lock-out protection whatever the way.
struct ConsoleAccount {
  std::string username;
  std::function<Result<Secret>()> password;
  std::function<Result<void>(const Secret&)> may_try = [](const Secret&) {
    return Result<void>();
  };  ///< before anything is sent
  std::function<void(const Secret&)> refused = [](const Secret&) {};  ///< the BMC did not take it
};

/// IPMI serial over LAN by ipmitool. The password goes by the environment of that one process,
/// never by its arguments.
struct SolOptions {
  std::string host;
  int port = inventory::kIpmiPort;
  ConsoleAccount account;
  std::vector<std::string> more_args = {};  ///< of ipmitool: a cipher suite, timeouts
};
std::unique_ptr<ConsoleSource> makeSolConsole(SolOptions options, Clock& clock);

/// Where SSH leads to the console.
struct SshConsoleEndpoint {
  int port = kSshPort;
  std::string command;  ///< typed at the BMC's command line once that shows its prompt; "": the
                        ///< session is the console
  friend bool operator==(const SshConsoleEndpoint&, const SshConsoleEndpoint&) = default;
};
/// The console behind a BMC's SSH server, by OpenSSH's client.
struct SshOptions {
  std::string host;
  NodeName node;
  ConsoleAccount account;
  std::optional<SshConsoleEndpoint> place;  ///< as it is known, or declared
  std::function<Async<SshConsoleEndpoint>()>
      ask;  ///< the BMC: where nothing is known, and where nobody
            ///< answers at what is; null: what is declared holds
  std::function<Result<std::string>()>
      host_keys;  ///< of first contact, as ssh writes them under the node's name; "": none yet
  std::function<Result<void>(std::string)> keep_host_keys;
  std::filesystem::path
      folder;                 ///< for the time of a login: ssh reads and writes host keys in files
  bool key_declared = false;  ///< host_keys are the inventory's, not those of first contact
};
std::unique_ptr<ConsoleSource> makeSshConsole(SshOptions options, Clock& clock);

/// A Unix socket that somebody listens on, or a terminal device.
std::unique_ptr<ConsoleSource> makeSocketConsole(std::filesystem::path path);

/// The first serial port of a running libvirt domain on this host, as libvirt tells where it is.
std::unique_ptr<ConsoleSource> makeDomainConsole(std::string domain, std::string uri,
                                                 Workers& workers);
/// Where a running domain's serial port is: a terminal device or a socket. Errors: NotFound
/// (neither)
Result<std::filesystem::path> serialOfDomain(const std::string& domain_xml);

/// There is none; `why` says so.
std::unique_ptr<ConsoleSource> makeNoConsole(std::string why);

}  // namespace muster::bmc
