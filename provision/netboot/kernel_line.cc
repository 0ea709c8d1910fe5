// SPDX-License-Identifier: Apache-2.0
#include "provision/netboot/kernel_line.h"

#include "inventory/model/node.h"
#include "inventory/model/profile.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::provision {

namespace {

/// A blank would start another argument; '#', '&' and '|' mean something to iPXE, '$' expands;
/// GRUB's words stand in single quotes.
bool isPlainWord(std::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) {
    return c > ' ' && c < 0x7f && c != '$' && c != '#' && c != '&' && c != '|' && c != '\\' &&
           c != '"' && c != '\'';
  });
}

}  // namespace

Result<std::vector<std::string>> kernelWords(const inventory::Node& node,
                                             const inventory::Profile& profile,
                                             const RamBoot& boot) {
  std::vector<std::string> words{
      "muster.url=" + boot.agent_url,
      "muster.ca=" + boot.ca_fingerprint,
      "muster.enrolment=" + boot.enrollment,
      "muster.node=" + node.name.str(),
      "muster.mac=" + node.mac.str(),
      std::string("console=") + traitsOf(profile.arch).serial_console,
      "loglevel=4"};  // else the kernel writes over what the RAM OS says on the serial console
  if (!boot.live.empty()) words.push_back("muster.image=" + boot.live);
  words.insert(words.end(), profile.kernel_args.begin(), profile.kernel_args.end());
  for (const auto& word : words) {
    if (isPlainWord(word)) continue;
    return fail(ErrorCode::InvalidInput,
                fmt::format("\"{}\" cannot stand on the kernel command line of {}; correct "
                            "kernel_args of profile {}",
                            word, node.name.str(), profile.name));
  }
  return words;
}

}  // namespace muster::provision
