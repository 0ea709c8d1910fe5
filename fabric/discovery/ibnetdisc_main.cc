// SPDX-License-Identifier: Apache-2.0
// muster-ibnetdisc: looks at the whole fabric through libibnetdisc and prints it in ibnetdiscover's
// syntax, or nothing.
//
// ibnetdiscover prints what it saw: a port whose neighbour did not answer is one line less. Here
// every port of every switch must have told its state, and behind each that is up somebody must be
// known.
//
// stdout: the fabric, where exit code is 0. Exit code 1: not all of it answered; stderr says where.
// 3: no port may be opened here. A program of its own for the reasons of muster-pkeys: the
// simulator's library comes by LD_PRELOAD.
#include "fabric/discovery/local_hca.h"

#include <infiniband/ibnetdisc.h>

#include <array>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr int kComplete = 0, kIncomplete = 1, kUsage = 2, kNotPermitted = 3;
constexpr unsigned kAnswerLimitMs = 1000, kRetries = 3;
constexpr unsigned kUp = 5;                        // PortPhysicalState LinkUp
constexpr unsigned kHasExtendedSpeeds = 1u << 14;  // in PortInfo's CapabilityMask
constexpr unsigned kIsSm = 1u << 1, kIsSmDisabled = 1u << 10;
constexpr unsigned kFdr10 = 1;
constexpr std::size_t kMostGaps = 8;  // each costs the patience of one more question
constexpr const char* kNameMap = "/etc/rdma/ib-node-name-map";  // as ibnetdiscover has it

std::string hex(std::uint64_t value, int digits = 0) {
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "%0*" PRIx64, digits, value);
  return text.data();
}

unsigned fieldOf(std::uint8_t* info, MAD_FIELDS field) { return mad_get_field(info, 0, field); }

/// Names of switches that cannot be told their own: lines of GUID and "NAME".
using NameMap = std::map<std::uint64_t, std::string>;

NameMap readNameMap(const char* file) {
  NameMap names;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    char* end = nullptr;
    const auto guid = std::strtoull(line.c_str(), &end, 0);
    const auto open = line.find('"'), close = line.find('"', open + 1);
    if (end != line.c_str() && open < line.find('#') && close != std::string::npos)
      names.emplace(guid, line.substr(open + 1, close - open - 1));
  }
  return names;
}

std::string nameOf(const ibnd_node_t& node, const NameMap& names) {
  if (node.type == IB_NODE_SWITCH)
    if (const auto known = names.find(node.guid); known != names.end()) return known->second;
  std::string name(node.nodedesc, strnlen(node.nodedesc, IB_SMP_DATA_SIZE));
  for (auto& letter : name)
    if (letter < ' ' || letter > '~' || letter == '"') letter = ' ';
  return name;
}

std::string idOf(const ibnd_node_t& node) {
  const char* kind = node.type == IB_NODE_SWITCH ? "S" : node.type == IB_NODE_ROUTER ? "R" : "H";
  return std::string("\"") + kind + "-" + hex(node.guid, 16) + "\"";
}

int lidOf(const ibnd_port_t& port) {
  return port.node->type == IB_NODE_SWITCH ? port.node->smalid : port.base_lid;
}

/// "4xHDR"; a code that is not in the tables is told as it is, and equals no declaration.
std::string widthAndSpeed(ibnd_port_t& port) {
  static const std::map<unsigned, const char*> widths = {
      {1, "1"}, {2, "4"}, {4, "8"}, {8, "12"}, {16, "2"}};
  static const std::map<unsigned, const char*> speeds = {{1, "SDR"}, {2, "DDR"}, {4, "QDR"}};
  static const std::map<unsigned, const char*> extended = {
      {1, "FDR"}, {2, "EDR"}, {4, "HDR"}, {8, "NDR"}};
  auto* able = port.node->type == IB_NODE_SWITCH ? port.node->ports[0]->info : port.info;
  const unsigned width = fieldOf(port.info, IB_PORT_LINK_WIDTH_ACTIVE_F),
                 speed = fieldOf(port.info, IB_PORT_LINK_SPEED_ACTIVE_F);
  const unsigned faster = fieldOf(able, IB_PORT_CAPMASK_F) & kHasExtendedSpeeds
                              ? fieldOf(port.info, IB_PORT_LINK_SPEED_EXT_ACTIVE_F)
                              : 0;
  const auto named = [](const auto& table, unsigned code) {
    const auto at = table.find(code);
    return at != table.end() ? std::string(at->second) : "speed-" + std::to_string(code);
  };
  const auto lanes = widths.find(width);
  std::string out = lanes != widths.end() ? lanes->second : "0";
  if (!faster && speed == 4 &&
      (fieldOf(port.ext_info, IB_MLNX_EXT_PORT_LINK_SPEED_ACTIVE_F) & kFdr10))
    return out + "xFDR10";
  return out + "x" + (faster ? named(extended, faster) : named(speeds, speed));
}

class Picture {
 public:
  Picture(const ibnd_fabric_t& fabric, const NameMap& names) : fabric_(fabric), names_(names) {}

  /// Where somebody must be who did not answer, in words; no more than the first few.
  std::vector<std::string> gaps(ibmad_port* port) const {
    std::vector<std::string> out;
    for (const auto* node = fabric_.nodes; node; node = node->next) {
      if (node->nodedesc[0] == 0 && !answers(node->path_portid, IB_ATTR_NODE_DESC, port))
        out.push_back(called(*node) + " did not tell its name");
      for (int number = 0; number <= node->numports && out.size() < kMostGaps; ++number)
        if (auto gap = gapAt(*node, number, port); !gap.empty())
          out.push_back(called(*node) + " " + gap);
      if (out.size() >= kMostGaps) break;
    }
    return out;
  }

  void print(std::ostream& out) const {
    out << "# " << fabric_.total_mads_used << " MADs\n";
    for (const auto* node = fabric_.nodes; node; node = node->next)
      for (int number = 0; number <= node->numports; ++number)
        if (const auto* port = node->ports[number]; port && managesSubnet(*port))
          out << "# subnet manager at lid " << port->base_lid << "\n";
    for (const auto* node = fabric_.nodes; node; node = node->next) {
      const bool is_switch = node->type == IB_NODE_SWITCH;
      auto info = std::to_array(node->info);
      out << "\ndevid=0x" << hex(mad_get_field(info.data(), 0, IB_NODE_DEVID_F));
      out << "\n" << (is_switch ? "switchguid=0x" : "caguid=0x") << hex(node->guid);
      if (is_switch) out << "(" << hex(mad_get_field64(info.data(), 0, IB_NODE_PORT_GUID_F)) << ")";
      out << "\n"
          << (is_switch                      ? "Switch"
              : node->type == IB_NODE_ROUTER ? "Rt"
                                             : "Ca")
          << "\t" << node->numports << " " << idOf(*node) << "\t\t# \"" << nameOf(*node, names_)
          << "\"";
      if (is_switch)
        out << (node->smaenhsp0 ? " enhanced" : " base") << " port 0 lid " << node->smalid
            << " lmc " << int{node->smalmc};
      out << "\n";
      for (int number = 1; number <= node->numports; ++number)
        if (auto* port = node->ports[number]; port && port->remoteport) printPort(out, *port);
    }
  }

 private:
  std::string called(const ibnd_node_t& node) const {
    const auto name = nameOf(node, names_);
    return (name.empty() ? "a device" : name) + " (0x" + hex(node.guid, 16) + ")";
  }

  /// Empty: there is none. Of an HCA the library asks only the ports by which it came.
  std::string gapAt(const ibnd_node_t& node, int number, ibmad_port* port) const {
    const auto* at = node.ports[number];
    const bool silent = at ? number > 0 && physicalState(*at) == 0 : node.type == IB_NODE_SWITCH;
    if (silent) return "did not tell the state of port " + std::to_string(number);
    if (!at || number == 0 || at->remoteport || !upAndAsked(*at) || answersKnown(*at, port))
      return {};
    return "port " + std::to_string(number) + " is up, and who is behind it did not answer";
  }

  using Answer = std::array<std::uint8_t, IB_SMP_DATA_SIZE>;
  static std::optional<Answer> answers(ib_portid_t path, unsigned attribute, ibmad_port* port) {
    Answer data{};
    return smp_query_via(data.data(), &path, attribute, 0, 0, port) ? std::optional(data)
                                                                    : std::nullopt;
  }

  static bool managesSubnet(const ibnd_port_t& port) {
    auto info = std::to_array(port.info);
    const unsigned able = fieldOf(info.data(), IB_PORT_CAPMASK_F);
    return (port.node->type != IB_NODE_SWITCH || port.portnum == 0) && (able & kIsSm) &&
           !(able & kIsSmDisabled);
  }

  /// 0 is no state: nobody answered.
  static unsigned physicalState(const ibnd_port_t& port) {
    auto info = std::to_array(port.info);
    return fieldOf(info.data(), IB_PORT_PHYS_STATE_F);
  }

  bool upAndAsked(const ibnd_port_t& port) const {
    return physicalState(port) == kUp &&
           (port.node->type == IB_NODE_SWITCH ||
            (port.node == fabric_.from_node && port.portnum == fabric_.from_portnum));
  }

  /// Two devices with one GUID take each other's neighbour away in the library's picture; that is
  /// for the comparison to name, if both answer.
  bool answersKnown(const ibnd_port_t& behind, ibmad_port* port) const {
    auto path = behind.node->path_portid;
    if (path.drpath.cnt + 2 >= static_cast<int>(sizeof path.drpath.p)) return false;
    path.drpath.p[++path.drpath.cnt] = static_cast<std::uint8_t>(behind.portnum);
    auto info = answers(path, IB_ATTR_NODE_INFO, port);
    if (!info) return false;
    const auto guid = mad_get_field64(info->data(), 0, IB_NODE_GUID_F);
    for (const auto* node = fabric_.nodes; node; node = node->next)
      if (node->guid == guid) return true;
    return false;
  }

  void printPort(std::ostream& out, ibnd_port_t& port) const {
    const auto& peer = *port.remoteport;
    out << "[" << port.portnum << "]";
    if (port.node->type != IB_NODE_SWITCH) out << "(" << hex(port.guid) << ")";
    out << "\t" << idOf(*peer.node) << "[" << peer.portnum << "]";
    if (peer.node->type != IB_NODE_SWITCH) out << "(" << hex(peer.guid) << ")";
    out << "\t\t# ";
    if (port.node->type != IB_NODE_SWITCH)
      out << "lid " << port.base_lid << " lmc " << int{port.lmc} << " ";
    out << "\"" << nameOf(*peer.node, names_) << "\" lid " << lidOf(peer) << " "
        << widthAndSpeed(port) << "\n";
  }

  const ibnd_fabric_t& fabric_;
  const NameMap& names_;
};

/// Null: no device is there, or it may not be opened.
ibmad_port* openPort(std::string& hca) {
  std::array<int, 2> classes = {IB_SMI_CLASS, IB_SMI_DIRECT_CLASS};
  return mad_rpc_open_port(nameOrNone(hca), 0, classes.data(), classes.size());
}

int look(const NameMap& names, std::string hca) {
  auto* port = openPort(hca);
  if (!port) {
    std::cerr << "muster-ibnetdisc: no InfiniBand port can be opened (/dev/infiniband/umad*; that "
                 "needs root)\n";
    return kNotPermitted;
  }
  mad_rpc_close_port(port);
  ibnd_config_t config{};
  config.timeout_ms = kAnswerLimitMs;
  config.retries = kRetries;
  config.flags = IBND_CONFIG_MLX_EPI;
  auto* fabric = ibnd_discover_fabric(nameOrNone(hca), 0, nullptr, &config);
  if (!fabric || !fabric->from_node || !(port = openPort(hca))) {
    std::cerr << "muster-ibnetdisc: the fabric could not be discovered\n";
    return kIncomplete;
  }
  const Picture picture(*fabric, names);
  const auto gaps = picture.gaps(port);
  for (const auto& gap : gaps) std::cerr << "muster-ibnetdisc: " << gap << "\n";
  if (gaps.empty()) picture.print(std::cout);
  std::cout.flush();
  mad_rpc_close_port(port);
  ibnd_destroy_fabric(fabric);
  return gaps.empty() && std::cout ? kComplete : kIncomplete;
}

}  // namespace

int main(int count, char** words) {
  std::ios::sync_with_stdio(false);
  std::string map = kNameMap, hca;
  bool is_good = count % 2 == 1;
  for (int i = 1; is_good && i + 1 < count; i += 2) {
    const std::string_view option = words[i];
    is_good = (option == "--node-name-map" || option == "-C") && *words[i + 1] != '\0';
    (option == "-C" ? hca : map) = words[i + 1];
  }
  if (is_good) return look(readNameMap(map.c_str()), std::move(hca));
  std::cerr << "usage: muster-ibnetdisc [-C HCA] [--node-name-map FILE]\n";
  return kUsage;
}
