// SPDX-License-Identifier: Apache-2.0
// What the parts of a virtual BMC share while it runs: its options, what it remembers, its
// sessions, updates and the one job that is under way. All of it on one executor.
#pragma once

#include "base/clock.h"
#include "base/io/http.h"
#include "lab/vbmc/bmc_state.h"
#include "lab/vbmc/faults.h"
#include "lab/vbmc/login_guard.h"
#include "lab/vbmc/machine.h"

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace muster::lab::vbmc {

struct Identity {
  std::string node;
  std::string serial;
  std::string uuid;
  std::vector<std::string> macs;
  std::string manufacturer = "muster";
  std::string model = "Virtual Node";
  std::vector<std::string>
      gpu_models;       ///< shown as processors; their serials follow from the node's
  std::string bmc_mac;  ///< of the BMC's own NIC; empty: it shows none
  std::vector<std::string> other_systems =
      {};  ///< on disks that nobody asked about: what the machine's firmware could start as well
};

/// Of the machine's serial console: where the owner serves it by SSH.
struct SerialOffer {
  int ssh_port = 22;
  std::string command;  ///< that the server's command line takes; empty: the session is the console
};

/// A drive of the machine's RAID controller.
struct RaidDrive {
  std::string serial;
  std::uint64_t size_bytes = 480'103'981'056;
  bool healthy = true, spare = false;
};

struct Timings {
  std::chrono::milliseconds flash_step{150};  ///< between the writes of one image
  int flash_steps = 10;
  std::chrono::milliseconds reset_delay{
      200};  ///< from the answer to Manager.Reset until the BMC is gone
  std::chrono::milliseconds reset_duration{3000};
  std::chrono::milliseconds lost_duration{
      180'000};  ///< of a BMC that loses itself in the middle of an update
  std::chrono::milliseconds copy_duration{2000};  ///< of a background copy
};

struct ServiceOptions {
  Identity identity;
  const VendorProfile* vendor_profile = &vendorProfiles().front();
  std::optional<SerialOffer> serial = {};   ///< absent: it tells of none
  std::vector<RaidDrive> raid_drives = {};  ///< none: the machine has no RAID controller
  std::function<Async<std::string>(std::string url)> fetch =
      {};  ///< how it gets at a URL; empty: not at all
  std::function<UpdateFault()> draw_fault =
      {};  ///< asked for each update when no fault is set; empty: none
  Account account;
  LoginLimits logins;
  Timings timings;
  std::filesystem::path state_file;      ///< BmcState; empty: it forgets everything when it ends
  std::filesystem::path staging_folder;  ///< what is flashed; empty: it is only verified
  std::size_t max_image_bytes = 64u << 20;
  std::size_t max_tasks = 64;
  /// Called when the BMC goes away and when it is back; the owner closes and opens the listener.
  std::function<void()> went_away = [] {};
  std::function<void()> came_back = [] {};
  /// Sends an event to a subscriber; empty: nobody is told but by the stream.
  std::function<void(std::string url, std::string body)> deliver = {};
  /// Called when a certificate was installed; new connections show it from then on.
  std::function<void(io::TlsIdentity)> new_identity = [](const io::TlsIdentity&) {};
};

struct UpdateTask {
  std::string id;
  std::string state = "New";  ///< New, Running, Completed, Exception
  std::string status = "OK";
  std::string component;
  int percent = 0;
  std::vector<std::pair<std::string, std::string>> messages;  ///< MessageId, text
  std::string job;                                            ///< of iDRAC: the work goes on there
  std::string volumes_uri = {};  ///< of RAID work; empty: it is an update
  int young_reads = 0;  ///< of that job, which answer 404 yet; negative: task and job have vanished
};
enum class Work { Update, Verify, RollBack, ManagerReset, AcCycle };
struct Job {
  Work work = Work::Update;
  std::string task_id;
  std::shared_ptr<const std::string> image;
  std::string url = {};  ///< where it is fetched from
  std::vector<std::string> targets;
  bool keeps_configuration = true;  ///< of what it writes
  UpdateFault fault = UpdateFault::None;
};
/// Fills a second slot behind everybody's back.
struct BackgroundCopy {
  std::string component;
  std::chrono::steady_clock::time_point until;
};
struct BmcRuntime {
  BmcRuntime(Clock& clock_in, Workers& workers_in, Machine& machine_in, ServiceOptions options_in,
             BmcState state_in);
  BmcRuntime(const BmcRuntime&) = delete;

  Clock& clock;
  Workers& workers;
  Machine& machine;
  ServiceOptions options;
  const Behaviour& behaviour;
  BmcState state;
  LoginGuard guard;
  Faults faults;
  std::map<std::string, UpdateTask> tasks;
  std::optional<Job> job;       ///< one at a time
  std::optional<Job> verified;  ///< waits for StartUpdate
  std::map<std::string, Job>
      ready;  ///< files that were pushed and lie there, by the Id of their member
  std::string flash_state = "Idle";  ///< iLO
  bool stuck = false;                ///< in update mode until it is reset
  std::string writing;               ///< component whose image is being written
  std::vector<BackgroundCopy> copies;
  std::chrono::steady_clock::time_point baseboard_silent_until{};
  bool adapter_starting = false;                  ///< until the next start
  UpdateFault adapter_fault = UpdateFault::None;  ///< of the next start
  std::function<void()> wake = [] {};             ///< whoever carries jobs out
  bool away = false;
  bool stopping = false;

  void begin(Job next) {
    job = std::move(next);
    wake();
  }
  /// What it remembers, to its file.
  void save();
  /// Into the system event log.
  void note(const std::string& words);
  /// What no controller may do was done.
  void violate(const std::string& what);

  /// The path inside of what a client asks for by the vendor's name (resource_names.h).
  std::string inside(std::string path) const;

  // ---- members of the inventory: as this vendor names them
  std::vector<std::string> inventoryIds() const;
  std::string slotOf(const std::string& id) const;
  bool isPrevious(const std::string& id) const;
  /// The component behind a target: a member of the inventory, the manager, or the BIOS.
  std::string componentAt(const std::string& asked) const;
  bool copying(const std::string& component) const;

  std::string etagOf(const std::string& path) const;
  static io::ServerResponse refuseBusy();
};

inline constexpr std::string_view kPreviousImage =
    "_previous";  ///< behind the name of the BMC's own component

}  // namespace muster::lab::vbmc
