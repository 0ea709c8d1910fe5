// A Redfish service for one machine: sessions, power, boot override, firmware inventory and update, tasks.
//
// It behaves as BMCs do: an update is staged in steps and becomes active only at a reset of what it belongs to; a reset of the
// manager makes it unreachable for a while and ends every session; wrong passwords lock the account. All of it runs on one
// executor. The owner mounts routes() on a server and runs run() beside it.
#pragma once

#include "base/clock.h"
#include "base/io/http.h"
#include "lab/vbmc/bmc_state.h"
#include "lab/vbmc/login_guard.h"
#include "lab/vbmc/machine.h"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
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
  std::vector<std::string> gpu_models;  ///< shown as processors; their serials follow from the node's
  std::string bmc_mac;                  ///< of the BMC's own NIC; empty: it shows none
};

struct Pace {
  std::chrono::milliseconds flash_step{150};  ///< between the writes of one image
  int flash_steps = 10;
  std::chrono::milliseconds reset_delay{200};  ///< from the answer to Manager.Reset until the BMC is gone
  std::chrono::milliseconds reset_duration{3000};
};

struct ServiceOptions {
  Identity identity;
  Account account;
  LoginLimits logins;
  Pace pace;
  std::filesystem::path state_file;      ///< BmcState; empty: it forgets everything when it ends
  std::filesystem::path staging_folder;  ///< what is flashed; empty: it is only verified
  std::size_t max_image_bytes = 64u << 20;
  std::size_t max_tasks = 64;
  /// Called when the BMC goes away and when it is back; the owner closes and opens the listener.
  std::function<void()> went_away = [] {};
  std::function<void()> came_back = [] {};
};

class RedfishService {
 public:
  /// Errors: Corrupt (state file)
  static Result<std::unique_ptr<RedfishService>> make(Clock& clock, Workers& workers, Machine& machine, ServiceOptions options);

  std::vector<io::Route> routes();
  Task<io::ServerResponse> handle(io::ServerRequest request);

  /// Carries out updates and manager resets, one after the other, until stop(). Await it beside the server.
  Task<void> run();
  void stop();

  const BmcState& state() const { return state_; }
  bool away() const { return away_; }
  /// An update or a reset of the manager is running.
  bool busy() const { return job_.has_value(); }

 private:
  struct UpdateTask {
    std::string id;
    std::string state = "New";  ///< New, Running, Completed, Exception
    std::string status = "OK";
    std::string component;
    int percent = 0;
    std::vector<std::pair<std::string, std::string>> messages;  ///< MessageId, text
  };
  struct Job {
    bool manager_reset = false;
    std::string task_id;
    std::shared_ptr<const std::string> image;
    std::vector<std::string> targets;
  };
  using Json = nlohmann::json;
  using Response = io::ServerResponse;

  RedfishService(Clock& clock, Workers& workers, Machine& machine, ServiceOptions options, BmcState state);

  // redfish_service.cc: who may, and where to
  std::optional<Response> refuseUnknown(const io::ServerRequest& request);
  Task<Response> get(std::string path);
  Task<Response> post(io::ServerRequest request, std::string path);
  Response login(const io::ServerRequest& request);
  Response patchSystem(const io::ServerRequest& request);
  Response resetManager(const io::ServerRequest& request);
  Task<Response> resetSystem(io::ServerRequest request);
  Async<void> startMachine();

  // resources.cc: what it shows
  std::optional<Json> resource(const std::string& path, bool on) const;
  Json systemResource(bool on) const;
  Json taskResource(const UpdateTask& task) const;
  Json accountResource() const;

  // update_jobs.cc: firmware
  Response acceptUpload(const io::ServerRequest& request);
  Task<void> carryOut(Job job);
  Task<void> update(Job job);
  Task<void> managerReset();
  Async<void> verifyAndStage(Job job);
  void activate(const std::string& component);
  void save();

  Clock& clock_;
  Workers& workers_;
  Machine& machine_;
  ServiceOptions options_;
  BmcState state_;
  LoginGuard guard_;
  std::map<std::string, UpdateTask> tasks_;
  std::optional<Job> job_;
  std::function<void()> wake_ = [] {};
  bool away_ = false;
  bool stopping_ = false;
};

}  // namespace muster::lab::vbmc
