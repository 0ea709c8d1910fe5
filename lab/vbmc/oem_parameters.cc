// SPDX-License-Identifier: Apache-2.0
// What a vendor wants to be told with an upload, and what becomes of a machine whose controller
// says something else.
#include "base/json_input.h"
#include "lab/vbmc/messages.h"
#include "lab/vbmc/redfish_service.h"

#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>

#include <algorithm>

namespace muster::lab::vbmc {

/// The component behind a target: a member of the inventory, the manager, or the BIOS.
std::string RedfishService::componentAt(const std::string& asked) const {
  const auto uri = inside(asked);
  if (uri == kManager) return std::string(options_.vendor_profile->bmc);
  if (uri == kBios) return "BIOS";
  return uri.starts_with(kInventory + "/") ? slotOf(uri.substr(kInventory.size() + 1))
                                           : std::string();
}

/// Names that are not the vendor's are refused, as is an upload that
/// leaves one out.
std::optional<io::ServerResponse> RedfishService::takeWords(const nlohmann::json& parameters,
                                                            Job& job) const {
  for (const auto& rule : behaviour_.oem_rules) {
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

/// SimpleUpdate: it is told where the image lies, and fetches it.
io::ServerResponse RedfishService::acceptUrl(const io::ServerRequest& request) {
  if (job_) return refuseBusy();
  const auto body = jsonOrNone(request.body, kRequestJson);
  Job job;
  job.url = body.is_object() ? body.value("ImageURI", "") : std::string();
  if (!job.url.starts_with("http://") && !job.url.starts_with("https://"))
    return redfishError(400, "Base.1.8.ActionParameterValueFormatError", "ImageURI is no address.");
  for (const auto& uri : body.value("Targets", std::vector<std::string>()))
    job.targets.push_back(componentAt(uri));
  job.fault = drawFault();
  if (auto refusal = refusalBy(job.fault)) return std::move(*refusal);
  const bool answer_is_lost = job.fault == UpdateFault::LostAnswer;
  auto accepted = begin(std::move(job));
  if (answer_is_lost) throw boost::system::system_error(asio::error::operation_aborted);
  return accepted;
}

/// iDRAC: what the job would have done at the next restart is not done.
io::ServerResponse RedfishService::deleteJob(const std::string& path) {
  for (auto task = tasks_.begin(); task != tasks_.end(); ++task) {
    if (task->second.job.empty() || !path.ends_with("/" + task->second.job)) continue;
    if (task->second.state == behaviour_.staged_state)
      state_.slots[task->second.component].staged_version.clear();
    tasks_.erase(task);
    save();
    return io::ServerResponse::text(204, "");
  }
  return redfishError(404, "Base.1.8.ResourceMissingAtURI",
                      fmt::format("There is nothing at {}.", path));
}

/// A package is written into everything that it is for, whoever asked for which part of it.
Async<void> RedfishService::writeOthers(Job job, std::vector<std::string> components,
                                        std::string version) {
  for (const auto& component : components) {
    if (!state_.slots.contains(component))
      co_return fail(ErrorCode::InvalidInput,
                     fmt::format("this machine has no component '{}'", component));
    CO_TRY_OK(co_await write(job, component));
    auto& slot = state_.slots[component];
    if (version == slot.version || version == slot.staged_version)
      violate(fmt::format("{} {} was written although it was there already", component, version));
    ++slot.flashes;
    slot.staged_version = version;
  }
  co_return Result<void>();
}

/// It starts with what it was delivered with.
void RedfishService::loseConfiguration(const std::string& component) {
  violate(fmt::format("{} did not keep its configuration", component));
  if (component == "BIOS") state_.bios = BmcState::fresh(*options_.vendor_profile).bios;
}

}  // namespace muster::lab::vbmc
