// SPDX-License-Identifier: Apache-2.0
// Rules of a fabric's topology_file: it is a fabric's topology, and of these nodes. What it says in
// detail is read by fabric/topology/.
#include "base/utf8.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "inventory/model/fabric_membership.h"
#include "inventory/model/profile.h"
#include "inventory/parse/suggest.h"
#include "inventory/schema/binding.h"
#include "inventory/schema/declared.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

namespace muster::inventory {

namespace {

/// How the lines begin that declare devices, in all forms that fabric/topology/found_text.h reads.
constexpr std::array<std::string_view, 7> kDevices = {"Switch", "SW", "Ca", "CA",
                                                      "Hca",    "Rt", "RT"};

bool namesDevices(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  while (!text.empty()) {
    const auto end = text.find('\n');
    auto line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    for (const auto device : kDevices)
      if (line.starts_with(device) && line.size() > device.size() &&
          std::string_view(" \t:,").find(line[device.size()]) != std::string_view::npos)
        return true;
  }
  return false;
}

bool isOfName(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
}

/// Whether one of them is a word of the text.
bool namesAny(std::string_view text, const std::set<std::string_view>& names) {
  for (std::size_t at = 0; at < text.size();) {
    if (!isOfName(text[at])) {
      ++at;
      continue;
    }
    auto end = at;
    while (end < text.size() && isOfName(text[end])) ++end;
    if (names.contains(text.substr(at, end - at))) return true;
    at = end;
  }
  return false;
}

}  // namespace

void checkTopologyFiles(const Cluster& cluster, const DeclaredNodes& nodes, const Value& root,
                        Reader& reader) {
  for (const auto& [name, fabric] : cluster.fabrics) {
    if (fabric.topology.empty() || fabric.shape != FabricShape::Explicit) continue;
    const Value& where = place(place(place(root, "fabric"), name), "topology_file");
    if (const auto wide = wideEncodingOf(fabric.topology); !wide.empty()) {
      reader.error(where,
                   fmt::format("{} is {} (it begins with its byte order mark), as PowerShell and "
                               "editors of Windows write",
                               shorten(where.text), wide),
                   fmt::format("save it as UTF-8, or: iconv -f {} -t UTF-8 {}", wide, where.text));
      continue;
    }
    if (!namesDevices(fabric.topology)) {
      reader.error(where,
                   fmt::format("{} is no topology: no line of it declares a switch or an HCA",
                               shorten(where.text)),
                   "name a file that holds the output of `ibnetdiscover`");
      continue;
    }
    std::set<std::string_view> hosts;
    for (const auto& declared : nodes.nodes) {
      const auto profile = cluster.profiles.find(declared.node.profile);
      if (profile != cluster.profiles.end() && isOn(profile->second, name))
        hosts.insert(declared.node.name.str());
    }
    if (!hosts.empty() && !namesAny(fabric.topology, hosts))
      reader.warning(where,
                     fmt::format("{} names none of the {} nodes of the fabric {}: is it another "
                                 "fabric's?",
                                 shorten(where.text), hosts.size(), name),
                     "every declared HCA will be missing; let HCAs be named after their nodes "
                     "(rdma-ndd, or a node name map) before ibnetdiscover writes the file");
  }
}

}  // namespace muster::inventory
