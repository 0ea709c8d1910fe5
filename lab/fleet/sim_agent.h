// SPDX-License-Identifier: Apache-2.0
// A simulated node's agent: the real protocol (enrollment, mutual TLS, long polls, tasks), and work
// that only takes time.
#pragma once

#include "base/clock.h"
#include "base/io/http.h"
#include "lab/fleet/conditions.h"
#include "wire/controllers.h"
#include "wire/delta_poll.h"
#include "wire/messages.h"

#include <boost/asio/steady_timer.hpp>
#include <nlohmann/json_fwd.hpp>

#include <functional>
#include <memory>
#include <optional>

namespace muster::lab::fleet {

/// What outlives a boot.
struct SimDisk {
  std::string image_digest;  ///< empty: nothing is installed
  std::string agent_url;
  io::TlsIdentity identity;
  std::string ca_pem;
  std::map<std::string, std::string> probes;  ///< of what was installed
};

/// An agent has taken up a task (Running), or ended it.
using TellTask = std::function<void(const wire::AgentTask&, wire::TaskPhase)>;

struct SimBoot {
  wire::Mode mode = wire::Mode::Ram;
  std::string boot_id;
  std::string url;  ///< of the controller, or of several
  std::string mac;
  std::string enrollment;      ///< RAM
  std::string ca_fingerprint;  ///< RAM
};

/// One boot of one agent. Runs until stopped; nothing of it is heard after that.
class SimAgent : public std::enable_shared_from_this<SimAgent> {
 public:
  SimAgent(Clock& clock, const Conditions& conditions, Random& random, wire::Hardware hardware,
           SimDisk& disk, SimBoot boot, TellTask tell = {})
      : clock_(clock),
        conditions_(conditions),
        random_(random),
        hardware_(std::move(hardware)),
        disk_(disk),
        boot_(std::move(boot)),
        tell_(std::move(tell)),
        controllers_(wire::parseControllers(boot_.url).value_or(std::vector<io::Url>(1))) {}

  Task<void> run();
  void stop() { stopped_ = true; }

 private:
  struct Job {
    wire::AgentTask task;
    wire::AgentTaskReport report;
    bool acknowledged = false;
  };
  Async<void> ensureIdentity();
  Async<void> enroll();
  Async<io::TlsIdentity> certifyInstalled();
  bool isToProve() const { return controllers_.several() && !controllers_.proven(); }
  Async<void> exchange();
  wire::PollRequest describe();
  Task<void> take(wire::PollResponse response);
  static Task<void> carryOut(std::shared_ptr<SimAgent> self, wire::AgentTask task);
  Async<std::string> resultOf(wire::AgentTask task);
  Async<std::string> writeImage(nlohmann::json params);
  Job* find(const std::string& id);
  bool busy() const;

  Clock& clock_;
  const Conditions& conditions_;
  Random& random_;
  wire::Hardware hardware_;
  SimDisk& disk_;
  SimBoot boot_;
  const TellTask tell_;  ///< may be empty
  wire::Controllers controllers_;
  io::TlsIdentity identity_;
  std::string ca_pem_;
  std::unique_ptr<io::HttpClient> client_;
  std::string session_;
  bool said_all_ = false;
  wire::DeltaPoll delta_;
  std::uint64_t sequence_ = 0;
  std::vector<Job> jobs_;
  std::unique_ptr<asio::steady_timer> ended_;  ///< cancelled when a job ends
  bool stopped_ = false;
};

}  // namespace muster::lab::fleet
