// SPDX-License-Identifier: Apache-2.0
// How an agent is told who it is: by the kernel command line in the RAM OS, by
// /etc/muster/agent.json on the disk.
#pragma once

#include "base/io/http.h"
#include "base/log.h"
#include "wire/messages.h"

#include <filesystem>
#include <string>

namespace muster::agent {

struct AgentOptions {
  wire::Mode mode = wire::Mode::Ram;
  io::Url url;                 ///< of the controller: https only; of several, who is spoken to
  std::vector<io::Url> urls;   ///< of all controllers, in the order to try; empty: `url` alone
  std::string node;            ///< as the controller calls it; may be empty before enrollment
  std::string mac;             ///< provisioning NIC (RAM)
  std::string ca_fingerprint;  ///< of the controller's root, pinned (RAM)
  std::string enrollment;      ///< id of the arming, public (RAM)
  std::filesystem::path ca_pem_file;       ///< (disk)
  std::filesystem::path key_file;          ///< (disk)
  std::filesystem::path certificate_file;  ///< (disk)
  std::string image_digest;  ///< (disk) of the installed image; (ram) of the live image whose
                             ///< kernel was started, or empty
  std::filesystem::path root = "/";    ///< where the machine's files are; another folder in tests
  std::filesystem::path state_folder;  ///< RAM: /run/muster (memory); disk: /var/lib/muster
  std::string tpm_tcti = "device:/dev/tpmrm0";  ///< how tpm2-tools reach the TPM
};

/// From /proc/cmdline: muster.url (one, or several between commas), muster.ca, muster.enrolment,
/// muster.mac, muster.node. Errors: InvalidInput naming what is missing
Result<AgentOptions> optionsFromKernel(std::string_view command_line);
/// From agent.json: {url (likewise), node, ca_pem_file, key_file, certificate_file, image_digest}.
Result<AgentOptions> optionsFromFile(std::string_view json);

}  // namespace muster::agent
