// SPDX-License-Identifier: Apache-2.0
// Firmware updates and manager resets: the slow work of the virtual BMC, one job at a time.
#include "base/json_input.h"
#include "base/json_output.h"
#include "lab/vbmc/firmware_file.h"
#include "lab/vbmc/messages.h"
#include "lab/vbmc/multipart.h"
#include "lab/vbmc/redfish_service.h"
#include "lab/vbmc/resource_names.h"

#include <boost/asio/error.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/system/system_error.hpp>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace muster::lab::vbmc {

namespace {

using nlohmann::json;

/// UpdateParameters.Targets, by their names inside; empty: whatever the image is for.
Result<std::vector<std::string>> targetsOf(std::string_view parameters,
                                           const Behaviour& behaviour) {
  auto body = jsonOrNone(parameters, kRequestJson);
  if (!body.is_object())
    return fail(ErrorCode::InvalidInput, "UpdateParameters is not a JSON object");
  std::vector<std::string> targets;
  auto listed = body.find("Targets");
  if (listed == body.end()) return targets;
  if (!listed->is_array()) return fail(ErrorCode::InvalidInput, "Targets is not a list");
  for (auto& target : *listed) {
    auto path = target.is_string() ? target.get<std::string>() : std::string();
    if (!path.empty() && path == behaviour.whole_tray) continue;
    path = insideName(std::move(path), behaviour.names);
    if (!path.starts_with(kInventory + "/") && path != kManager && path != kBios)
      return fail(ErrorCode::InvalidInput,
                  fmt::format("'{}' is not a member of FirmwareInventory", path));
    targets.push_back(std::move(path));
  }
  return targets;
}

Result<FirmwareHeader> checkImage(const std::string& image) {
  TRY_OK(verifyFirmware(image));
  return readFirmwareHeader(image);
}

/// Copies one step's part of the image into the slot's flash file.
Result<void> writeStep(const std::string& bytes, const std::filesystem::path& flash, int step,
                       int steps) {
  auto begin = bytes.size() * step / steps, end = bytes.size() * (step + 1) / steps;
  std::ofstream out(flash, std::ios::binary | (step == 0 ? std::ios::trunc : std::ios::app));
  out.write(bytes.data() + begin, static_cast<std::streamsize>(end - begin));
  out.flush();
  if (!out) return fail(ErrorCode::Internal, fmt::format("cannot write {}", flash.string()));
  return {};
}

Result<std::map<std::string, std::string_view>> partsOf(const io::ServerRequest& request) {
  const auto type = request.headers.find("Content-Type");
  return splitMultipart(type == request.headers.end() ? "" : type->second, request.body);
}

}  // namespace

void RedfishService::save() {
  state_.failed_logins = guard_.failedLogins();
  if (options_.state_file.empty()) return;
  if (auto saved = state_.save(options_.state_file); !saved)
    logWarning("vbmc", "{}: {}", options_.identity.node, saved.error().str());
}

io::ServerResponse RedfishService::refuseBusy() const {
  auto busy =
      redfishError(503, "Base.1.8.ServiceTemporarilyUnavailable",
                   "Another firmware update or a reset is running.", "Wait until it has ended.");
  busy.headers["Retry-After"] = "5";
  return busy;
}

UpdateFault RedfishService::drawFault() {
  const auto ordered = faults_.draw();
  return ordered == UpdateFault::None && options_.draw_fault ? options_.draw_fault() : ordered;
}

/// What refuses an upload as a whole; a dropped connection does not come back from here.
std::optional<io::ServerResponse> RedfishService::refusalBy(UpdateFault fault) {
  if (fault == UpdateFault::CutUpload)
    throw boost::system::system_error(asio::error::operation_aborted);
  if (fault == UpdateFault::NoLicence)
    return redfishError(
        403, "SMC.1.0.OemLicenseNotPassed",
        "Not licensed to perform this request. The following licenses OOB, DCMS were needed.");
  stuck_ = stuck_ || fault == UpdateFault::StuckMode;
  if (!stuck_) return std::nullopt;
  if (behaviour_.stuck_message.empty())
    return redfishError(503, "Base.1.8.ServiceTemporarilyUnavailable",
                        "Another firmware update is running.", "Wait until it has ended.");
  return redfishError(400, "SMC.1.0." + std::string(behaviour_.stuck_message),
                      "The BMC is in update mode already.", "Reset the BMC.");
}

io::ServerResponse RedfishService::acceptUpload(const io::ServerRequest& request) {
  if (job_) return refuseBusy();
  Job job;
  job.fault = drawFault();
  if (auto refusal = refusalBy(job.fault)) return std::move(*refusal);
  auto parts = partsOf(request);
  if (!parts) return redfishError(400, "Base.1.8.MalformedJSON", parts.error().str());
  auto file = parts->find("UpdateFile");
  if (file == parts->end())
    return redfishError(400, "Base.1.8.PropertyMissing", "The part UpdateFile is missing.");
  if (file->second.size() > options_.max_image_bytes)
    return redfishError(413, "Base.1.8.PayloadTooLarge",
                        fmt::format("The image has more than {} bytes.", options_.max_image_bytes));
  auto parameters = parts->find("UpdateParameters");
  const auto words = parameters == parts->end() ? std::string_view("{}") : parameters->second;
  auto ids = targetsOf(words, behaviour_);
  if (!ids) return redfishError(400, "Base.1.8.PropertyValueError", ids.error().str());
  for (const auto& uri : *ids) job.targets.push_back(componentAt(uri));
  if (auto refusal = takeWords(jsonOrNone(words, kRequestJson), job)) return std::move(*refusal);
  job.image = std::make_shared<const std::string>(std::move(file->second));
  const bool on_request =
      jsonOrNone(words, kRequestJson).value("@Redfish.OperationApplyTime", "") ==
      "OnStartUpdateRequest";
  job.work = behaviour_.two_phase && on_request ? Work::Verify : Work::Update;
  const bool answer_is_lost = job.fault == UpdateFault::LostAnswer;
  auto accepted = begin(std::move(job));
  if (answer_is_lost) throw boost::system::system_error(asio::error::operation_aborted);
  return accepted;
}

/// iDRAC before multipart: the form's part "file", sent to the inventory with its ETag, lies there
/// until SimpleUpdate names it.
io::ServerResponse RedfishService::acceptReady(const io::ServerRequest& request) {
  if (job_) return refuseBusy();
  const auto given = request.headers.find("If-Match");
  if (given == request.headers.end() || given->second != etagOf(kInventory))
    return redfishError(412, "Base.1.8.PreconditionFailed",
                        "If-Match has to be the ETag of the inventory.");
  Job job;
  job.fault = drawFault();
  if (auto refusal = refusalBy(job.fault)) return std::move(*refusal);
  auto parts = partsOf(request);
  if (!parts || !parts->contains("file"))
    return redfishError(400, "IDRAC.1.6.SYS409", "The form has no part \"file\".");
  job.image = std::make_shared<const std::string>(parts->at("file"));
  const auto header = readFirmwareHeader(*job.image);
  if (!header) return redfishError(400, "IDRAC.1.6.RED007", header.error().str());
  const auto id = fmt::format("Available-{}-{}", ++last_ready_, header->version);
  const bool answer_is_lost = job.fault == UpdateFault::LostAnswer;
  ready_[id] = std::move(job);
  if (answer_is_lost) throw boost::system::system_error(asio::error::operation_aborted);
  auto accepted = io::ServerResponse::json(201, resource(kInventory + "/" + id, true)->dump());
  accepted.headers["Location"] = kInventory + "/" + id;
  return accepted;
}

/// Answers the piece; with the last one `file` becomes the whole and nothing is answered. A piece
/// that is not full is the last.
std::optional<io::ServerResponse> RedfishService::collectPiece(std::string_view parameters,
                                                               std::string& file, bool is_signed) {
  const auto words = jsonOrNone(parameters, kRequestJson);
  const auto section = words.is_object() ? words.value("Section", 0) : 0;
  const auto tag = words.is_object() ? words.value("ETag", "") : std::string();
  const bool full = behaviour_.piece_bytes > 0 && file.size() == behaviour_.piece_bytes;
  if (section == 0 && !full) return std::nullopt;
  if (!is_signed)
    return redfishError(400, "iLO.2.14.ComponentUploadFailed", "A piece needs its signature.");
  if (section == 0) pieces_tag_ = tag, pieces_.clear(), pieces_taken_ = 0;
  if (tag != pieces_tag_ || section != pieces_taken_)
    return redfishError(400, "iLO.2.14.ComponentUploadFailed",
                        fmt::format("Piece {} of {} is not the next one.", section, tag));
  ++pieces_taken_;
  pieces_ += file;
  if (full) return io::ServerResponse::text(200, "");
  file = std::exchange(pieces_, {});
  pieces_tag_.clear();
  return std::nullopt;
}

/// iLO's web form: the session's key is a field of it.
io::ServerResponse RedfishService::acceptForm(const io::ServerRequest& request) {
  auto parts = partsOf(request);
  if (!parts || !parts->contains("sessionKey") || !guard_.find(parts->at("sessionKey")))
    return redfishError(401, "Base.1.8.NoValidSession", "The form has no valid sessionKey.");
  if (job_) return refuseBusy();
  if (!parts->contains("file"))
    return redfishError(400, "Base.1.8.PropertyMissing", "The part file is missing.");
  std::string file(parts->at("file"));
  if (auto piece = collectPiece(parts->contains("parameters") ? parts->at("parameters") : "", file,
                                parts->contains("compsig")))
    return std::move(*piece);
  Job job;
  job.fault = drawFault();
  if (auto refusal = refusalBy(job.fault)) return std::move(*refusal);
  job.image = std::make_shared<const std::string>(std::move(file));
  const bool answer_is_lost = job.fault == UpdateFault::LostAnswer;
  begin(std::move(job));
  if (answer_is_lost) throw boost::system::system_error(asio::error::operation_aborted);
  return io::ServerResponse::text(200, "");
}

io::ServerResponse RedfishService::begin(Job job) {
  UpdateTask task;
  task.id = fmt::format("update-{:04}", ++state_.tasks);
  if (behaviour_.young_task_reads > 0) {
    task.job = fmt::format("JID_{:012}", state_.tasks);
    task.young_reads = behaviour_.young_task_reads - 1;
    task.messages.emplace_back("Update.1.0.OperationTransitionedToJob", kJobs + "/" + task.job);
  }
  if (tasks_.size() >= options_.max_tasks) tasks_.erase(tasks_.begin());
  tasks_[task.id] = task;
  flash_state_ = "Uploading";
  save();
  job.task_id = task.id;
  job_ = std::move(job);
  wake_();
  auto shown = taskResource(task);
  renameOutside(shown, behaviour_.names);
  auto accepted = io::ServerResponse::json(202, jsonText(shown));
  accepted.headers["Location"] = kTasks + "/" + task.id;
  return accepted;
}

io::ServerResponse RedfishService::startVerified() {
  if (job_) return refuseBusy();
  if (!verified_)
    return redfishError(400, "Base.1.8.ActionNotSupported",
                        "No verified image waits for its update.");
  auto job = *std::exchange(verified_, std::nullopt);
  job.work = Work::Update;
  return begin(std::move(job));
}

/// iDRAC: SimpleUpdate takes a member of its own inventory: an image that ran before, or a file
/// that lies ready.
io::ServerResponse RedfishService::updateFromPrevious(const io::ServerRequest& request) {
  if (job_) return refuseBusy();
  const auto body = jsonOrNone(request.body, kRequestJson);
  const auto uri = body.is_object() ? body.value("ImageURI", "") : std::string();
  const auto id =
      uri.starts_with(kInventory + "/") ? uri.substr(kInventory.size() + 1) : std::string();
  if (const auto ready = ready_.find(id); ready != ready_.end()) return begin(ready->second);
  if (!isPrevious(id))
    return redfishError(400, "Base.1.8.ActionParameterValueNotInList",
                        fmt::format("'{}' is no image that ran before.", uri));
  Job job;
  job.work = Work::RollBack;
  job.targets.push_back(slotOf(id));
  return begin(std::move(job));
}

/// Fills the second slot of what runs.
io::ServerResponse RedfishService::commitImage(const io::ServerRequest& request) {
  auto ids = targetsOf(request.body, behaviour_);
  if (!ids || ids->empty())
    return redfishError(400, "Base.1.8.PropertyValueError", "Targets names what to commit.");
  for (const auto& uri : *ids) {
    auto slot = state_.slots.find(componentAt(uri));
    if (slot == state_.slots.end())
      return redfishError(400, "Base.1.8.PropertyValueError", fmt::format("There is no {}.", uri));
    slot->second.previous_version = slot->second.version;
  }
  save();
  return io::ServerResponse::text(204, "");
}

Task<void> RedfishService::run() {
  auto executor = co_await asio::this_coro::executor;
  asio::steady_timer bell(executor);
  wake_ = [&bell] { bell.cancel(); };
  while (!stopping_) {
    if (job_) {
      co_await carryOut(*job_);
      job_.reset();
      continue;
    }
    bell.expires_at(asio::steady_timer::time_point::max());
    boost::system::error_code rung;
    co_await bell.async_wait(asio::redirect_error(asio::use_awaitable, rung));
  }
  wake_ = [] {};
}

void RedfishService::stop() {
  stopping_ = true;
  wake_();
}

Task<void> RedfishService::carryOut(Job job) {
  co_await (job.work == Work::ManagerReset ? managerReset()
            : job.work == Work::AcCycle    ? acCycle()
                                           : update(job));
}

Task<void> RedfishService::update(Job job) {
  auto work = verifyAndStage(job);
  auto done = co_await std::move(work);
  writing_.clear();
  finish(job, done);
  const auto component =
      tasks_.contains(job.task_id) ? tasks_.at(job.task_id).component : std::string();
  if (!behaviour_.keeps_finished_tasks || job.fault == UpdateFault::TaskVanishes)
    std::erase_if(tasks_, [&](const auto& task) {
      return task.first == job.task_id && task.second.job.empty();
    });
  save();
  // Its own new version: the BMC restarts by itself.
  if (done && job.work != Work::Verify && component == options_.vendor_profile->bmc &&
      !state_.slots[component].staged_version.empty()) {
    const auto* row = options_.vendor_profile->find(component);
    if (row && row->becomes == Becomes::AtOnce) {
      activate(Becomes::AtOnce);
      co_await managerReset();
    }
  }
}

void RedfishService::finish(const Job& job, const Result<void>& done) {
  auto& task = tasks_[job.task_id];
  const bool bad_end = !done || job.fault == UpdateFault::TaskFails ||
                       job.fault == UpdateFault::ExceptionButInstalled;
  flash_state_ = bad_end ? "Error" : "Complete";
  if (!bad_end) {
    const bool waits =
        job.work != Work::Verify && !state_.slots[task.component].staged_version.empty();
    task.state = waits && !behaviour_.staged_state.empty() ? behaviour_.staged_state : "Completed";
    task.percent = 100;
    return;
  }
  task.state = "Exception";
  task.status = "Critical";
  task.messages.emplace_back("Update.1.0.VerificationFailed",
                             done ? "The image could not be written." : done.error().str());
}

Async<void> RedfishService::verifyAndStage(Job job) {
  tasks_[job.task_id].state = "Running";
  if (job.work == Work::RollBack) {
    co_await clock_.sleep(options_.pace.flash_step);
    const auto& name = tasks_[job.task_id].component = job.targets.front();
    state_.slots[name].staged_version = state_.slots[name].previous_version;
    const auto* row = options_.vendor_profile->find(name);
    if (row && row->becomes == Becomes::AtOnce && name != options_.vendor_profile->bmc)
      activate(Becomes::AtOnce);
    co_return Result<void>();
  }
  if (!job.url.empty()) {
    if (!options_.fetch) co_return fail(ErrorCode::Unavailable, "there is no way to " + job.url);
    CO_TRY(bytes, co_await options_.fetch(job.url));
    job.image = std::make_shared<const std::string>(std::move(bytes));
  }
  flash_state_ = "Verifying";
  auto header = co_await offload<Result<FirmwareHeader>>(
      workers_, [image = job.image] { return checkImage(*image); });
  const bool known_target = !job.targets.empty() && state_.slots.contains(job.targets.front());
  if (known_target && job.work != Work::Verify) ++state_.slots[job.targets.front()].uploads;
  if (!header) co_return std::unexpected(header.error());
  std::istringstream names(header->component);
  std::string component;
  std::getline(names, component, '+');
  std::vector<std::string> others;
  for (std::string other; std::getline(names, other, '+');) others.push_back(other);
  if (!state_.slots.contains(component))
    co_return fail(ErrorCode::InvalidInput,
                   fmt::format("this machine has no component '{}'", component));
  if (job.targets.empty() && job.work != Work::Verify) ++state_.slots[component].uploads;
  if (!job.targets.empty() && job.targets != std::vector{component})
    co_return fail(ErrorCode::InvalidInput, fmt::format("the image is for {}, the target is {}",
                                                        component, job.targets.front()));
  tasks_[job.task_id].component = component;
  tasks_[job.task_id].percent = 10;
  if (job.work == Work::Verify) {
    co_await clock_.sleep(options_.pace.flash_step);
    verified_ = job;
    co_return Result<void>();
  }
  tasks_[job.task_id].messages.emplace_back(
      "Update.1.0.TransferringToComponent",
      fmt::format("Writing {} {}.", component, header->version));
  if (job.fault == UpdateFault::TaskFails) co_return Result<void>();
  if (job.fault == UpdateFault::AdapterStarting || job.fault == UpdateFault::AdapterDead)
    adapter_fault_ = job.fault;
  const bool at_restart = job.fault == UpdateFault::StartsAtRestart && component.starts_with("NIC");
  if (at_restart) {
    tasks_[job.task_id].state = "Starting";
    for (const auto before = state_.starts; state_.starts == before && !stopping_;) {
      co_await clock_.sleep(options_.pace.flash_step);
    }
    tasks_[job.task_id].state = "Running";
  }
  CO_TRY_OK(co_await write(job, component));

  auto& slot = state_.slots[component];
  if (header->version == slot.version || header->version == slot.staged_version)
    violate(
        fmt::format("{} {} was written although it was there already", component, header->version));
  ++slot.flashes;
  if (job.fault == UpdateFault::CompletedNotInstalled) {
    note(fmt::format("{} {} was written to nowhere", component, header->version));
    co_return Result<void>();
  }
  slot.staged_version = header->version;
  CO_TRY_OK(co_await writeOthers(job, others, header->version));
  if (!job.keeps_configuration) loses_configuration_.insert(component);
  if (job.fault == UpdateFault::HostSilent) loses_next_version_ = component;
  if (job.fault == UpdateFault::LeavesItWorse) breaks_.insert(component);
  const auto* row = options_.vendor_profile->find(component);
  if (job.fault == UpdateFault::ExceptionButInstalled)
    slot.previous_version = std::exchange(slot.version, std::exchange(slot.staged_version, ""));
  const bool at_once =
      row && row->becomes == Becomes::AtOnce && component != options_.vendor_profile->bmc;
  if (at_once) activate(Becomes::AtOnce);
  if (at_restart) activate(row->becomes);
  const auto* what = !row || row->becomes == Becomes::PowerCycle ? "power cycle"
                     : row->becomes == Becomes::BmcReset         ? "Manager.Reset"
                                                                 : "AC cycle";
  if (!at_once)
    tasks_[job.task_id].messages.emplace_back(
        "Update.1.0.AwaitToActivate",
        fmt::format("{} {} is staged and becomes active at the next {}.", component,
                    header->version, what));
  co_return Result<void>();
}

Async<void> RedfishService::write(Job job, std::string component) {
  writing_ = component;
  flash_state_ = "Writing";
  auto flash =
      options_.staging_folder / fmt::format("{}.{}.flash", options_.identity.node, component);
  for (int step = 0; step < options_.pace.flash_steps; ++step) {
    if (!options_.staging_folder.empty()) {
      CO_TRY_OK(co_await offload<Result<void>>(
          workers_, [image = job.image, flash, step, steps = options_.pace.flash_steps] {
            return writeStep(*image, flash, step, steps);
          }));
    }
    tasks_[job.task_id].percent = 10 + 80 * (step + 1) / options_.pace.flash_steps;
    if (job.fault == UpdateFault::BmcLost && step == options_.pace.flash_steps / 2) {
      co_await away(options_.pace.lost_duration);
    }
    if (job.fault == UpdateFault::TaskVanishes && step == options_.pace.flash_steps / 2)
      tasks_[job.task_id].young_reads = -1;  // hidden from now on
    co_await clock_.sleep(options_.pace.flash_step);
  }
  co_return Result<void>();
}

Task<void> RedfishService::away(std::chrono::milliseconds duration) {
  away_ = true;
  options_.went_away();
  guard_.dropSessions();
  co_await clock_.sleep(duration);
  away_ = false;
  options_.came_back();
}

Task<void> RedfishService::managerReset() {
  co_await clock_.sleep(options_.pace.reset_delay);
  stuck_ = false;
  verified_.reset();
  ready_.clear();
  activate(Becomes::BmcReset);
  if (!behaviour_.keeps_finished_tasks) tasks_.clear();
  co_await away(options_.pace.reset_duration);
}

/// Standby power goes: whatever runs starts anew, this BMC too.
Task<void> RedfishService::acCycle() {
  co_await clock_.sleep(options_.pace.reset_delay);
  noteCut("standby power was cut");
  (void)co_await machine_.stop();
  ++state_.ac_cycles;
  for (const auto how : {Becomes::BmcReset, Becomes::PowerCycle, Becomes::AcCycle}) activate(how);
  tasks_.clear();
  stuck_ = false;
  save();
  co_await away(options_.pace.reset_duration);
}

void RedfishService::activate(Becomes how) {
  for (auto& [name, slot] : state_.slots) {
    const auto* row = options_.vendor_profile->find(name);
    if (!row || row->becomes != how || slot.staged_version.empty()) continue;
    slot.previous_version = std::exchange(slot.version, std::exchange(slot.staged_version, ""));
    slot.broken = breaks_.erase(name) > 0;
    if (loses_configuration_.erase(name) > 0) loseConfiguration(name);
    note(fmt::format("{} {} {}", name, slot.version, slot.broken ? "does not come up" : "runs"));
    if (row->copies) copies_.push_back({name, clock_.steady() + options_.pace.copy_duration});
    if (loses_next_version_ == name) {
      loses_next_version_.clear();
      baseboard_silent_until_ = clock_.steady() + options_.pace.lost_duration;
    }
  }
  save();
}

bool RedfishService::copying(const std::string& component) const {
  return std::any_of(copies_.begin(), copies_.end(), [&](const Copy& copy) {
    return copy.component == component && clock_.steady() < copy.until;
  });
}

void RedfishService::noteCut(const std::string& what) {
  if (!writing_.empty()) violate(fmt::format("{} while {} was written", what, writing_));
  for (const auto& copy : copies_)
    if (clock_.steady() < copy.until)
      violate(fmt::format("{} while the second slot of {} was filled", what, copy.component));
}

void RedfishService::violate(const std::string& what) {
  if (state_.violations.size() < BmcState::kMaxViolations) state_.violations.push_back(what);
  note(what);
}

void RedfishService::note(const std::string& words) {
  state_.log.push_back(fmt::format("{} {}", muster::toString(clock_.now()), words));
  if (state_.log.size() > BmcState::kMaxLog) state_.log.erase(state_.log.begin());
}

}  // namespace muster::lab::vbmc
