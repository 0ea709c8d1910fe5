// SPDX-License-Identifier: Apache-2.0
// muster-pkeys: reads the PKey tables of many ports in one process. One smpquery a port starts a
// process each, 20 ms where a table itself takes less than one: minutes for a large fabric.
//
// stdin: a line "LID PORT" for each table. stdout: the same line with the keys that are not zero,
// hexadecimal, in the order of the table. Exit code 0 only where every table has been read to its
// end; else 1, and stderr says which one was not. A program of its own: the simulator's library
// takes the place of libibumad by LD_PRELOAD, which must not be the controller's.
#include "fabric/discovery/local_hca.h"

#include <infiniband/mad.h>
#include <infiniband/umad.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>

namespace {

constexpr int kKeysInBlock = 32;
constexpr int kSwitch = 2;
constexpr int kMostKeys = 1 << 16;

using Block = std::array<unsigned char, IB_SMP_DATA_SIZE>;

class Reader {
 public:
  explicit Reader(ibmad_port* port) : port_(port) {}

  /// False: not all of it was answered.
  bool read(int lid, int number, std::string& line) {
    ib_portid_t target{};
    ib_portid_set(&target, lid, 0, 0);
    Block data{};
    if (!ask(data, target, IB_ATTR_NODE_INFO, 0)) return false;
    int keys = static_cast<int>(mad_get_field(data.data(), 0, IB_NODE_PARTITION_CAP_F));
    if (mad_get_field(data.data(), 0, IB_NODE_TYPE_F) == kSwitch && number != 0) {
      if (!ask(data, target, IB_ATTR_SWITCH_INFO, 0)) return false;
      keys = static_cast<int>(mad_get_field(data.data(), 0, IB_SW_PARTITION_ENFORCE_CAP_F));
    }
    for (int from = 0; from < keys && from < kMostKeys; from += kKeysInBlock) {
      if (!ask(data, target, IB_ATTR_PKEY_TBL,
               static_cast<unsigned>(from / kKeysInBlock) | static_cast<unsigned>(number) << 16))
        return false;
      for (int i = 0; i < std::min(kKeysInBlock, keys - from); ++i) {
        const auto at = static_cast<std::size_t>(2 * i);
        if (const unsigned key = static_cast<unsigned>(data[at]) << 8 | data[at + 1]; key != 0) {
          std::array<char, 16> text{};
          std::snprintf(text.data(), text.size(), " 0x%04x", key);
          line += text.data();
        }
      }
    }
    return true;
  }

 private:
  bool ask(Block& data, ib_portid_t& target, unsigned attribute, unsigned modifier) {
    data.fill(0);
    return smp_query_via(data.data(), &target, attribute, modifier, 0, port_) != nullptr;
  }
  ibmad_port* port_;
};

}  // namespace

int main(int count, char** arguments) {
  auto hca = localHca(count, arguments, "muster-pkeys");
  if (!hca) return 1;
  std::array<int, 1> classes = {IB_SMI_CLASS};
  auto* port = mad_rpc_open_port(nameOrNone(*hca), 0, classes.data(), classes.size());
  if (!port) {
    std::cerr << "muster-pkeys: no InfiniBand port can be opened (/dev/infiniband/umad*; that "
                 "needs root)\n";
    return 1;
  }
  Reader reader(port);
  int code = 0;
  for (std::string asked; std::getline(std::cin, asked);) {
    std::istringstream words(asked);
    int lid = 0, number = -1;
    if (!(words >> lid >> number) || lid < 1 || lid > 0xbfff || number < 0 || number > 254) {
      std::cerr << "muster-pkeys: \"" << asked << "\" is not LID and PORT\n";
      code = 1;
      break;
    }
    std::string line = std::to_string(lid) + " " + std::to_string(number);
    if (!reader.read(lid, number, line)) {
      std::cerr << "muster-pkeys: LID " << lid << " port " << number << " did not answer\n";
      code = 1;
      break;
    }
    std::cout << line << "\n";
  }
  mad_rpc_close_port(port);
  return code;
}
