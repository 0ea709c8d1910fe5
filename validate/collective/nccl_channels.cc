// SPDX-License-Identifier: Apache-2.0
#include "validate/collective/nccl_channels.h"

#include <charconv>
#include <optional>

namespace muster::collective {
namespace {

constexpr std::string_view kInfo = "NCCL INFO ";
constexpr std::string_view kDevicesBegin = "NET/IB : Using ";
constexpr std::string_view kVia = " via ";

std::string_view wordOf(std::string_view text) {
  return text.substr(0, text.find_first_of(" \t\r"));
}

/// The number that a text begins with.
std::optional<int> numberAt(std::string_view text) {
  int out = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), out).ec != std::errc())
    return std::nullopt;
  return out;
}

/// "Channel 00/0 : 0[0] -> 1[1] [send] via NET/IB/3(2)/GDRDMA", "… via P2P/CUMEM/read". Other lines
/// have no arrow before a "via".
void readChannel(std::string_view line, NcclChannels& out) {
  const auto via = line.find(kVia);
  if (via == std::string_view::npos || line.find("->") > via) return;
  const auto way = wordOf(line.substr(via + kVia.size()));
  if (!way.starts_with("NET/")) {
    ++out.direct;
    return;
  }
  const auto rest = way.substr(way.find('/') + 1);
  const auto slash = rest.find('/');
  const std::string name(rest.substr(0, slash));
  ++out.network[name];
  if (slash == std::string_view::npos || name != "IB") return;
  const auto device = rest.substr(slash + 1);
  if (device.find("/GDRDMA") != std::string_view::npos) ++out.gdr;
  if (const auto number = numberAt(device)) out.devices.insert(*number);
}

/// "[0]mlx5_0:1/IB [1]mlx5_3:1/RoCE [RO]; OOB eth0:10.0.0.1<0>"
void readDevices(std::string_view list, NcclChannels& out) {
  list = list.substr(0, list.find(';'));
  for (auto at = list.find('['); at != std::string_view::npos; at = list.find('[', at + 1)) {
    const auto close = list.find(']', at);
    if (close == std::string_view::npos) return;
    const auto number = numberAt(list.substr(at + 1));
    const auto word = wordOf(list.substr(close + 1));
    if (number && word.find(':') != std::string_view::npos)
      out.names[*number] = std::string(word.substr(0, word.find(':')));
  }
}

}  // namespace

NcclChannels readNcclChannels(std::string_view text) {
  NcclChannels out;
  while (!text.empty()) {
    const auto end = text.find('\n');
    auto line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    const auto info = line.find(kInfo);
    if (info == std::string_view::npos) continue;
    line.remove_prefix(info + kInfo.size());
    if (line.starts_with(kDevicesBegin))
      readDevices(line.substr(kDevicesBegin.size()), out);
    else
      readChannel(line, out);
  }
  return out;
}

}  // namespace muster::collective
