// SPDX-License-Identifier: Apache-2.0
#include "provision/images/fetch/proxy_environment.h"

#include "base/io/process.h"

#include <fmt/format.h>

#include <cstdlib>

namespace muster::provision {

std::map<std::string, std::string> proxyEnvironment() {
  std::map<std::string, std::string> env;
  for (const char* scheme : {"http", "https"}) {
    const std::string name = std::string(scheme) + "_proxy";
    if (::getenv(name.c_str()) != nullptr) continue;
    io::Command ask{.program = "apt-config",
                    .args = {"shell", "P", fmt::format("Acquire::{}::Proxy", scheme)}};
    const auto answer = io::runChecked(ask);
    if (!answer) continue;
    const auto open = answer->find('\''), close = answer->rfind('\'');
    if (open == std::string::npos || close <= open + 1) continue;
    // apt's word for none, which others would take for a host.
    if (const auto proxy = answer->substr(open + 1, close - open - 1); proxy != "DIRECT")
      env[name] = proxy;
  }
  return env;
}

}  // namespace muster::provision
