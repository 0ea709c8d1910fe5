// SPDX-License-Identifier: Apache-2.0
// What a profile says about reaching and trusting its machines beside the BMC's own address: the
// serial console, IPMI, the PDU, the BMC's certificate, the TPM.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace muster::inventory {

enum class ConsoleVia { None, Sol, Redfish, Libvirt, Socket };

inline constexpr int kIpmiPort = 623;

/// Where the serial console of a machine is.
struct ConsoleSpec {
  ConsoleVia via = ConsoleVia::None;
  std::optional<int>
      port;  ///< of IPMI, for sol (absent: 623), or of SSH, for redfish (absent: what the BMC says)
  std::string credential;  ///< for sol and redfish; empty: the BMC's
  std::string
      command;  ///< for redfish: what is typed at the BMC's command line; empty: what the BMC says
  std::string
      path;  ///< for socket: a Unix socket or a terminal device; {node} stands for the node's name
};

/// IPMI beside Redfish: for what a BMC's Redfish does not offer or does not answer.
struct IpmiSpec {
  int port = kIpmiPort;
  int cipher_suite = 17;  ///< of RMCP+; 17 is HMAC-SHA-256
};

/// Who switches the outlets of a machine. {node}, {rack} and {unit} stand for the node's own in
/// every word.
struct PowerHook {
  std::vector<std::string> off, on;  ///< program and arguments, no shell
  int seconds_off =
      330;  ///< roots of trust and CPLDs want five to six minutes (DGX H100 order, step 8)
};

/// Who signs the certificates of BMCs.
struct BmcCertificateSpec {
  std::vector<std::string> sign;  ///< program and arguments: the request (PEM) on its standard
                                  ///< input, certificate and chain (PEM) on its output
};

/// What a machine's TPM 2.0 must prove before the machine gets its certificate, and with it
/// anything else.
struct TpmSpec {
  std::map<std::string, std::vector<std::string>>
      pcrs;  ///< number → SHA-256 values that are right; any other is refused
  std::string
      ek_roots_pem;  ///< whose signature on the EK certificate counts; empty: the first EK is kept
};

}  // namespace muster::inventory
