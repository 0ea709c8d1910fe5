// SPDX-License-Identifier: Apache-2.0
#include "provision/netboot/boot_script.h"

#include "inventory/model/node.h"
#include "inventory/model/profile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace muster::provision {

Result<std::string> ramBootScript(const inventory::Node& node, const inventory::Profile& profile,
                                  const RamBoot& boot) {
  TRY(words, kernelWords(node, profile, boot));
  // Under UEFI the kernel finds its initrds by these names; Debian 12's iPXE does not add them
  // itself. BIOS ignores them.
  const bool live = !boot.live.empty();
  const auto line = fmt::format(" initrd=initrd.img initrd=agent.img {}{}",
                                live ? "initrd=modules.img " : "", fmt::join(words, " "));
  const auto image = fmt::format("{}/images/{}", boot.http_url, boot.live);
  const auto kernel = live ? image + "/vmlinuz" : boot.http_url + "/ramos/vmlinuz";
  const auto modules =
      live ? fmt::format("initrd {}/modules.img || goto failed\n", image) : std::string();
  return fmt::format(
      "#!ipxe\n"
      "echo muster: {0} boots into the RAM OS\n"
      "imgfree\n"
      "kernel {3}{2} || goto failed\n"
      "initrd {1}/ramos/initrd.img || goto failed\n"
      "initrd {1}/ramos/agent.img || goto failed\n"
      "{4}"
      "boot || goto failed\n"
      ":failed\n"
      "echo muster: the RAM OS could not be loaded from {1}\n"
      "sleep 10\n"
      "exit 1\n",
      node.name.str(), boot.http_url, line, kernel, modules);
}

std::string diskBootScript(std::string_view reason) {
  // "exit 1": UEFI firmware takes success for "the machine was used" and shows its menu. BIOS
  // firmware may have the network only, so its disk is started from here.
  return fmt::format(
      "#!ipxe\n"
      "echo muster: {}: booting from disk\n"
      "iseq ${{platform}} efi && goto uefi ||\n"
      "sanboot --no-describe --drive 0x80 || exit 1\n"
      ":uefi\n"
      "exit 1\n",
      reason);
}

}  // namespace muster::provision
