// SPDX-License-Identifier: Apache-2.0
// The lab's daemons: private libvirtd, virtual BMCs, ibsim, munged, slurmctld. Each lives in the
// namespace, outlives muster, and has a pid file; one that lives already is left alone.
#pragma once

#include "lab/rack.h"

#include <functional>

namespace muster::lab {

struct Daemon {
  std::string name;
  std::vector<std::string> argv;  ///< run inside the namespace
  std::map<std::string, std::string> env;
  std::function<Result<void>()> prepare;  ///< files it reads; run before each start
  std::function<bool()> ready;            ///< answers its clients
  std::chrono::milliseconds ready_within{
      60000};  ///< on an idle machine, else so many times longer as it is slower; libvirtd's first
               ///< start asks every installed QEMU what it can do, the others start beside it
};

Daemon libvirtDaemon(const Rack& rack, const std::filesystem::path& capabilities_cache);
Daemon vbmcDaemon(const Rack& rack, const std::string& config_text);
/// One InfiniBand fabric in an ibsim of its own.
struct SimulatedFabric {
  std::string name;
  bool is_main = true;
  std::filesystem::path folder;            ///< net file and console
  std::string net;                         ///< ibsim's net file
  std::map<std::string, std::string> env;  ///< IBSIM_SOCKNAME, SIM_HOST
};
Daemon ibsimDaemon(const Rack& rack, const SimulatedFabric& fabric);
Daemon mungeDaemon(const Rack& rack);
Daemon slurmDaemon(const Rack& rack, const std::string& conf, const std::string& node_conf);

/// Starts it unless it lives. Not yet ready when this returns.
Result<void> startDaemon(const Rack& rack, const Daemon& daemon);
/// Errors: Timeout, Unavailable (it ended), with the end of its log
Result<void> awaitReady(const Rack& rack, const Daemon& daemon);

}  // namespace muster::lab
