// SPDX-License-Identifier: Apache-2.0
// Parameters of the tasks write-image and start-image (docs/architecture.md), once for the
// controller that prints them and the agent that reads them.
#pragma once

#include "base/result.h"
#include "wire/disk_layout.h"
#include "wire/node_network.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::wire {

/// How the image is shared among nodes that are imaged at the same time.
struct PeerParams {
  std::string metainfo_url;     ///< of the .torrent file
  std::string metainfo_sha256;  ///< of that file; the task came over mutual TLS, so the pieces'
                                ///< hashes are believed
  std::string announce_url;     ///< muster's tracker, with this node's own word in it
  std::string share_url;        ///< tells which pieces to fetch from a server
  std::uint64_t pack_bytes = 0;

  friend bool operator==(const PeerParams&, const PeerParams&) = default;
};

struct WriteImageParams {
  std::string index_url, pack_url;
  std::vector<std::string> mirror_urls;  ///< other servers of the same pack
  std::string digest;                    ///< of the image, hex
  std::string signing_public_pem;        ///< whose signature on the index counts
  std::string disk;  ///< "serial:…", "wwn:…", "smallest"; empty: the only disk there is
  std::optional<RootLayout>
      root;  ///< how the system disk is made; nullopt: a partition of one disk
  std::vector<StorageSet> storage;  ///< what becomes of the other disks
  std::string user_data;            ///< cloud-init's or Ignition's, of this node; empty: none
  bool wipe_allowed = false;        ///< the system disk
  bool data_wipe_allowed =
      false;  ///< disks of storage sets too, whatever they hold (agent/imaging/wipe_policy.h)
  std::string hostname;
  std::string address_cidr;            ///< "10.20.0.11/16"; empty: by DHCP
  std::string gateway;                 ///< with a fixed address; may be empty
  std::vector<std::string> dns;        ///< with a fixed address; may be empty
  std::optional<NodeNetwork> network;  ///< its whole network; nullopt: the NIC that boots alone, as
                                       ///< the three above say
  std::vector<std::string> kernel_args;
  std::vector<std::string> authorized_keys;  ///< ssh keys for root
  std::string boot =
      "uefi";  ///< "bios" or "uefi": what the machine starts with; the disk can do both
  bool secure_boot = false;  ///< the firmware checks signatures: install shim and the signed GRUB
  struct Agent {
    std::string url;  ///< "https://10.20.0.1:8443"
    std::string ca_pem;
  } agent;  ///< of the installed system
  std::optional<PeerParams> peers;
};

std::string toJson(const WriteImageParams& params);
/// What is unknown is skipped; what does not look right is refused before a disk is touched.
/// Errors: InvalidInput naming the member
Result<WriteImageParams> parseWriteImageParams(std::string_view text);

}  // namespace muster::wire
