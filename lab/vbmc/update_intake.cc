// SPDX-License-Identifier: Apache-2.0
#include "lab/vbmc/update_intake.h"

#include "base/json_input.h"
#include "base/json_output.h"
#include "lab/vbmc/firmware_file.h"
#include "lab/vbmc/messages.h"
#include "lab/vbmc/multipart.h"
#include "lab/vbmc/resource_names.h"
#include "lab/vbmc/resources.h"

#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>

#include <algorithm>

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

Result<std::map<std::string, std::string_view>> partsOf(const io::ServerRequest& request) {
  const auto type = request.headers.find("Content-Type");
  return splitMultipart(type == request.headers.end() ? "" : type->second, request.body);
}

}  // namespace

std::optional<io::ServerResponse> UpdateIntake::post(const io::ServerRequest& request,
                                                     const std::string& path) {
  const auto& behaviour = bmc_.behaviour;
  const auto takes = bmc_.options.vendor_profile->takes;
  if (path == kUpload && behaviour.flash_state.empty() && takes == Takes::Multipart)
    return acceptUpload(request);
  if (path == kInventory && takes == Takes::Push) return acceptReady(request);
  if (path == kSimpleUpdate && takes == Takes::Fetch) return acceptUrl(request);
  if (path == kIloUpload && !behaviour.flash_state.empty()) return acceptForm(request);
  if (path == kRoot + "/UpdateService/Actions/UpdateService.StartUpdate" && behaviour.two_phase)
    return startVerified();
  if (path == kSimpleUpdate && behaviour.goes_back == GoesBack::ByPreviousMember)
    return updateFromPrevious(request);
  if (path == kRoot + "/UpdateService/Actions/Oem/NvidiaUpdateService.CommitImage" &&
      !behaviour.commit_action.empty())
    return commitImage(request);
  return std::nullopt;
}

UpdateFault UpdateIntake::drawFault() {
  const auto ordered = bmc_.faults.draw();
  return ordered == UpdateFault::None && bmc_.options.draw_fault ? bmc_.options.draw_fault()
                                                                 : ordered;
}

/// What refuses an upload as a whole; a dropped connection does not come back from here.
std::optional<io::ServerResponse> UpdateIntake::refusalBy(UpdateFault fault) {
  if (fault == UpdateFault::CutUpload)
    throw boost::system::system_error(asio::error::operation_aborted);
  if (fault == UpdateFault::NoLicence)
    return redfishError(
        403, "SMC.1.0.OemLicenseNotPassed",
        "Not licensed to perform this request. The following licenses OOB, DCMS were needed.");
  bmc_.stuck = bmc_.stuck || fault == UpdateFault::StuckMode;
  if (!bmc_.stuck) return std::nullopt;
  if (bmc_.behaviour.stuck_message.empty())
    return redfishError(503, "Base.1.8.ServiceTemporarilyUnavailable",
                        "Another firmware update is running.", "Wait until it has ended.");
  return redfishError(400, "SMC.1.0." + std::string(bmc_.behaviour.stuck_message),
                      "The BMC is in update mode already.", "Reset the BMC.");
}

/// Names that are not the vendor's are refused, as is an upload that leaves one out.
std::optional<io::ServerResponse> UpdateIntake::takeOemParameters(const nlohmann::json& parameters,
                                                                  Job& job) const {
  for (const auto& rule : bmc_.behaviour.oem_rules) {
    if (job.targets.empty() || rule.component != job.targets.front()) continue;
    const auto given = parameters.value("Oem", nlohmann::json::object());
    const auto said = given.value(
        nlohmann::json::json_pointer("/Supermicro/" + std::string(rule.kind)), nlohmann::json());
    if (!said.is_object())
      return redfishError(
          400, "SMC.1.0.OemParameterMissing",
          fmt::format("Oem/Supermicro/{} says what is kept, and is missing.", rule.kind));
    for (const auto& [name, value] : said.items())
      if (std::ranges::find(rule.names, name) == rule.names.end() || !value.is_boolean())
        return redfishError(400, "Base.1.8.PropertyUnknown",
                            fmt::format("'{}' is not known.", name));
    for (const auto name : rule.names)
      if (name.starts_with("Preserve"))
        job.keeps_configuration = job.keeps_configuration && said.value(std::string(name), false);
    if (parameters.value("Targets", nlohmann::json::array())
            .front()
            .get<std::string>()
            .starts_with(kInventory))
      return redfishError(
          400, "Base.1.8.PropertyValueNotInList",
          fmt::format("The target of {} is what its inventory member is related to.",
                      job.targets.front()));
  }
  return std::nullopt;
}

io::ServerResponse UpdateIntake::acceptUpload(const io::ServerRequest& request) {
  if (bmc_.job) return bmc_.refuseBusy();
  Job job;
  job.fault = drawFault();
  if (auto refusal = refusalBy(job.fault)) return std::move(*refusal);
  auto parts = partsOf(request);
  if (!parts) return redfishError(400, "Base.1.8.MalformedJSON", parts.error().str());
  auto file = parts->find("UpdateFile");
  if (file == parts->end())
    return redfishError(400, "Base.1.8.PropertyMissing", "The part UpdateFile is missing.");
  if (file->second.size() > bmc_.options.max_image_bytes)
    return redfishError(
        413, "Base.1.8.PayloadTooLarge",
        fmt::format("The image has more than {} bytes.", bmc_.options.max_image_bytes));
  auto parameters = parts->find("UpdateParameters");
  const auto words = parameters == parts->end() ? std::string_view("{}") : parameters->second;
  auto ids = targetsOf(words, bmc_.behaviour);
  if (!ids) return redfishError(400, "Base.1.8.PropertyValueError", ids.error().str());
  for (const auto& uri : *ids) job.targets.push_back(bmc_.componentAt(uri));
  if (auto refusal = takeOemParameters(jsonOrNone(words, kRequestJson), job))
    return std::move(*refusal);
  job.image = std::make_shared<const std::string>(std::move(file->second));
  const bool on_request =
      jsonOrNone(words, kRequestJson).value("@Redfish.OperationApplyTime", "") ==
      "OnStartUpdateRequest";
  job.work = bmc_.behaviour.two_phase && on_request ? Work::Verify : Work::Update;
  const bool answer_is_lost = job.fault == UpdateFault::LostAnswer;
  auto accepted = begin(std::move(job));
  if (answer_is_lost) throw boost::system::system_error(asio::error::operation_aborted);
  return accepted;
}

/// iDRAC before multipart: the form's part "file", sent to the inventory with its ETag, lies there
/// until SimpleUpdate names it.
io::ServerResponse UpdateIntake::acceptReady(const io::ServerRequest& request) {
  if (bmc_.job) return bmc_.refuseBusy();
  const auto given = request.headers.find("If-Match");
  if (given == request.headers.end() || given->second != bmc_.etagOf(kInventory))
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
  bmc_.ready[id] = std::move(job);
  if (answer_is_lost) throw boost::system::system_error(asio::error::operation_aborted);
  auto accepted = io::ServerResponse::json(
      201, VendorResources(bmc_).firmwareMember(kInventory + "/" + id, id, true)->dump());
  accepted.headers["Location"] = kInventory + "/" + id;
  return accepted;
}

/// Answers the piece; with the last one `file` becomes the whole and nothing is answered. A piece
/// that is not full is the last.
std::optional<io::ServerResponse> UpdateIntake::collectPiece(std::string_view parameters,
                                                             std::string& file, bool is_signed) {
  const auto words = jsonOrNone(parameters, kRequestJson);
  const auto section = words.is_object() ? words.value("Section", 0) : 0;
  const auto tag = words.is_object() ? words.value("ETag", "") : std::string();
  const bool full = bmc_.behaviour.piece_bytes > 0 && file.size() == bmc_.behaviour.piece_bytes;
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
io::ServerResponse UpdateIntake::acceptForm(const io::ServerRequest& request) {
  auto parts = partsOf(request);
  if (!parts || !parts->contains("sessionKey") || !bmc_.guard.find(parts->at("sessionKey")))
    return redfishError(401, "Base.1.8.NoValidSession", "The form has no valid sessionKey.");
  if (bmc_.job) return bmc_.refuseBusy();
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

/// SimpleUpdate: it is told where the image lies, and fetches it.
io::ServerResponse UpdateIntake::acceptUrl(const io::ServerRequest& request) {
  if (bmc_.job) return bmc_.refuseBusy();
  const auto body = jsonOrNone(request.body, kRequestJson);
  Job job;
  job.url = body.is_object() ? body.value("ImageURI", "") : std::string();
  if (!job.url.starts_with("http://") && !job.url.starts_with("https://"))
    return redfishError(400, "Base.1.8.ActionParameterValueFormatError", "ImageURI is no address.");
  for (const auto& uri : body.value("Targets", std::vector<std::string>()))
    job.targets.push_back(bmc_.componentAt(uri));
  job.fault = drawFault();
  if (auto refusal = refusalBy(job.fault)) return std::move(*refusal);
  const bool answer_is_lost = job.fault == UpdateFault::LostAnswer;
  auto accepted = begin(std::move(job));
  if (answer_is_lost) throw boost::system::system_error(asio::error::operation_aborted);
  return accepted;
}

io::ServerResponse UpdateIntake::begin(Job job) {
  UpdateTask task;
  task.id = fmt::format("update-{:04}", ++bmc_.state.tasks);
  if (bmc_.behaviour.new_task_404s > 0) {
    task.job = fmt::format("JID_{:012}", bmc_.state.tasks);
    task.young_reads = bmc_.behaviour.new_task_404s - 1;
    task.messages.emplace_back("Update.1.0.OperationTransitionedToJob", kJobs + "/" + task.job);
  }
  if (bmc_.tasks.size() >= bmc_.options.max_tasks) bmc_.tasks.erase(bmc_.tasks.begin());
  bmc_.tasks[task.id] = task;
  bmc_.flash_state = "Uploading";
  bmc_.save();
  job.task_id = task.id;
  bmc_.begin(std::move(job));
  auto shown = taskResource(task);
  renameOutside(shown, bmc_.behaviour.names);
  auto accepted = io::ServerResponse::json(202, jsonText(shown));
  accepted.headers["Location"] = kTasks + "/" + task.id;
  return accepted;
}

io::ServerResponse UpdateIntake::startVerified() {
  if (bmc_.job) return bmc_.refuseBusy();
  if (!bmc_.verified)
    return redfishError(400, "Base.1.8.ActionNotSupported",
                        "No verified image waits for its update.");
  auto job = *std::exchange(bmc_.verified, std::nullopt);
  job.work = Work::Update;
  return begin(std::move(job));
}

/// iDRAC: SimpleUpdate takes a member of its own inventory: an image that ran before, or a file
/// that lies ready.
io::ServerResponse UpdateIntake::updateFromPrevious(const io::ServerRequest& request) {
  if (bmc_.job) return bmc_.refuseBusy();
  const auto body = jsonOrNone(request.body, kRequestJson);
  const auto uri = body.is_object() ? body.value("ImageURI", "") : std::string();
  const auto id =
      uri.starts_with(kInventory + "/") ? uri.substr(kInventory.size() + 1) : std::string();
  if (const auto ready = bmc_.ready.find(id); ready != bmc_.ready.end())
    return begin(ready->second);
  if (!bmc_.isPrevious(id))
    return redfishError(400, "Base.1.8.ActionParameterValueNotInList",
                        fmt::format("'{}' is no image that ran before.", uri));
  Job job;
  job.work = Work::RollBack;
  job.targets.push_back(bmc_.slotOf(id));
  return begin(std::move(job));
}

/// Fills the second slot of what runs.
io::ServerResponse UpdateIntake::commitImage(const io::ServerRequest& request) {
  auto ids = targetsOf(request.body, bmc_.behaviour);
  if (!ids || ids->empty())
    return redfishError(400, "Base.1.8.PropertyValueError", "Targets names what to commit.");
  for (const auto& uri : *ids) {
    auto slot = bmc_.state.slots.find(bmc_.componentAt(uri));
    if (slot == bmc_.state.slots.end())
      return redfishError(400, "Base.1.8.PropertyValueError", fmt::format("There is no {}.", uri));
    slot->second.previous_version = slot->second.version;
  }
  bmc_.save();
  return io::ServerResponse::text(204, "");
}

io::ServerResponse UpdateIntake::deleteJob(const std::string& path) {
  for (auto task = bmc_.tasks.begin(); task != bmc_.tasks.end(); ++task) {
    if (task->second.job.empty() || !path.ends_with("/" + task->second.job)) continue;
    if (task->second.state == bmc_.behaviour.staged_state)
      bmc_.state.slots[task->second.component].staged_version.clear();
    bmc_.tasks.erase(task);
    bmc_.save();
    return io::ServerResponse::text(204, "");
  }
  return redfishError(404, "Base.1.8.ResourceMissingAtURI",
                      fmt::format("There is nothing at {}.", path));
}

}  // namespace muster::lab::vbmc
