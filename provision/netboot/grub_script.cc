// SPDX-License-Identifier: Apache-2.0
#include "provision/netboot/grub_script.h"

#include "inventory/model/node.h"
#include "inventory/model/profile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace muster::provision {

bool bootsBySignedLoaders(const inventory::Profile& profile) {
  return profile.secure_boot || profile.arch == Architecture::Arm64;
}

Result<std::string> ramGrubScript(const inventory::Node& node, const inventory::Profile& profile,
                                  const RamBoot& boot) {
  TRY(words, kernelWords(node, profile, boot));
  const auto image = boot.live.empty() ? std::string() : liveFolder(boot.live);
  return fmt::format(
      "echo 'muster: {0} boots into the RAM OS'\n"
      "if linux /{3}/vmlinuz '{2}'; then\n"
      "  if initrd /{1}/initrd.img /{1}/agent.img{4}; then\n"
      "    boot\n"
      "  fi\n"
      "fi\n"
      "echo 'muster: the RAM OS could not be loaded'\n"
      "sleep 10\n"
      "reboot\n",  // firmware takes GRUB's exit for success and shows its menu, where it would stay
      node.name.str(), kRamOsFolder, fmt::join(words, "' '"), image.empty() ? kRamOsFolder : image,
      image.empty() ? "" : fmt::format(" /{}/modules.img", image));
}

std::string lostGrubScript() {
  return "# Written by muster.\n"
         "echo 'muster: nothing to do here any more: starting again'\n"
         "sleep 5\n"
         "reboot\n";
}

}  // namespace muster::provision
