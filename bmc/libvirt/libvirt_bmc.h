// SPDX-License-Identifier: Apache-2.0
// A libvirt domain as a BMC: "libvirt:DOMAIN". For direct use of virtual machines; it has no
// firmware to update.
#pragma once

#include "bmc/bmc.h"

#include <memory>
#include <string>

namespace muster::bmc {

/// `uri` empty: LIBVIRT_DEFAULT_URI, or what libvirt takes by itself.
std::unique_ptr<Bmc> makeLibvirtBmc(std::string domain, std::string uri, Clock& clock,
                                    Workers& workers);

}  // namespace muster::bmc
