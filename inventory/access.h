// What a profile says about reaching and trusting its machines beside the BMC's own address: the serial console, the TPM.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace muster::inventory {

enum class ConsoleVia { None, Sol, Libvirt, Socket };

/// Where the serial console of a machine is.
struct ConsoleSpec {
  ConsoleVia via = ConsoleVia::None;
  int port = 623;          ///< of IPMI, for sol
  std::string credential;  ///< for sol; empty: the BMC's
  std::string path;        ///< for socket: a Unix socket or a terminal device; {node} stands for the node's name
};

/// What a machine's TPM 2.0 must prove before the machine gets its certificate, and with it anything else.
struct TpmSpec {
  std::map<std::string, std::vector<std::string>> pcrs;  ///< number → SHA-256 values that are right; any other is refused
  std::string ek_roots_pem;                              ///< whose signature on the EK certificate counts; empty: the first EK is kept
};

}  // namespace muster::inventory
