// SPDX-License-Identifier: Apache-2.0
// The disk writer: makes of a bare disk an installed system. It runs in the RAM OS, inside
// muster-agent.
//
// Order, and why an interruption at any point is harmless: the partition that is being written is
// labelled "muster-writing" and becomes "muster-root" as the last step of all. A disk that holds
// nothing but a half-written system counts as empty, so the task can simply run again; chunks that
// are already right are not fetched again.
#pragma once

#include "agent/core/disk_content.h"
#include "agent/imaging/root_plan.h"
#include "agent/imaging/storage_plan.h"
#include "base/async/task.h"
#include "base/clock.h"
#include "base/io/crypto.h"
#include "base/io/http.h"
#include "wire/pack_index.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace muster::agent {

/// What the WriteImage task asks for (docs/architecture.md).
struct WriteImageParams {
  std::string index_url, pack_url;
  std::vector<std::string> mirror_urls;  ///< other servers of the same pack
  std::string digest;                    ///< of the image, hex
  std::string signing_public_pem;        ///< whose signature on the index counts
  std::string disk;              ///< "serial:…", "wwn:…", "smallest"; empty: the only disk there is
  std::optional<RootSpec> root;  ///< how the system disk is made; nullopt: a partition of one disk
  std::vector<DiskSetSpec> storage;  ///< what becomes of the other disks
  std::string user_data;             ///< cloud-init's or Ignition's, of this node; empty: none
  bool wipe_allowed = false;         ///< the system disk
  bool data_wipe_allowed =
      false;  ///< disks of storage sets too, whatever they hold (wipe_policy.h)
  std::string hostname;
  std::string address_cidr;      ///< "10.20.0.11/16"; empty or "dhcp": by DHCP
  std::string gateway;           ///< with a fixed address; may be empty
  std::vector<std::string> dns;  ///< with a fixed address; may be empty
  std::vector<std::string> kernel_args;
  std::vector<std::string> authorized_keys;  ///< ssh keys for root
  std::string boot =
      "uefi";  ///< "bios" or "uefi": what the machine starts with; the disk can do both
  bool secure_boot = false;  ///< the firmware checks signatures: install shim and the signed GRUB
  std::string agent_url;     ///< "https://10.20.0.1:8443"
  std::string agent_ca_pem;
};
/// Errors: InvalidInput naming the member
Result<WriteImageParams> parseWriteImageParams(std::string_view json);

/// What the installed agent shows to the controller.
struct InstalledIdentity {
  Secret key_pem;
  std::string certificate_pem;
};

struct WriteImageReport {
  std::string digest;
  std::string disk;  ///< "/dev/vda (serial X, 4.0 GiB)"
  double seconds = 0;
  std::uint64_t bytes_written = 0;           ///< raw
  std::uint64_t bytes_skipped = 0;           ///< raw; already right on the disk
  std::uint64_t bytes_fetched = 0;           ///< compressed
  std::uint64_t peak_buffer_bytes = 0;       ///< most image data that was in memory at one time
  int retries = 0;                           ///< fetches that had to be repeated
  std::vector<std::string> dropped_mirrors;  ///< with corrupt bytes, or that did not answer while
                                             ///< others did; with the reason
  std::vector<std::string> kept_storage;     ///< sets of other disks that were as declared already

  std::string json() const;  ///< the task's result
};

struct WriterDeps {
  /// One client a lane: the writer fetches on several connections.
  std::function<std::unique_ptr<io::HttpClient>()> make_http;
  Workers& workers;
  Clock& clock;
  /// Called once the image is on the disk: a key and certificate for the system being installed.
  std::function<Async<InstalledIdentity>()> identity;
  /// 0…1 and words for people. Called on the control thread.
  std::function<void(double fraction, const std::string& text)> progress;
  std::string provisioning_mac;  ///< the NIC that the installed system brings up
  std::filesystem::path agent_folder =
      "/usr/lib/muster";  ///< muster-agent and its libraries, copied to the disk
  std::function<void(const wire::PackIndex&, const std::vector<char>& right)> scanned =
      {};  ///< ChunkJob::looked
};

/// Writes, configures and makes bootable. Gives up retrying fetches when `deadline` has passed.
/// Errors: Denied (a disk holds something and wiping it is not allowed; foreign signature), Corrupt
/// (digest, chunk),
///         NotFound (no such disk), Conflict (several disks, no rule), Timeout
/// Effect: destroys what the chosen disk holds
Async<WriteImageReport> writeImage(WriteImageParams params, WriterDeps deps,
                                   std::chrono::seconds deadline);

/// What a disk holds, for people and for the wipe guard: "none", or what is there ("ext4 \"data\"
/// on /dev/sdb1"). A half-written system of muster counts as "none". The agent's inventory reports
/// exactly this.
Result<DiskContent> describeDiskContent(const std::filesystem::path& device);

}  // namespace muster::agent
