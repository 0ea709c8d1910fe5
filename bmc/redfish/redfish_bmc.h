// SPDX-License-Identifier: Apache-2.0
// RedfishBmc: one BMC by Redfish. Resources are found by role, answers are read leniently, outcomes
// by re-reading state.
#pragma once

#include "bmc/bmc.h"
#include "bmc/quirks.h"
#include "bmc/redfish/event_stream.h"
#include "bmc/redfish/session.h"
#include "bmc/shared_package.h"
#include "bmc/staged_images.h"
#include "bmc/startup.h"

#include <map>
#include <memory>
#include <optional>
#include <set>

namespace muster::bmc {

class RedfishBmc final : public Bmc,
                         public EventSource,
                         public DeviceStates,
                         public StagedImages,
                         public SharedPackages {
 public:
  RedfishBmc(std::unique_ptr<RedfishSession> session, inventory::BootMode boot_mode, Clock& clock,
             FirmwareImages& images);

  std::string address() const override { return session_->address(); }
  Async<SystemInfo> system() override;
  Async<void> power(PowerAction action) override;
  Async<void> bootOnce(BootTarget target) override;
  Async<std::vector<FirmwareItem>> firmware() override;
  Async<std::string> startUpdate(FirmwareUpdate update) override;
  Async<TaskStatus> task(std::string uri) override;
  Async<TaskList> tasks() override;
  Async<void> resetBmc() override;
  Async<Survey> survey() override;
  Async<void> newSession() override;
  Async<std::vector<LogEntry>> eventLog(std::size_t limit) override;
  Async<SerialConsoleEndpoint> serialConsole() override;
  Async<void> acCycle() override;
  Async<std::vector<BackgroundCopy>> backgroundCopies() override;
  Async<void> commitImage(std::string component) override;
  Async<std::string> previousImage(std::string component) override;
  Async<void> rollBack(std::string component) override;
  Async<std::vector<SensorReading>> sensors() override;
  Async<std::vector<DeviceState>> notReady() override;
  Async<bool> sharesPackage(std::string component, std::string other) override;
  Async<void> cancelStaged(std::string component, std::size_t waiting) override;
  Async<std::map<std::string, std::string>> biosAttributes() override;
  Async<std::map<std::string, std::string>> stagedBiosAttributes() override;
  Async<void> stageBios(std::map<std::string, std::string> values) override;

  Async<void> sendNmi() override;
  Async<void> boot(BootOverride what) override;
  Async<void> rotatePassword() override;
  Async<std::string> certificateRequest(CertificateSubject subject) override;
  Async<void> installCertificate(std::string pem) override;

  Async<EventStreamPosition> listen(EventStreamPosition from, std::function<void()> opened,
                                    std::function<void(std::vector<LogEntry>)> told) override;

  Async<void> logout() { return session_->close(); }

 private:
  /// Where things are on this BMC; found once, forgotten at a BMC reset.
  struct Places {
    std::string system, manager, update_service, tasks, chassis;
    Quirks quirks;
  };
  struct Member {
    std::string uri;
    Json json;
  };
  struct Unread {
    std::string uri;
    Error why;
  };
  /// Of a collection. A baseboard answers 503 while the host is off: the other members still count.
  struct Members {
    std::vector<Member> found;
    std::vector<Unread> unread;
  };
  struct Inventory {
    std::vector<FirmwareItem> items;
    std::map<std::string, std::string> uri_by_name;
    std::map<std::string, std::string>
        related_by_name;  ///< the first RelatedItem, where there is one
    std::map<std::string, Member>
        previous;  ///< by name, where the inventory lists images that ran before
  };
  struct PreviousImage {
    std::string version, uri;
  };

  Async<Places> places();
  void forgetPlaces();
  Async<Member> pickSystem(std::string collection);
  Async<Member> pickManager(std::string collection, Member system);
  enum class Want { AsListed, Expanded };
  /// Expanded: all members in one answer, where the service offers it and the dialect may use it;
  /// else one request each.
  Async<Members> members(std::string collection, std::size_t limit,
                         std::chrono::milliseconds timeout, Want want = Want::AsListed);
  Async<std::vector<std::string>> macs(std::string collection);
  Async<std::vector<Survey::Gpu>> gpus();
  Async<std::vector<std::string>> allowedResets(Json action);

  struct Bios {
    Json json;
    std::string settings;  ///< where values are staged
    bool on_reset =
        false;  ///< they wait for ever unless their PATCH asks for the next restart (iDRAC)
  };
  Async<Bios> bios();

  Async<PowerState> powerState();
  using Seen = std::shared_ptr<const RedfishReply>;  ///< never null where it is an answer
  /// A read of the system, remembered until the session writes something.
  Async<Seen> readSystem();
  /// The last such read where it is hardly older than an answer is on its way; else a new one. Not
  /// for waiting: that must see changes.
  Async<Seen> systemAsRead();
  /// The resource to which a boot override is written; the system's is read by readSystem().
  Async<Seen> readBootPlace(std::string uri);
  /// Both answer the system as it was read last, in the wanted state. `seen`: read just now; null:
  /// reads it.
  Async<Seen> reach(PowerState wanted, std::string type, std::chrono::seconds limit,
                    Seen seen = nullptr);
  Async<Seen> waitForPower(PowerState wanted, std::chrono::steady_clock::time_point until,
                           std::string after);
  Async<void> writeBoot(std::string uri, BootOverride what);

  Async<Member> ownAccount();
  Async<void> changePassword(std::string account, Secret next);
  struct CertificatePlaces {
    std::string collection, certificate;  ///< of the web server; iLO: its HttpsCert
    std::string request, replace;         ///< targets of the actions; "": not offered
    enum class Words {
      Service,
      Rekey,
      HpeHttpsCert
    } words = Words::Service;  ///< that the actions take
    std::string rekey_info;    ///< ActionInfo of a Certificate.Rekey
  };
  Async<CertificatePlaces> certificatePlaces();
  Async<std::optional<CertificatePlaces>> hpeCertificatePlaces(Json manager);
  Async<Json> requestParameters(CertificatePlaces at, CertificateSubject subject);
  Async<std::string> hpeSigningRequest(CertificatePlaces at, Json parameters);
  /// Whether it is shown now; it is the pin then.
  Async<bool> waitForCertificate(std::string fingerprint);

  Async<Inventory> readInventory();
  Async<Json> updateParameters(std::string component);
  Async<void> refuseWhileUpdating();
  Async<RedfishReply> push(UpdateMethod way, Json service, FirmwareUpdate update,
                           FirmwareImage image, Json parameters);
  Async<RedfishReply> pushFile(std::string path, FirmwareImage image, std::string name);
  Async<RedfishReply> pushForm(std::string path, FirmwareUpdate update, FirmwareImage image);
  Async<RedfishReply> sendForm(std::string path, std::string name, Json parameters,
                               FirmwareImage image, FirmwareImage signature);
  Async<FirmwareImage> signatureOf(std::filesystem::path file, std::size_t piece,
                                   std::size_t pieces);
  Async<void> waitForFlash();
  Async<std::optional<std::vector<std::string>>> readyFiles();
  Async<TaskStatus> beginReady(std::string uri);
  Async<TaskStatus> orderReady(std::string uri);
  Async<TaskStatus> startVerified(std::string verified);
  Async<TaskStatus> flashState();
  Async<PreviousImage> findPrevious(std::string component);
  Async<void> waitForTask(std::string uri);
  Async<void> deleteWaitingJobs(std::string manager, std::size_t waiting);
  Async<std::vector<std::string>> offeredResets(Json system);
  Task<std::vector<SensorReading>> powerSupplies(std::string subsystem);
  Async<void> cutByAction(Places at, AcCycleMethod way);
  Async<void> cutByBios(Places at, AcCycleMethod way);

  /// Orders a reset that takes the BMC away, and waits until it is back and calm.
  Async<void> resetThrough(std::string target, std::string type, std::string manager,
                           std::string reset_time_before);
  Async<void> waitForReset(std::string manager, std::string reset_time_before,
                           std::chrono::seconds limit);
  Async<void> stabilize();
  Async<std::string> whatIsNotBack(bool adapters_too);
  Async<std::vector<DeviceState>> lateAdapters();

  std::unique_ptr<RedfishSession> session_;
  inventory::BootMode boot_mode_;
  Clock& clock_;
  FirmwareImages& images_;
  std::optional<Places> places_;
  bool expand_ = false;  ///< $expand is offered, fits the dialect, and has not failed here
  std::optional<std::vector<std::string>>
      adapters_;  ///< collections of network adapters; null: not looked for
  std::string inventory_, task_collection_;  ///< "" until they were looked for
  std::map<std::string, std::vector<std::string>>
      resets_;  ///< ResetType values of an ActionInfo, by its URI
  std::optional<std::vector<std::string>> macs_;
  std::set<std::string> not_ordered_;  ///< files that lie ready, of which this process knows that
                                       ///< nobody has ordered their update
  struct SystemRead {
    Seen reply;
    std::chrono::steady_clock::time_point at;
    std::uint64_t writes = 0;  ///< of the session until then
  };
  std::optional<SystemRead> read_;
  std::uint64_t reads_sent_ = 0;  ///< of the system
};

/// The task of an accepted upload: Location, Location…/Monitor, the body's @odata.id or Id, or a
/// message's argument.
/// "" when the answer names none.
std::string taskUriOf(const RedfishReply& reply);
/// Reads a Task resource or a task monitor's answer.
TaskStatus taskStatusOf(const RedfishReply& reply, std::string_view staged_state = {});

/// Reads a system's SerialConsole; a manager's, where the ways are but listed.
SerialConsoleEndpoint serialConsoleOf(const Json& console);
SerialConsoleEndpoint listedSerialConsoleOf(const Json& console);

/// Behind a task's URI, where there is no task: the flash shows in the UpdateService; the task only
/// verifies, a second phase follows.
inline constexpr std::string_view kFlashMark = "#flash", kVerifyMark = "#verify";
/// Behind the URI of firmware that lies ready on the BMC.
inline constexpr std::string_view kReadyMark = "#ready";

}  // namespace muster::bmc
