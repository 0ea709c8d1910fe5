#include "provision/netboot/boot_script.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::provision {

namespace {

/// A blank would start another argument; '#', '&' and '|' mean something to iPXE, '$' expands.
bool isPlainWord(std::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) {
    return c > ' ' && c < 0x7f && c != '$' && c != '#' && c != '&' && c != '|' && c != '\\' && c != '"' && c != '\'';
  });
}

}  // namespace

Result<std::string> ramBootScript(const inventory::Node& node, const inventory::Profile& profile, const RamBoot& boot) {
  // Under UEFI the kernel finds its initrds by these names; Debian 12's iPXE does not add them itself. BIOS ignores them.
  std::vector<std::string> words{"initrd=initrd.img",
                                 "initrd=agent.img",
                                 "muster.url=" + boot.agent_url,
                                 "muster.ca=" + boot.ca_fingerprint,
                                 "muster.token=" + boot.token,
                                 "muster.node=" + node.name.str(),
                                 "muster.mac=" + node.mac.str(),
                                 "console=ttyS0",
                                 "loglevel=4"};  // else the kernel writes this line, token and all, on the serial console
  for (const auto& arg : profile.kernel_args) words.push_back(arg);
  std::string line;
  for (const auto& word : words) {
    if (!isPlainWord(word)) {
      return fail(ErrorCode::InvalidInput,
                  fmt::format("\"{}\" cannot stand on the kernel command line of {}; correct kernel_args of profile {}", word,
                              node.name.str(), profile.name));
    }
    line += " " + word;
  }
  return fmt::format(
      "#!ipxe\n"
      "echo muster: {0} boots into the RAM OS\n"
      "imgfree\n"
      "kernel {1}/ramos/vmlinuz{2} || goto failed\n"
      "initrd {1}/ramos/initrd.img || goto failed\n"
      "initrd {1}/ramos/agent.img || goto failed\n"
      "boot || goto failed\n"
      ":failed\n"
      "echo muster: the RAM OS could not be loaded from {1}\n"
      "sleep 10\n"
      "exit 1\n",
      node.name.str(), boot.http_url, line);
}

std::string diskBootScript(std::string_view reason) {
  // "exit 1": UEFI firmware takes success for "the machine was used" and shows its menu. BIOS firmware may have the
  // network only, so its disk is started from here.
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
