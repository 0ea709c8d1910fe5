// SPDX-License-Identifier: Apache-2.0
// What the fetch unit tells its method of what the asker says (docs/adr/0437). The asker is root in
// a build, where scripts of packages run: the method is told what fetching needs, and nothing by
// which a request is made that apt would not make, or a file of this host is read.
#pragma once

#include "provision/images/fetch/apt_message.h"

#include <functional>
#include <string>

namespace muster::provision {

/// This host's own settings of apt, a line each: NAME=VALUE.
using HostSettings = std::function<std::string()>;
/// As apt-config says them; none where it does not.
std::string readHostSettings();

/// A message 601 of listed settings alone. A proxy is of listed schemes; a file (CaInfo, SslCert,
/// SslKey) is the one that this host's own apt names in the same setting.
AptMessage filteredConfiguration(const AptMessage& asked, const HostSettings& host);
/// A message 600 of listed fields, each once, without values that have control characters. One
/// without a URI asks for nothing.
AptMessage filteredAcquire(const AptMessage& asked);

}  // namespace muster::provision
