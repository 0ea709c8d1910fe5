// SPDX-License-Identifier: Apache-2.0
// muster-switchfw: asks switches for their firmware, all of them in one process.
//
// stdin: a LID a line. stdout: "LID VERSION [PSID]", or "LID -" for a switch that does not tell.
// Exit code 0: all were asked; 1: the input is none; 3: no port may be opened here. After too many
// that do not tell (Patience) the others are not asked. A program of its own for the reasons of
// muster-pkeys: the simulator's library comes by LD_PRELOAD.
#include "fabric/discovery/general_info.h"
#include "fabric/discovery/local_hca.h"

#include <infiniband/mad.h>

#include <iostream>
#include <string>

namespace {

using namespace muster::fabric;

constexpr int kAnswerLimitMs = 200, kTries = 3, kMostLids = 0xbfff;
constexpr int kNotPermitted = 3;

std::optional<GeneralInfo> ask(int lid, ibmad_port* port) {
  ib_portid_t target{};
  ib_portid_set(&target, lid, 0, 0);
  ib_vendor_call_t call{};
  call.method = IB_MAD_METHOD_GET;
  call.mgmt_class = kVendorClass;
  call.attrid = kGeneralInfoAttribute;
  call.timeout = kAnswerLimitMs;
  VendorData data{};
  return ib_vendor_call_via(data.data(), &target, &call, port) ? readGeneralInfo(data)
                                                               : std::nullopt;
}

}  // namespace

int main(int count, char** arguments) {
  auto hca = localHca(count, arguments, "muster-switchfw");
  if (!hca) return 1;
  int vendor_class = kVendorClass;
  auto* port = mad_rpc_open_port(nameOrNone(*hca), 0, &vendor_class, 1);
  if (!port) {
    std::cerr << "muster-switchfw: no InfiniBand port can be opened (/dev/infiniband/umad*; that "
                 "needs root)\n";
    return kNotPermitted;
  }
  mad_rpc_set_timeout(port, kAnswerLimitMs);
  mad_rpc_set_retries(port, kTries);
  int code = 0;
  Patience patience;
  for (int lid = 0; code == 0 && std::cin >> lid;) {
    if (lid < 1 || lid > kMostLids) {
      std::cerr << "muster-switchfw: " << lid << " is no LID\n";
      code = 1;
      break;
    }
    const auto info = patience.isOver() ? std::nullopt : ask(lid, port);
    patience.saw(info.has_value());
    std::cout << lid << ' '
              << (info ? info->firmware + (info->psid.empty() ? "" : " " + info->psid) : "-")
              << '\n';
  }
  if (code == 0 && !std::cin.eof()) {
    std::cerr << "muster-switchfw: the input is no list of LIDs\n";
    code = 1;
  }
  mad_rpc_close_port(port);
  return code;
}
