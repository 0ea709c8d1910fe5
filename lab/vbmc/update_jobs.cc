// Firmware updates and manager resets: the slow work of the virtual BMC, one job at a time.
#include "lab/vbmc/firmware_file.h"
#include "lab/vbmc/messages.h"
#include "lab/vbmc/multipart.h"
#include "lab/vbmc/redfish_service.h"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>

#include <fstream>

namespace muster::lab::vbmc {

namespace {

using nlohmann::json;

/// Component names at the end of UpdateParameters.Targets; empty: whatever the image is for.
Result<std::vector<std::string>> targetsOf(std::string_view parameters) {
  auto body = json::parse(parameters, nullptr, false);
  if (!body.is_object()) return fail(ErrorCode::InvalidInput, "UpdateParameters is not a JSON object");
  std::vector<std::string> targets;
  auto listed = body.find("Targets");
  if (listed == body.end()) return targets;
  if (!listed->is_array()) return fail(ErrorCode::InvalidInput, "Targets is not a list");
  for (auto& target : *listed) {
    auto path = target.is_string() ? target.get<std::string>() : std::string();
    if (!path.starts_with(kInventory + "/"))
      return fail(ErrorCode::InvalidInput, fmt::format("'{}' is not a member of FirmwareInventory", path));
    targets.push_back(path.substr(kInventory.size() + 1));
  }
  return targets;
}

Result<FirmwareHeader> checkImage(const std::string& image) {
  TRY_OK(verifyFirmware(image));
  return readFirmwareHeader(image);
}

/// Copies one step's part of the image into the slot's flash file.
Result<void> writeStep(const std::string& bytes, const std::filesystem::path& flash, int step, int steps) {
  auto begin = bytes.size() * step / steps, end = bytes.size() * (step + 1) / steps;
  std::ofstream out(flash, std::ios::binary | (step == 0 ? std::ios::trunc : std::ios::app));
  out.write(bytes.data() + begin, static_cast<std::streamsize>(end - begin));
  out.flush();
  if (!out) return fail(ErrorCode::Internal, fmt::format("cannot write {}", flash.string()));
  return {};
}

}  // namespace

void RedfishService::save() {
  state_.failed_logins = guard_.failedLogins();
  if (options_.state_file.empty()) return;
  if (auto saved = state_.save(options_.state_file); !saved) logWarning("vbmc", "{}: {}", options_.identity.node, saved.error().str());
}

io::ServerResponse RedfishService::acceptUpload(const io::ServerRequest& request) {
  if (job_) {
    auto busy = redfishError(503, "Base.1.8.ServiceTemporarilyUnavailable", "Another firmware update or a reset is running.",
                             "Wait until it has ended.");
    busy.headers["Retry-After"] = "5";
    return busy;
  }
  auto type = request.headers.find("Content-Type");
  auto parts = splitMultipart(type == request.headers.end() ? "" : type->second, request.body);
  if (!parts) return redfishError(400, "Base.1.8.MalformedJSON", parts.error().str());
  auto file = parts->find("UpdateFile");
  if (file == parts->end()) return redfishError(400, "Base.1.8.PropertyMissing", "The part UpdateFile is missing.");
  if (file->second.size() > options_.max_image_bytes)
    return redfishError(413, "Base.1.8.PayloadTooLarge", fmt::format("The image has more than {} bytes.", options_.max_image_bytes));
  auto parameters = parts->find("UpdateParameters");
  auto targets = targetsOf(parameters == parts->end() ? "{}" : parameters->second);
  if (!targets) return redfishError(400, "Base.1.8.PropertyValueError", targets.error().str());

  UpdateTask task;
  task.id = fmt::format("update-{:04}", ++state_.tasks);
  if (tasks_.size() >= options_.max_tasks) tasks_.erase(tasks_.begin());
  tasks_[task.id] = task;
  save();
  job_ = Job{false, task.id, std::make_shared<const std::string>(std::move(file->second)), std::move(*targets)};
  wake_();
  auto accepted = io::ServerResponse::json(202, taskResource(task).dump());
  accepted.headers["Location"] = kTasks + "/" + task.id;
  return accepted;
}

Task<void> RedfishService::run() {
  auto executor = co_await asio::this_coro::executor;
  asio::steady_timer bell(executor);
  wake_ = [&bell] { bell.cancel(); };
  while (!stopping_) {
    if (job_) {
      auto work = carryOut(*job_);
      co_await std::move(work);
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
  auto work = job.manager_reset ? managerReset() : update(job);
  co_await std::move(work);
}

Task<void> RedfishService::update(Job job) {
  auto work = verifyAndStage(job);
  auto staged = co_await std::move(work);
  auto& task = tasks_[job.task_id];
  if (staged) {
    task.state = "Completed";
    task.percent = 100;
  } else {
    task.state = "Exception";
    task.status = "Critical";
    task.messages.emplace_back("Update.1.0.VerificationFailed", staged.error().str());
  }
  save();
}

Async<void> RedfishService::verifyAndStage(Job job) {
  tasks_[job.task_id].state = "Running";
  auto check = offload<Result<FirmwareHeader>>(workers_, [image = job.image] { return checkImage(*image); });
  auto header = co_await std::move(check);
  if (!job.targets.empty() && state_.slots.contains(job.targets.front())) ++state_.slots[job.targets.front()].uploads;
  if (!header) co_return tl::unexpected(header.error());
  auto component = header->component, version = header->version;
  if (!state_.slots.contains(component))
    co_return fail(ErrorCode::InvalidInput, fmt::format("this machine has no component '{}'", component));
  if (job.targets.empty()) ++state_.slots[component].uploads;
  if (!job.targets.empty() && job.targets != std::vector{component})
    co_return fail(ErrorCode::InvalidInput, fmt::format("the image is for {}, the target is {}", component, job.targets.front()));
  tasks_[job.task_id].component = component;
  tasks_[job.task_id].percent = 10;
  tasks_[job.task_id].messages.emplace_back("Update.1.0.TransferringToComponent", fmt::format("Writing {} {}.", component, version));

  auto flash = options_.staging_folder / fmt::format("{}.{}.flash", options_.identity.node, component);
  for (int step = 0; step < options_.pace.flash_steps; ++step) {
    if (!options_.staging_folder.empty()) {
      auto work = offload<Result<void>>(
          workers_, [image = job.image, flash, step, steps = options_.pace.flash_steps] { return writeStep(*image, flash, step, steps); });
      CO_TRY_OK(co_await std::move(work));
    }
    tasks_[job.task_id].percent = 10 + 80 * (step + 1) / options_.pace.flash_steps;
    auto pause = clock_.sleep(options_.pace.flash_step);
    co_await std::move(pause);
  }
  auto& slot = state_.slots[component];
  slot.staged_version = version;
  ++slot.flashes;
  tasks_[job.task_id].messages.emplace_back("Update.1.0.AwaitToActivate",
                                            fmt::format("{} {} is staged and becomes active at the next {}.", component, version,
                                                        component == "BMC" ? "Manager.Reset" : "power cycle"));
  co_return Result<void>();
}

Task<void> RedfishService::managerReset() {
  auto leave = clock_.sleep(options_.pace.reset_delay);
  co_await std::move(leave);
  away_ = true;
  options_.went_away();
  guard_.dropSessions();
  activate("BMC");
  auto restart = clock_.sleep(options_.pace.reset_duration);
  co_await std::move(restart);
  away_ = false;
  options_.came_back();
}

void RedfishService::activate(const std::string& component) {
  auto& slot = state_.slots[component];
  if (slot.staged_version.empty()) return;
  slot.version = std::exchange(slot.staged_version, "");
  save();
}

}  // namespace muster::lab::vbmc
