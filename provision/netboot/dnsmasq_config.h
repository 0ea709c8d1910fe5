// SPDX-License-Identifier: Apache-2.0
// dnsmasq's configuration, rendered from the inventory. Pure.
//
// Plain PXE firmware gets iPXE by TFTP, UEFI HTTP boot by HTTP; iPXE (option 175 or user class)
// gets the URL of its boot script. Nodes with Secure Boot, and all with arm64, get shim instead,
// which loads GRUB, and both ask TFTP only (tftp_folder.h). Nodes that boot by virtual media get
// their address, and nothing to boot from.
#pragma once

#include "inventory/model/fwd.h"
#include "provision/netboot/host_files.h"

#include <filesystem>
#include <string>
#include <vector>

namespace muster::provision {

inline constexpr const char* kDnsmasqUser = "dnsmasq";  ///< who it is when it is root no more
inline constexpr const char* kShim = "shimx64.efi";
inline constexpr const char* kShimArm64 = "shimaa64.efi";
inline constexpr const char* kIpxeFolder = "/usr/lib/ipxe";
inline constexpr const char* kIpxeBios = "undionly.kpxe";
inline constexpr const char* kIpxeUefi = "ipxe.efi";
inline constexpr const char* kIpxeUefiRoute =
    "/boot/ipxe.efi";  ///< the same file by HTTP, for firmware that boots so

inline constexpr const char* kMediumRoute =
    "/boot/medium.iso";  ///< for firmware that boots so and needs signed loaders

struct DnsmasqSite {
  std::string interface;             ///< the one that carries the controller's address
  std::filesystem::path run_folder;  ///< leases
  std::filesystem::path hosts_folder = run_folder / "hosts";
  std::uint16_t http_port = 8080;
  std::filesystem::path tftp_root = run_folder / "tftp";
};

/// How dnsmasq is called, by whoever does.
std::vector<std::string> dnsmasqArguments(const std::filesystem::path& configuration);
/// What does not change while dnsmasq runs; the nodes are in `hosts_folder`.
std::string renderDnsmasq(const inventory::Cluster& cluster, const DnsmasqSite& site);
/// Which node has which address, and who has its boot files, a file each. Beside another DHCP
/// server only the latter, where there is something to say.
HostLines renderHosts(const inventory::Cluster& cluster);

}  // namespace muster::provision
