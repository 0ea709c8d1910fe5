// SPDX-License-Identifier: Apache-2.0
#include "agent/tasks/node_service.h"

#include "agent/tasks/network_change.h"
#include "agent/tasks/systemd.h"
#include "base/io/crypto.h"
#include "base/io/files.h"
#include "base/json_input.h"
#include "base/json_output.h"
#include "wire/task_params.h"

#include <algorithm>
#include <array>
#include <set>

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kStartLimit{90};
constexpr const char* kNotes = "etc/muster/services";

constexpr std::array kOpensmFiles = {
    ServiceFile{"opensm.conf", "etc/muster/opensm/opensm.conf"},
    ServiceFile{"root_guids", "etc/muster/opensm/root_guids"},
    ServiceFile{"io_guids", "etc/muster/opensm/io_guids"},
    ServiceFile{"cn_guids", "etc/muster/opensm/cn_guids", OnChange::Reload},
    ServiceFile{"partitions.conf", "etc/muster/opensm/partitions.conf", OnChange::Reload},
    ServiceFile{"guid2lid", "etc/muster/opensm/guid2lid", OnChange::Seed},
    ServiceFile{"muster-opensm.service", "etc/systemd/system/muster-opensm.service"},
};
constexpr std::array kImexFiles = {
    ServiceFile{"nodes_config.cfg", "etc/nvidia-imex/nodes_config.cfg"}};
constexpr std::array kRoceFiles = {
    ServiceFile{"roce.sh", "etc/muster/roce.sh", OnChange::Restart, 0755},
    ServiceFile{"muster-roce.service", "etc/systemd/system/muster-roce.service"},
};
constexpr std::array kServices = {
    ServiceRow{"opensm",
               "muster-opensm.service",
               "usr/sbin/opensm",
               "add the package opensm to the image of this node",
               kOpensmFiles,
               {},
               "opensm.service opensm@*"},
    ServiceRow{"imex",
               "nvidia-imex.service",
               "usr/bin/nvidia-imex",
               "add nvidia-imex of the driver's version to the packages of its driver",
               kImexFiles,
               {}},
    ServiceRow{"fabric-manager",
               "nvidia-fabricmanager.service",
               "usr/bin/nv-fabricmanager",
               "add the driver preset fabric-manager, with the driver's version, to its profile",
               {},
               "usr/share/nvidia/nvswitch/fabricmanager.cfg"},
    ServiceRow{"roce",
               "muster-roce.service",
               "usr/sbin/dcb sbin/dcb usr/bin/dcb",
               "dcb is in the package iproute2 of Debian 12, Ubuntu 22.04 and later",
               kRoceFiles,
               {},
               {},
               true},
};

struct Params {
  const ServiceRow* service = nullptr;
  std::string value;
  std::map<std::string, std::string> files, settings;
};

Result<Params> parse(const nlohmann::json& json) {
  TRY(wanted, wire::parseNodeServiceParams(jsonText(json)));
  const auto* service = findService(wanted.service);
  if (!service) return fail(ErrorCode::InvalidInput, "params.service is not known to this agent");
  for (const auto& [name, text] : wanted.files)
    if (std::ranges::none_of(service->files, [&](const auto& file) { return file.name == name; }))
      return fail(ErrorCode::InvalidInput,
                  "params.files has '" + name + "', which is no file of this service");
  for (const auto& [key, value] : wanted.settings) {
    const bool plain =
        value.find_first_of("\n\r") == std::string::npos &&
        key.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == std::string::npos &&
        !key.empty();
    if (!plain || service->settings.empty())
      return fail(ErrorCode::InvalidInput,
                  "params.settings has '" + key + "', which is no setting of this service");
  }
  return Params{service, std::move(wanted.value), std::move(wanted.files),
                std::move(wanted.settings)};
}

std::string contentOf(const fs::path& path) {
  return io::readFile(path, wire::kMaxServiceFileBytes).value_or("");
}

/// What the service was started with: digests of files, values of settings.
nlohmann::json noteOf(const Params& params) {
  nlohmann::json files = nlohmann::json::object();
  for (const auto& file : params.service->files)
    if (const auto text = params.files.find(std::string(file.name));
        text != params.files.end() && file.on != OnChange::Seed)
      files[text->first] = io::sha256Hex(text->second);
  return {{"value", params.value}, {"files", std::move(files)}, {"settings", params.settings}};
}

fs::path noteFile(const TaskTools& tools, std::string_view service) {
  return tools.root / kNotes / (std::string(service) + ".json");
}

/// Empty: the files are what the note says.
std::string differenceFrom(const nlohmann::json& note, const TaskTools& tools,
                           const ServiceRow& service) {
  for (const auto& file : service.files)
    if (const auto digest = note.at("files").find(std::string(file.name));
        digest != note.at("files").end() &&
        *digest != io::sha256Hex(contentOf(tools.root / file.path)))
      return std::string(file.name);
  const auto text =
      service.settings.empty() ? std::string() : contentOf(tools.root / service.settings);
  for (const auto& [key, value] : note.at("settings").items())
    if (settingIn(text, key) != value.get<std::string>()) return key;
  return {};
}

std::optional<nlohmann::json> readNote(const TaskTools& tools, const ServiceRow& service) {
  auto note = jsonOrNone(contentOf(noteFile(tools, service.name)), kKeptJson);
  const bool ours = note.is_object() && note.value("value", nlohmann::json()).is_string() &&
                    note.value("files", nlohmann::json()).is_object() &&
                    note.value("settings", nlohmann::json()).is_object();
  return ours ? std::optional(std::move(note)) : std::nullopt;
}

std::vector<std::string> wordsOf(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const auto blank = text.find(' ');
    words.emplace_back(text.substr(0, blank));
    text = blank == std::string_view::npos ? std::string_view{} : text.substr(blank + 1);
  }
  return words;
}

bool isInstalled(const TaskTools& tools, const ServiceRow& service) {
  const auto programs = wordsOf(service.program);
  return std::any_of(programs.begin(), programs.end(), [&tools](const auto& program) {
    std::error_code ignored;
    return fs::exists(tools.root / program, ignored);
  });
}

/// A rival that runs; empty: none.
Task<std::string> activeRival(TaskTools tools, std::string_view rivals) {
  if (rivals.empty()) co_return std::string();
  std::vector<std::string> words = {"list-units", "--plain", "--no-legend",
                                    "--state=active,activating"};
  for (auto& rival : wordsOf(rivals)) words.push_back(std::move(rival));
  const auto units = co_await systemctl(tools, std::move(words), kStartLimit);
  co_return units ? units->substr(0, units->find_first_of(" \n")) : std::string();
}

/// Packages bring a service of their own and enable it. With its own files it would take part, and
/// at a take-over undo ours.
Async<void> silenceRivals(TaskTools tools, const ServiceRow& service) {
  for (const auto& rival : wordsOf(service.rivals)) {
    const bool is_template = rival.ends_with('*');
    std::vector<std::string> stop = is_template
                                        ? std::vector<std::string>{"stop", rival}
                                        : std::vector<std::string>{"disable", "--now", rival};
    (void)co_await systemctl(
        tools, std::move(stop),
        kStartLimit);  // refused where there is no such unit; one that still runs is found below
    if (is_template) continue;
    std::vector<std::string> mask = {"mask", rival};
    if (const auto masked = co_await systemctl(tools, std::move(mask), kStartLimit); !masked)
      co_return fail(
          ErrorCode::Conflict,
          fmt::format(
              "{} cannot be masked, and it does the same as {}: remove it from the image ({})",
              rival, service.unit, masked.error().str()));
  }
  if (const auto runs = co_await activeRival(tools, service.rivals); !runs.empty())
    co_return fail(
        ErrorCode::Conflict,
        fmt::format(
            "{} runs and cannot be stopped, and it does the same as {}: remove it from the image",
            runs, service.unit));
  co_return Result<void>();
}

/// What has to be done that the files count. Errors: those of the file system
struct Changes {
  bool restart = false, reload = false, units = false;
};
Result<Changes> writeFiles(const TaskTools& tools, const Params& params) {
  Changes out;
  const auto put = [&](const fs::path& path, const std::string& text,
                       unsigned mode) -> Result<void> {
    TRY_OK(io::makeDirs(path.parent_path()));
    return io::writeFileAtomic(path, text, mode);
  };
  for (const auto& file : params.service->files) {
    const auto text = params.files.find(std::string(file.name));
    if (text == params.files.end()) continue;
    const auto path = tools.root / file.path;
    std::error_code ignored;
    const bool there = fs::exists(path, ignored);
    if (there && (file.on == OnChange::Seed || contentOf(path) == text->second)) continue;
    TRY_OK(put(path, text->second, file.mode));
    (file.on == OnChange::Reload ? out.reload : out.restart) = true;
    out.units = out.units || file.path.find("systemd") != std::string_view::npos;
  }
  if (params.settings.empty()) return out;
  const auto path = tools.root / params.service->settings;
  const auto before = contentOf(path);
  const auto after = withSettings(before, params.settings);
  if (after == before) return out;
  out.restart = true;
  TRY_OK(put(path, after, 0644));
  return out;
}

Async<void> bringUp(TaskTools tools, const ServiceRow& service, Changes changes, bool was_noted) {
  const std::string unit(service.unit);
  CO_TRY_OK(co_await silenceRivals(tools, service));
  if (changes.units) {
    std::vector<std::string> reload = {"daemon-reload"};
    CO_TRY_OK(co_await systemctl(tools, std::move(reload), kStartLimit));
  }
  std::vector<std::string> enable = {"enable", unit};
  CO_TRY_OK(co_await systemctl(tools, std::move(enable), kStartLimit));
  const bool runs = co_await unitState(tools, unit) == "active";
  // Without a note nobody knows which files it has read.
  std::string verb = !runs                                                ? "start"
                     : changes.restart || !was_noted || service.runs_once ? "restart"
                     : changes.reload                                     ? "reload"
                                                                          : "";
  if (!verb.empty()) {
    std::vector<std::string> words = {verb, unit};
    if (const auto started = co_await systemctl(tools, std::move(words), kStartLimit);
        !started) {  // systemctl only says where to look
      const auto output = co_await lastWords(tools, unit);
      co_return fail(started.error().code(),
                     fmt::format("{} did not {}; its last output: {}", unit, verb, output));
    }
  }
  co_return co_await untilActive(tools, unit, kStartLimit);
}

}  // namespace

const ServiceRow* findService(std::string_view name) {
  const auto row = std::find_if(kServices.begin(), kServices.end(),
                                [name](const auto& each) { return each.name == name; });
  return row == kServices.end() ? nullptr : &*row;
}

std::optional<std::string> settingIn(std::string_view text, std::string_view key) {
  std::optional<std::string> out;
  while (!text.empty()) {
    const auto end = text.find('\n');
    auto line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with(key) && line.substr(key.size()).starts_with('='))
      out = std::string(line.substr(key.size() + 1));
  }
  return out;
}

std::string withSettings(std::string_view text,
                         const std::map<std::string, std::string>& settings) {
  std::string out;
  std::set<std::string> done;
  while (!text.empty()) {
    const auto end = text.find('\n');
    const auto line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    const auto setting = settings.find(std::string(line.substr(0, line.find('='))));
    if (setting == settings.end() || line.find('=') == std::string_view::npos) {
      out += std::string(line) + "\n";
    } else if (done.insert(setting->first).second) {
      out += setting->first + "=" + setting->second + "\n";
    }
  }
  for (const auto& [key, value] : settings)
    if (!done.contains(key)) out += fmt::format("{}={}\n", key, value);
  return out;
}

Async<nlohmann::json> setNodeService(TaskTools tools, nlohmann::json params,
                                     TaskContextPtr context) {
  if (auto ordered = wire::parseNodeServiceParams(jsonText(params));
      ordered && ordered->service == kNetworkService) {
    co_return co_await changeNetwork(std::move(tools), std::move(*ordered), std::move(context));
  }
  CO_TRY(wanted, parse(params));
  const auto& service = *wanted.service;
  if (!isInstalled(tools, service))
    co_return fail(ErrorCode::NotFound,
                   fmt::format("this node has no {}: {}",
                               service.program.substr(0, service.program.find(' ')), service.help));
  const auto note = noteFile(tools, service.name);
  auto before = readNote(tools, service);
  const bool was_noted = before && differenceFrom(*before, tools, service).empty();
  std::error_code ignored;
  if (!before || *before != noteOf(wanted) || !was_noted) fs::remove(note, ignored);
  context->progress(0.2, fmt::format("writing the files of {}", service.unit));
  CO_TRY(changes, writeFiles(tools, wanted));
  context->progress(0.5, fmt::format("starting {}", service.unit));
  CO_TRY_OK(co_await bringUp(tools, service, changes, was_noted));
  CO_TRY_OK(io::makeDirs(note.parent_path()));
  CO_TRY_OK(io::writeFileAtomic(note, jsonText(noteOf(wanted))));
  co_return nlohmann::json{{"service", service.name},
                           {"value", wanted.value},
                           {"started", changes.restart || !was_noted || service.runs_once}};
}

Task<std::string> nodeServiceProbe(TaskTools tools, std::string name) {
  const auto* service = findService(name);
  const auto note = service ? readNote(tools, *service) : std::nullopt;
  if (!note) co_return std::string();
  if (const auto changed = differenceFrom(*note, tools, *service); !changed.empty())
    co_return "changed: " + changed;
  const auto state = co_await unitState(tools, std::string(service->unit));
  if (state != "active")
    co_return "not active: " + (state.empty() ? "systemd did not report" : state);
  const auto rival = co_await activeRival(tools, service->rivals);
  co_return rival.empty() ? note->at("value").get<std::string>() : "rival: " + rival;
}

}  // namespace muster::agent
