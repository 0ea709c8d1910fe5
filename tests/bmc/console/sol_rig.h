// SPDX-License-Identifier: Apache-2.0
// A BMC of OpenIPMI's simulator on loopback, with a serial line whose other end the test holds.
#pragma once

#include "base/io/dialogue.h"
#include "base/io/process.h"
#include "tests/bmc/console/machine_line.h"
#include "tests/free_port.h"
#include "tests/run_async.h"

#include <sys/stat.h>

#include <fstream>

namespace muster::test {

class SolRig {
 public:
  /// `chassis`: a script that the simulator asks for power and boot device; empty: it has no
  /// chassis.
  explicit SolRig(std::string_view chassis = {}) {
    port_ = freeLoopbackPort(SOCK_DGRAM);
    std::ofstream(folder_ / "lan.conf")
        << "name \"bmc\"\nset_working_mc 0x20\n  startlan 1\n    addr 127.0.0.1 " << port_
        << "\n    priv_limit admin\n    allowed_auths_admin none md2 md5 straight\n    guid "
           "a123456789abcdefa123456789abcdef\n  endlan\n"
        << (chassis.empty() ? std::string()
                            : "  chassis_control \"" + (folder_ / "chassis").string() + "\"\n")
        << "  user 2 true \"admin\" \"secret\" admin 10 none md2 md5 straight\n  sol \""
        << machine_.device() << "\" 115200\n";
    if (!chassis.empty()) {
      std::ofstream(folder_ / "chassis") << chassis;
      ::chmod((folder_ / "chassis").c_str(), 0700);
    }
    std::ofstream(folder_ / "emu.conf")
        << "mc_setbmc 0x20\nmc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 "
           "persist_sdr\nsel_enable 0x20 1000 0x0a\nmc_enable 0x20\n"
        << "sel_add 0x20 0x02 0 0 0 0 0x20 0 0x04 0x01 0x30 0x01 0x59 0 0\n"  // a temperature goes
                                                                              // beyond its critical
                                                                              // limit
        << "sel_add 0x20 0x02 0 0 0 0 0x20 0 0x04 0x14 0x31 0x6f 0x00 0xff 0xff\n";  // somebody
                                                                                     // presses the
                                                                                     // button
    auto started =
        processes_->start({"ipmi_sim",
                           {"-c", (folder_ / "lan.conf").string(), "-f",
                            (folder_ / "emu.conf").string(), "-s", folder_.path().string(), "-n"}},
                          folder_ / "sim.log");
    if (started) sim_ = std::move(*started);
  }
  ~SolRig() {
    if (sim_) sim_->terminate(std::chrono::seconds(2));
  }
  const std::filesystem::path& folder() const { return folder_.path(); }
  bool running() { return sim_ && sim_->running(); }
  int port() const { return port_; }

  void machineSays(std::string_view text) { machine_.says(text); }
  Async<std::string> machineHears(std::size_t count) { return machine_.hears(count); }

 private:
  TempFolder folder_;
  MachineLine machine_;
  std::unique_ptr<io::ProcessRunner> processes_ = io::makeProcessRunner();
  std::unique_ptr<io::Child> sim_;
  int port_ = 0;
};

}  // namespace muster::test
