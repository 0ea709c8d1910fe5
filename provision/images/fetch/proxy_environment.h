// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

namespace muster::provision {

/// The proxy that this machine's apt uses, as environment variables; never stored in an image.
std::map<std::string, std::string> proxyEnvironment();

}  // namespace muster::provision
