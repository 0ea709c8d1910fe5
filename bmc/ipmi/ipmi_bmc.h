// SPDX-License-Identifier: Apache-2.0
// IPMI 2.0 by ipmitool (lanplus): power, boot device, event log, sensors, the BMC's own restart.
// What a BMC's Redfish does not offer or does not answer, IPMI usually does. It knows nothing of
// firmware.
#pragma once

#include "base/clock.h"
#include "base/io/process.h"
#include "bmc/bmc.h"

namespace muster::bmc {

/// The password goes by the environment of that one process, never by its arguments.
struct IpmiOptions {
  std::string host;
  int port = 623;
  int cipher_suite = 17;
  std::string username;
  std::function<Result<Secret>()> password;
  std::function<Result<void>(const Secret&)> may_try = [](const Secret&) {
    return Result<void>();
  };  ///< lock-out protection: before anything is sent
  std::function<void(const Secret&)> refused = [](const Secret&) {};  ///< the BMC did not take it
  std::chrono::milliseconds poll{2'000};
};

/// `processes` and `clock` outlive it.
std::unique_ptr<Bmc> makeIpmiBmc(IpmiOptions options, io::ProcessRunner& processes, Clock& clock);

/// Redfish with IPMI behind it. What is only read, the boot device, power on and an interrupt go by
/// IPMI where Redfish does not offer them, and (but for the interrupt) where it does not answer.
/// Power off and the BMC's restart never do by themselves: a BMC whose web server is silent may be
/// writing firmware. Both outlive it.
std::unique_ptr<Bmc> withIpmi(std::unique_ptr<Bmc> redfish, Bmc& ipmi);

/// "https://10.0.0.1:8443" → "10.0.0.1".
std::string hostOf(const std::string& url);

}  // namespace muster::bmc
