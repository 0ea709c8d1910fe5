// SPDX-License-Identifier: Apache-2.0
// A Redfish service for one machine: sessions, power, boot override, firmware inventory and update,
// tasks.
//
// It behaves as BMCs do: an update is staged in steps and becomes active only at a reset of what it
// belongs to; a reset of the manager makes it unreachable for a while and ends every session; wrong
// passwords lock the account. All of it runs on one executor. The owner mounts routes() on a server
// and runs run() beside it.
#pragma once

#include "base/clock.h"
#include "base/io/http.h"
#include "lab/vbmc/bmc_state.h"
#include "lab/vbmc/faults.h"
#include "lab/vbmc/login_guard.h"
#include "lab/vbmc/machine.h"

#include <nlohmann/json.hpp>

#include <deque>
#include <filesystem>
#include <functional>
#include <map>
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
};

/// Of the machine's serial console: where the owner serves it by SSH.
struct SerialOffer {
  int ssh_port = 22;
  std::string command;  ///< that the server's command line takes; empty: the session is the console
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
  std::optional<SerialOffer> serial = {};  ///< absent: it tells of none
  std::function<Async<std::string>(std::string url)> fetch =
      {};  ///< how it gets at a URL; empty: not at all
  std::function<UpdateFault()> draw_fault =
      {};  ///< asked for each update when no fault is set; empty: none
  Account account;
  LoginLimits logins;
  Timings pace;
  std::filesystem::path state_file;      ///< BmcState; empty: it forgets everything when it ends
  std::filesystem::path staging_folder;  ///< what is flashed; empty: it is only verified
  std::size_t max_image_bytes = 64u << 20;
  std::size_t max_tasks = 64;
  /// Called when the BMC goes away and when it is back; the owner closes and opens the listener.
  std::function<void()> went_away = [] {};
  std::function<void()> came_back = [] {};
  /// Called when a certificate was installed; new connections show it from then on.
  std::function<void(io::TlsIdentity)> new_identity = [](const io::TlsIdentity&) {};
};

class RedfishService {
 public:
  /// Errors: Corrupt (state file)
  static Result<std::unique_ptr<RedfishService>> make(Clock& clock, Workers& workers,
                                                      Machine& machine, ServiceOptions options);

  std::vector<io::Route> routes();
  Task<io::ServerResponse> handle(io::ServerRequest request);

  /// Carries out updates and manager resets, one after the other, until stop(). Await it beside the
  /// server.
  Task<void> run();
  void stop();

  enum class Told { ByEvent, ByEventAndLog };
  /// Something happens to the machine: "Critical", "Warning" or "OK".
  void report(const std::string& severity, const std::string& message,
              Told told = Told::ByEventAndLog);

  const BmcState& state() const { return state_; }
  Faults& faults() { return faults_; }
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
    std::string job;  ///< of iDRAC: the work goes on there
    int young_reads =
        0;  ///< of that job, which answer 404 yet; negative: task and job have vanished
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
  struct Copy {
    std::string component;
    std::chrono::steady_clock::time_point until;
  };
  using Json = nlohmann::json;
  using Response = io::ServerResponse;

  RedfishService(Clock& clock, Workers& workers, Machine& machine, ServiceOptions options,
                 BmcState state);

  // redfish_service.cc: who may, and where to
  Task<Response> serve(io::ServerRequest request, std::string path);
  Response setFaults(const io::ServerRequest& request);
  std::optional<Response> refuseUnknown(const io::ServerRequest& request);
  Task<Response> get(std::string path);
  Task<Response> post(io::ServerRequest request, std::string path);
  Response login(const io::ServerRequest& request);
  Response patch(const io::ServerRequest& request, const std::string& path);
  std::optional<Response> refuseOldEtag(const io::ServerRequest& request,
                                        const std::string& path) const;
  std::string etagOf(const std::string& path) const;
  std::string inside(std::string path) const;
  Response patchSystem(const io::ServerRequest& request);
  Response patchManager(const io::ServerRequest& request);
  Response patchBios(const io::ServerRequest& request);
  Response expand(Json collection, bool on) const;
  Response resetManager(const io::ServerRequest& request);
  Task<Response> resetSystem(io::ServerRequest request);
  Async<void> startMachine();
  void takeBiosOver();

  // resources.cc: what it shows
  std::optional<Json> resource(const std::string& path, bool on) const;
  Json systemResource(bool on) const;
  Json taskResource(const UpdateTask& task) const;
  bool isShown(const UpdateTask& task) const;
  Json accountResource() const;
  Json updateServiceResource() const;
  Json managerResource() const;
  std::vector<std::string> inventoryIds() const;
  std::string slotOf(const std::string& id) const;
  bool isPrevious(const std::string& id) const;
  std::optional<Json> firmwareMember(const std::string& path, const std::string& id, bool on) const;

  // vendor_resources.cc: what only some have
  std::optional<Json> vendorResource(const std::string& path, bool on) const;
  std::optional<Json> chassisResource(const std::string& path) const;
  Json enclosingChassis(const std::string& path) const;
  std::optional<Json> bootOption(const std::string& path) const;
  std::optional<Json> adapterResource(const std::string& path) const;
  Json biosResource(bool settings) const;
  bool copying(const std::string& component) const;

  // trust_resources.cc: account and certificate
  std::optional<Json> trustResource(const std::string& path) const;
  Response patchAccount(const io::ServerRequest& request);
  std::optional<Json> hpeTrustResource(const std::string& path) const;
  std::optional<Response> postTrust(const io::ServerRequest& request, const std::string& path);
  Result<std::string> makeRequest(const std::string& common_name);
  Response generateRequest(const io::ServerRequest& request);
  Response rekey(const io::ServerRequest& request);
  Response generateHpeRequest(const io::ServerRequest& request);
  Response replaceCertificate(const io::ServerRequest& request, const std::string& field);

  // event_resources.cc: what it tells by itself
  std::optional<Json> eventResource(const std::string& path) const;
  Task<Response> streamEvents(io::ServerRequest request);

  // update_jobs.cc: firmware
  Response acceptUpload(const io::ServerRequest& request);
  Response deleteJob(const std::string& path);
  Response acceptUrl(const io::ServerRequest& request);
  Response acceptReady(const io::ServerRequest& request);
  Response acceptForm(const io::ServerRequest& request);
  std::optional<Response> collectPiece(std::string_view parameters, std::string& file,
                                       bool is_signed);
  Response begin(Job job);
  Response startVerified();
  Response updateFromPrevious(const io::ServerRequest& request);
  Response commitImage(const io::ServerRequest& request);
  Response refuseBusy() const;
  UpdateFault drawFault();
  std::optional<Response> refusalBy(UpdateFault fault);
  std::optional<Response> takeWords(const Json& parameters, Job& job) const;
  std::string componentAt(const std::string& uri) const;
  void loseConfiguration(const std::string& component);
  Task<void> carryOut(Job job);
  Task<void> update(Job job);
  Task<void> away(std::chrono::milliseconds duration);
  Task<void> managerReset();
  Task<void> acCycle();
  Async<void> verifyAndStage(Job job);
  Async<void> write(Job job, std::string component);
  Async<void> writeOthers(Job job, std::vector<std::string> components, std::string version);
  void finish(const Job& job, const Result<void>& done);
  void activate(Becomes how);
  void noteCut(const std::string& what);
  void violate(const std::string& what);
  void note(const std::string& words);
  void save();

  Clock& clock_;
  Workers& workers_;
  Machine& machine_;
  ServiceOptions options_;
  const Behaviour& behaviour_;
  BmcState state_;
  LoginGuard guard_;
  Faults faults_;
  std::map<std::string, UpdateTask> tasks_;
  std::optional<Job> job_;
  struct Event {
    std::uint64_t id = 0;
    std::string created, severity, message;
  };
  std::deque<Event> events_;
  std::uint64_t last_event_ = 0;
  std::optional<Job> verified_;  ///< waits for StartUpdate
  std::map<std::string, Job>
      ready_;  ///< files that were pushed and lie there, by the Id of their member
  std::uint64_t last_ready_ = 0;
  std::string flash_state_ = "Idle";  ///< iLO
  std::string pieces_tag_, pieces_;   ///< of a file that comes in several
  int pieces_taken_ = 0;
  bool stuck_ = false;
  std::string loses_next_version_;                 ///< component whose activation will not take
  bool adapter_starting_ = false;                  ///< until the next start
  UpdateFault adapter_fault_ = UpdateFault::None;  ///< of the next start
  std::set<std::string> loses_configuration_;  ///< components whose staged image does not keep it
  std::set<std::string> breaks_;               ///< components whose staged image leaves them worse
  std::vector<Copy> copies_;
  Secret requested_key_;         ///< of the last certificate request
  std::string certificate_pem_;  ///< that was installed; "": its own
  std::string hpe_request_;      ///< shows some reads after it was ordered
  mutable int hpe_request_reads_ = 0;
  std::string writing_;  ///< component whose image is being written
  std::chrono::steady_clock::time_point baseboard_silent_until_{};
  std::function<void()> wake_ = [] {};
  bool away_ = false;
  bool stopping_ = false;
};

}  // namespace muster::lab::vbmc
