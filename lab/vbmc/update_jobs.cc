// SPDX-License-Identifier: Apache-2.0
#include "lab/vbmc/update_jobs.h"

#include "lab/vbmc/firmware_file.h"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace muster::lab::vbmc {

namespace {

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

}  // namespace

Task<void> UpdateJobs::run() {
  auto executor = co_await asio::this_coro::executor;
  asio::steady_timer bell(executor);
  bmc_.wake = [&bell] { bell.cancel(); };
  while (!bmc_.stopping) {
    if (bmc_.job) {
      co_await carryOut(*bmc_.job);
      bmc_.job.reset();
      continue;
    }
    bell.expires_at(asio::steady_timer::time_point::max());
    boost::system::error_code rung;
    co_await bell.async_wait(asio::redirect_error(asio::use_awaitable, rung));
  }
  bmc_.wake = [] {};
}

Task<void> UpdateJobs::carryOut(Job job) {
  co_await (job.work == Work::ManagerReset ? managerReset()
            : job.work == Work::AcCycle    ? acCycle()
                                           : update(job));
}

Task<void> UpdateJobs::update(Job job) {
  auto done = co_await verifyAndStage(job);
  bmc_.writing.clear();
  finish(job, done);
  const auto component =
      bmc_.tasks.contains(job.task_id) ? bmc_.tasks.at(job.task_id).component : std::string();
  if (!bmc_.behaviour.keeps_finished_tasks || job.fault == UpdateFault::TaskVanishes)
    std::erase_if(bmc_.tasks, [&](const auto& task) {
      return task.first == job.task_id && task.second.job.empty();
    });
  bmc_.save();
  // Its own new version: the BMC restarts by itself.
  if (done && job.work != Work::Verify && component == bmc_.options.vendor_profile->bmc &&
      !bmc_.state.slots[component].staged_version.empty()) {
    const auto* row = bmc_.options.vendor_profile->find(component);
    if (row && row->becomes == Becomes::AtOnce) {
      activate(Becomes::AtOnce);
      co_await managerReset();
    }
  }
}

void UpdateJobs::finish(const Job& job, const Result<void>& done) {
  auto& task = bmc_.tasks[job.task_id];
  const bool bad_end = !done || job.fault == UpdateFault::TaskFails ||
                       job.fault == UpdateFault::ExceptionButInstalled;
  bmc_.flash_state = bad_end ? "Error" : "Complete";
  if (!bad_end) {
    const bool waits =
        job.work != Work::Verify && !bmc_.state.slots[task.component].staged_version.empty();
    task.state =
        waits && !bmc_.behaviour.staged_state.empty() ? bmc_.behaviour.staged_state : "Completed";
    task.percent = 100;
    return;
  }
  task.state = "Exception";
  task.status = "Critical";
  task.messages.emplace_back("Update.1.0.VerificationFailed",
                             done ? "The image could not be written." : done.error().str());
}

Async<void> UpdateJobs::verifyAndStage(Job job) {
  bmc_.tasks[job.task_id].state = "Running";
  if (job.work == Work::RollBack) {
    co_return co_await rollBack(std::move(job));
  }
  if (!job.url.empty()) {
    if (!bmc_.options.fetch)
      co_return fail(ErrorCode::Unavailable, "there is no way to " + job.url);
    CO_TRY(bytes, co_await bmc_.options.fetch(job.url));
    job.image = std::make_shared<const std::string>(std::move(bytes));
  }
  bmc_.flash_state = "Verifying";
  auto header = co_await offload<Result<FirmwareHeader>>(
      bmc_.workers, [image = job.image] { return checkImage(*image); });
  const bool known_target = !job.targets.empty() && bmc_.state.slots.contains(job.targets.front());
  if (known_target && job.work != Work::Verify) ++bmc_.state.slots[job.targets.front()].uploads;
  if (!header) co_return std::unexpected(header.error());
  std::istringstream names(header->component);
  std::string component;
  std::getline(names, component, '+');
  std::vector<std::string> others;
  for (std::string other; std::getline(names, other, '+');) others.push_back(other);
  if (!bmc_.state.slots.contains(component))
    co_return fail(ErrorCode::InvalidInput,
                   fmt::format("this machine has no component '{}'", component));
  if (job.targets.empty() && job.work != Work::Verify) ++bmc_.state.slots[component].uploads;
  if (!job.targets.empty() && job.targets != std::vector{component})
    co_return fail(ErrorCode::InvalidInput, fmt::format("the image is for {}, the target is {}",
                                                        component, job.targets.front()));
  bmc_.tasks[job.task_id].component = component;
  bmc_.tasks[job.task_id].percent = 10;
  if (job.work == Work::Verify) {
    co_await bmc_.clock.sleep(bmc_.options.timings.flash_step);
    bmc_.verified = job;
    co_return Result<void>();
  }
  bmc_.tasks[job.task_id].messages.emplace_back(
      "Update.1.0.TransferringToComponent",
      fmt::format("Writing {} {}.", component, header->version));
  if (job.fault == UpdateFault::TaskFails) co_return Result<void>();
  co_return co_await stage(std::move(job), component, others, header->version);
}

/// The image of before waits for the activation.
Async<void> UpdateJobs::rollBack(Job job) {
  co_await bmc_.clock.sleep(bmc_.options.timings.flash_step);
  const auto& name = bmc_.tasks[job.task_id].component = job.targets.front();
  bmc_.state.slots[name].staged_version = bmc_.state.slots[name].previous_version;
  const auto* row = bmc_.options.vendor_profile->find(name);
  if (row && row->becomes == Becomes::AtOnce && name != bmc_.options.vendor_profile->bmc)
    activate(Becomes::AtOnce);
  co_return Result<void>();
}

/// Writes what was verified, and stages it.
Async<void> UpdateJobs::stage(Job job, std::string component, std::vector<std::string> others,
                              std::string version) {
  if (job.fault == UpdateFault::AdapterStarting || job.fault == UpdateFault::AdapterDead)
    bmc_.adapter_fault = job.fault;
  const bool at_restart = job.fault == UpdateFault::StartsAtRestart && component.starts_with("NIC");
  if (at_restart) {
    bmc_.tasks[job.task_id].state = "Starting";
    for (const auto before = bmc_.state.starts; bmc_.state.starts == before && !bmc_.stopping;) {
      co_await bmc_.clock.sleep(bmc_.options.timings.flash_step);
    }
    bmc_.tasks[job.task_id].state = "Running";
  }
  CO_TRY_OK(co_await write(job, component));

  auto& slot = bmc_.state.slots[component];
  if (version == slot.version || version == slot.staged_version)
    bmc_.violate(
        fmt::format("{} {} was written although it was there already", component, version));
  ++slot.flashes;
  if (job.fault == UpdateFault::CompletedNotInstalled) {
    bmc_.note(fmt::format("{} {} was written to nowhere", component, version));
    co_return Result<void>();
  }
  slot.staged_version = version;
  CO_TRY_OK(co_await writeOthers(job, others, version));
  if (!job.keeps_configuration) loses_configuration_.insert(component);
  if (job.fault == UpdateFault::HostSilent) loses_next_version_ = component;
  if (job.fault == UpdateFault::LeavesItWorse) breaks_.insert(component);
  const auto* row = bmc_.options.vendor_profile->find(component);
  if (job.fault == UpdateFault::ExceptionButInstalled)
    slot.previous_version = std::exchange(slot.version, std::exchange(slot.staged_version, ""));
  const bool at_once =
      row && row->becomes == Becomes::AtOnce && component != bmc_.options.vendor_profile->bmc;
  if (at_once) activate(Becomes::AtOnce);
  if (at_restart) activate(row->becomes);
  const auto* what = !row || row->becomes == Becomes::PowerCycle ? "power cycle"
                     : row->becomes == Becomes::BmcReset         ? "Manager.Reset"
                                                                 : "AC cycle";
  if (!at_once)
    bmc_.tasks[job.task_id].messages.emplace_back(
        "Update.1.0.AwaitToActivate",
        fmt::format("{} {} is staged and becomes active at the next {}.", component, version,
                    what));
  co_return Result<void>();
}

Async<void> UpdateJobs::write(Job job, std::string component) {
  bmc_.writing = component;
  bmc_.flash_state = "Writing";
  auto flash = bmc_.options.staging_folder /
               fmt::format("{}.{}.flash", bmc_.options.identity.node, component);
  for (int step = 0; step < bmc_.options.timings.flash_steps; ++step) {
    if (!bmc_.options.staging_folder.empty()) {
      CO_TRY_OK(co_await offload<Result<void>>(
          bmc_.workers, [image = job.image, flash, step, steps = bmc_.options.timings.flash_steps] {
            return writeStep(*image, flash, step, steps);
          }));
    }
    bmc_.tasks[job.task_id].percent = 10 + 80 * (step + 1) / bmc_.options.timings.flash_steps;
    if (job.fault == UpdateFault::BmcLost && step == bmc_.options.timings.flash_steps / 2) {
      co_await away(bmc_.options.timings.lost_duration);
    }
    if (job.fault == UpdateFault::TaskVanishes && step == bmc_.options.timings.flash_steps / 2)
      bmc_.tasks[job.task_id].young_reads = -1;  // hidden from now on
    co_await bmc_.clock.sleep(bmc_.options.timings.flash_step);
  }
  co_return Result<void>();
}

/// A package is written into everything that it is for, whoever asked for which part of it.
Async<void> UpdateJobs::writeOthers(Job job, std::vector<std::string> components,
                                    std::string version) {
  for (const auto& component : components) {
    if (!bmc_.state.slots.contains(component))
      co_return fail(ErrorCode::InvalidInput,
                     fmt::format("this machine has no component '{}'", component));
    CO_TRY_OK(co_await write(job, component));
    auto& slot = bmc_.state.slots[component];
    if (version == slot.version || version == slot.staged_version)
      bmc_.violate(
          fmt::format("{} {} was written although it was there already", component, version));
    ++slot.flashes;
    slot.staged_version = version;
  }
  co_return Result<void>();
}

Task<void> UpdateJobs::away(std::chrono::milliseconds duration) {
  bmc_.away = true;
  bmc_.options.went_away();
  bmc_.guard.dropSessions();
  co_await bmc_.clock.sleep(duration);
  bmc_.away = false;
  bmc_.options.came_back();
}

Task<void> UpdateJobs::managerReset() {
  co_await bmc_.clock.sleep(bmc_.options.timings.reset_delay);
  bmc_.stuck = false;
  bmc_.verified.reset();
  bmc_.ready.clear();
  activate(Becomes::BmcReset);
  if (!bmc_.behaviour.keeps_finished_tasks) bmc_.tasks.clear();
  co_await away(bmc_.options.timings.reset_duration);
}

/// Standby power goes: whatever runs starts anew, this BMC too.
Task<void> UpdateJobs::acCycle() {
  co_await bmc_.clock.sleep(bmc_.options.timings.reset_delay);
  noteCut("standby power was cut");
  (void)co_await bmc_.machine.stop();
  ++bmc_.state.ac_cycles;
  for (const auto how : {Becomes::BmcReset, Becomes::PowerCycle, Becomes::AcCycle}) activate(how);
  bmc_.tasks.clear();
  bmc_.stuck = false;
  bmc_.save();
  co_await away(bmc_.options.timings.reset_duration);
}

void UpdateJobs::activate(Becomes how) {
  for (auto& [name, slot] : bmc_.state.slots) {
    const auto* row = bmc_.options.vendor_profile->find(name);
    if (!row || row->becomes != how || slot.staged_version.empty()) continue;
    slot.previous_version = std::exchange(slot.version, std::exchange(slot.staged_version, ""));
    slot.broken = breaks_.erase(name) > 0;
    if (loses_configuration_.erase(name) > 0) loseConfiguration(name);
    bmc_.note(
        fmt::format("{} {} {}", name, slot.version, slot.broken ? "does not come up" : "runs"));
    if (row->copies)
      bmc_.copies.push_back({name, bmc_.clock.steady() + bmc_.options.timings.copy_duration});
    if (loses_next_version_ == name) {
      loses_next_version_.clear();
      bmc_.baseboard_silent_until = bmc_.clock.steady() + bmc_.options.timings.lost_duration;
    }
  }
  bmc_.save();
}

/// It starts with what it was delivered with.
void UpdateJobs::loseConfiguration(const std::string& component) {
  bmc_.violate(fmt::format("{} did not keep its configuration", component));
  if (component == bmc_.options.vendor_profile->bios)
    bmc_.state.bios = BmcState::fresh(*bmc_.options.vendor_profile).bios;
}

void UpdateJobs::noteCut(const std::string& what) {
  if (!bmc_.writing.empty())
    bmc_.violate(fmt::format("{} while {} was written", what, bmc_.writing));
  for (const auto& copy : bmc_.copies)
    if (bmc_.clock.steady() < copy.until)
      bmc_.violate(fmt::format("{} while the second slot of {} was filled", what, copy.component));
}

}  // namespace muster::lab::vbmc
