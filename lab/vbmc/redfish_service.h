// SPDX-License-Identifier: Apache-2.0
// A Redfish service for one machine: who may, and where a request goes to; power and BIOS settings
// itself. Resources, accounts, certificates, boot, virtual media, events and updates have classes
// of their own.
//
// It behaves as BMCs do: an update is staged in steps and becomes active only at a reset of what it
// belongs to; a reset of the manager makes it unreachable for a while and ends every session; wrong
// passwords lock the account. All of it runs on one executor. The owner mounts routes() on a server
// and runs run() beside it.
#pragma once

#include "lab/vbmc/account_service.h"
#include "lab/vbmc/bmc_runtime.h"
#include "lab/vbmc/boot_service.h"
#include "lab/vbmc/event_service.h"
#include "lab/vbmc/media_service.h"
#include "lab/vbmc/resources.h"
#include "lab/vbmc/storage_service.h"
#include "lab/vbmc/trust_service.h"
#include "lab/vbmc/update_intake.h"
#include "lab/vbmc/update_jobs.h"

namespace muster::lab::vbmc {

class RedfishService {
 public:
  /// Errors: Corrupt (state file)
  static Result<std::unique_ptr<RedfishService>> make(Clock& clock, Workers& workers,
                                                      Machine& machine, ServiceOptions options);

  std::vector<io::Route> routes();
  Task<io::ServerResponse> handle(io::ServerRequest request);

  /// Carries out updates and manager resets, one after the other, until stop(). Await it beside the
  /// server.
  Task<void> run() { return jobs_.run(); }
  void stop();

  using SentEvent = vbmc::SentEvent;
  /// Something happens to the machine: "Critical", "Warning" or "OK".
  void report(const std::string& severity, const std::string& message,
              SentEvent told = SentEvent::ByEventAndLog) {
    events_.report(severity, message, told);
  }

  const BmcState& state() const { return bmc_.state; }
  Faults& faults() { return bmc_.faults; }
  StorageService& storage() { return storage_; }
  /// What the machine's RAID controller has when a test begins.
  void setVolumes(std::vector<Volume> volumes) { bmc_.state.volumes = std::move(volumes); }
  bool away() const { return bmc_.away; }
  /// An update or a reset of the manager is running.
  bool busy() const { return bmc_.job.has_value(); }

 private:
  using Json = nlohmann::json;
  using Response = io::ServerResponse;

  RedfishService(Clock& clock, Workers& workers, Machine& machine, ServiceOptions options,
                 BmcState state);

  Task<Response> serve(io::ServerRequest request, std::string path);
  Response setFaults(const io::ServerRequest& request);
  std::optional<Response> refuseUnknown(const io::ServerRequest& request, Caller& caller);
  /// Methods that the resource at this path takes, if there is one.
  std::vector<std::string> methodsOf(const std::string& path) const;
  Response refuseMethod(const std::string& method, const std::string& path) const;
  Response remove(const std::string& path);
  Task<Response> get(std::string path);
  Task<Response> post(io::ServerRequest request, std::string path);
  Response login(const io::ServerRequest& request);
  Response patch(const io::ServerRequest& request, const std::string& path, const Caller& caller);
  std::optional<Response> refuseOldEtag(const io::ServerRequest& request,
                                        const std::string& path) const;
  Response patchManager(const io::ServerRequest& request);
  Response patchBios(const io::ServerRequest& request);
  Response expand(Json collection, bool on) const;
  Response resetManager(const io::ServerRequest& request);
  Task<Response> resetSystem(io::ServerRequest request);
  Async<void> startMachine();
  void takeBiosOver();

  BmcRuntime bmc_;
  AccountService accounts_{bmc_};
  BootService boot_{bmc_};
  MediaService media_{bmc_};
  TrustService trust_{bmc_};
  EventService events_{bmc_};
  StorageService storage_{bmc_};
  Resources resources_{bmc_, {accounts_, boot_, media_, trust_, events_, storage_}};
  UpdateIntake intake_{bmc_};
  UpdateJobs jobs_{bmc_};
};

}  // namespace muster::lab::vbmc
