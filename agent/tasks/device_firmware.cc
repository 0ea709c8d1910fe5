// SPDX-License-Identifier: Apache-2.0
#include "agent/tasks/device_firmware.h"

#include "agent/tasks/firmware_tools.h"
#include "agent/tasks/sysfs.h"
#include "base/io/crypto.h"
#include "base/io/files.h"
#include "base/json_input.h"
#include "base/json_output.h"
#include "wire/task_params.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kNvidiaNetworking = "0x15b3";
constexpr std::string_view kNetworkClass = "0x02";  ///< Ethernet, InfiniBand
constexpr std::uintmax_t kMaxFirmwareBytes = 1u << 30;
constexpr std::chrono::seconds kFetchPause{60};  ///< longest silence of the server
constexpr int kFetchTries = 3;
constexpr std::chrono::seconds kFetchAgain{5};

std::string line(const fs::path& file) {
  const auto text = io::readFile(file, kMaxSysfsBytes);
  if (!text) return {};
  auto words = text->substr(0, text->find('\n'));
  while (!words.empty() && std::isspace(static_cast<unsigned char>(words.back()))) words.pop_back();
  return words;
}

/// A card's first function: its ports share one flash. No virtual functions.
std::vector<std::string> nvidiaNics(const fs::path& root) {
  std::vector<std::string> out;
  for (const auto& device : childrenOf(root / "sys/bus/pci/devices")) {
    const auto address = device.filename().string();
    std::error_code error;
    if (!address.ends_with(".0") || fs::exists(device / "physfn", error)) continue;
    if (line(device / "vendor") == kNvidiaNetworking &&
        line(device / "class").starts_with(kNetworkClass) && out.size() < wire::kMaxFirmwareDevices)
      out.push_back(address);
  }
  return out;
}

Async<std::string> call(TaskTools tools, ToolCall what) {
  auto out = co_await runTool(tools, what.program, what.args, what.limit);
  if (!out && out.error().code() == ErrorCode::NotFound)
    co_return fail(
        ErrorCode::NotFound,
        fmt::format("{} is not installed here; add its package to the node's image", what.program));
  co_return out;
}

bool holds(const wire::DeviceVersion& device, const std::string& version) {
  return device.pending.empty() ? device.version == version : device.pending == version;
}

std::string describe(const wire::DeviceVersion& device) {
  return fmt::format("{} ({}) runs {}{}", device.id, fmt::join(device.keys, ", "), device.version,
                     device.pending.empty() ? "" : ", holds " + device.pending);
}

std::vector<wire::DeviceVersion> chosen(const wire::DeviceFirmware& all,
                                        const wire::FirmwareTask& task) {
  std::vector<wire::DeviceVersion> out;
  for (const auto& device : all.devices)
    if (fits(device, task.way, task.match)) out.push_back(device);
  return out;
}

/// A folder that nobody else can write into, gone at the end.
class PrivateFolder {
 public:
  static Result<PrivateFolder> make(const fs::path& root) {
    TRY_OK(io::makeDirs(root / "run"));
    std::string name = (root / "run/muster-firmware-XXXXXX").string();
    if (!::mkdtemp(name.data()))
      return fail(ErrorCode::Internal, "no folder for the firmware's file: " + name);
    return PrivateFolder(name);
  }
  PrivateFolder(PrivateFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  PrivateFolder& operator=(PrivateFolder&&) = delete;
  ~PrivateFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  explicit PrivateFolder(fs::path path) : path_(std::move(path)) {}
  fs::path path_;
};

}  // namespace

// ---- what runs

Async<void> DeviceFirmwareTasks::readMstflint(wire::DeviceFirmware& out) {
  for (const auto& pci : nvidiaNics(tools_.root)) {
    auto output = co_await call(tools_, mstflintQuery(pci));
    auto info = output ? parseMstflint(*output) : Result<MstflintInfo>(fail(output.error()));
    if (!info && info.error().code() == ErrorCode::NotFound) co_return fail(info.error());
    if (!info) {
      out.troubles[std::string(wire::kMstflint)] = pci + ": " + info.error().str();
      continue;
    }
    const bool waits = !info->running.empty() && info->running != info->version;
    out.devices.push_back({std::string(wire::kMstflint),
                           pci,
                           info->psid,
                           {info->psid},
                           waits ? info->running : info->version,
                           waits ? info->version : ""});
  }
  co_return Result<void>();
}

Async<void> DeviceFirmwareTasks::readNvme(wire::DeviceFirmware& out) {
  for (const auto& controller : childrenOf(tools_.root / "sys/class/nvme")) {
    const auto name = controller.filename().string();
    wire::DeviceVersion device{std::string(wire::kNvme),          name,
                               line(controller / "model"),        {line(controller / "model")},
                               line(controller / "firmware_rev"), {}};
    auto page = co_await call(tools_, nvmeFirmwareLog(name));
    auto pending = page ? nvmePending(*page) : Result<std::string>(fail(page.error()));
    if (!pending && pending.error().code() == ErrorCode::NotFound) co_return fail(pending.error());
    if (!pending || device.version.empty()) {
      out.troubles[std::string(wire::kNvme)] =
          name + ": " +
          (pending ? "its controller names no firmware revision" : pending.error().str());
      continue;
    }
    if (*pending != device.version) device.pending = std::move(*pending);
    if (out.devices.size() < wire::kMaxFirmwareDevices) out.devices.push_back(std::move(device));
  }
  co_return Result<void>();
}

Async<void> DeviceFirmwareTasks::readFwupd(wire::DeviceFirmware& out) {
  CO_TRY(devices, co_await call(tools_, fwupdDevices()));
  const auto history =
      co_await call(tools_, fwupdHistory());  // "no history" ends with an error here
  CO_TRY(found, parseFwupd(devices, history.value_or("")));
  for (auto& device : found)
    if (out.devices.size() < wire::kMaxFirmwareDevices) out.devices.push_back(std::move(device));
  co_return Result<void>();
}

Task<wire::DeviceFirmware> DeviceFirmwareTasks::read(std::vector<std::string> ways) {
  wire::DeviceFirmware out;
  for (const auto& way : ways) {
    if (auto done = co_await (way == wire::kMstflint ? readMstflint(out)
                              : way == wire::kNvme   ? readNvme(out)
                                                     : readFwupd(out));
        !done)
      out.troubles[way] = done.error().str();
  }
  co_return out;
}

Async<nlohmann::json> DeviceFirmwareTasks::list(nlohmann::json params) {
  CO_TRY(wanted, wire::parseListFirmwareParams(jsonText(params)));
  for (const auto& way : wanted.ways)
    if (way != wire::kMstflint && way != wire::kNvme && way != wire::kFwupd)
      co_return fail(ErrorCode::InvalidInput,
                     "params.ways knows mstflint, nvme and fwupd, not " + way);
  if (writing_)
    co_return fail(ErrorCode::Conflict,
                   "firmware is being written; nobody asks its devices meanwhile");
  const auto seen = co_await read(wanted.ways);
  co_return jsonOrNone(toJson(seen), kKeptJson);
}

// ---- an installation

Async<fs::path> DeviceFirmwareTasks::download(wire::FirmwareTask task, fs::path folder,
                                              TaskContextPtr context) {
  CO_TRY(url, io::Url::parse(task.url));
  const fs::path file = folder / (task.way == wire::kFwupd ? "firmware.cab" : "firmware.bin");
  for (int tried = 1;; ++tried) {
    io::HttpRequest request;
    request.url = url;
    request.timeout = kFetchPause;
    std::ofstream out(file, std::ios::binary | std::ios::trunc);
    std::uintmax_t got_bytes = 0;
    auto http = make_http_();
    std::function<Result<void>(std::string_view)> sink =
        [&out, &got_bytes](std::string_view piece) -> Result<void> {
      got_bytes += piece.size();
      if (got_bytes > kMaxFirmwareBytes)
        return fail(ErrorCode::Corrupt, "the firmware's file is larger than a GiB");
      if (!out.write(piece.data(), static_cast<std::streamsize>(piece.size())))
        return fail(ErrorCode::Internal, "the firmware's file cannot be written; is /run full?");
      return {};
    };
    auto answer = co_await http->fetch(std::move(request), std::move(sink));
    out.close();
    if (answer && answer->status == 200 && out) co_return file;
    Error why = answer ? Error(answer->status < 500 ? ErrorCode::NotFound : ErrorCode::Unavailable,
                               fmt::format("{} answers {}", task.url, answer->status))
                       : answer.error();
    if (!why.canRetry() || tried == kFetchTries)
      co_return fail(std::move(why).within("fetching the firmware's file"));
    context->progress(0, why.str() + "; trying again");
    co_await tools_.clock.sleep(kFetchAgain);
  }
}

Async<void> DeviceFirmwareTasks::checkFile(fs::path file, std::string sha256) {
  CO_TRY(seen, co_await offload<Result<std::string>>(tools_.workers,
                                                     [file] { return io::sha256File(file); }));
  if (seen == sha256) co_return Result<void>();
  co_return fail(
      ErrorCode::Corrupt,
      fmt::format("the file has the SHA-256 {}, the baseline declares {}; nothing was written",
                  seen, sha256));
}

Async<void> DeviceFirmwareTasks::checkImage(wire::FirmwareTask task, fs::path file) {
  if (task.way == wire::kNvme) co_return Result<void>();
  CO_TRY(output, co_await call(tools_, task.way == wire::kMstflint ? mstflintQueryImage(file)
                                                                   : fwupdDetails(file)));
  if (task.way == wire::kMstflint) {
    CO_TRY(info, parseMstflint(output));
    if (wire::fits(wire::DeviceVersion{task.way, "", "", {info.psid}, "", ""}, task.way,
                   task.match) &&
        info.version == task.version)
      co_return Result<void>();
    co_return fail(
        ErrorCode::Corrupt,
        fmt::format("the image is {} for {}, the baseline declares {} for {}; nothing was written",
                    info.version, info.psid, task.version, task.match));
  }
  CO_TRY(versions, parseFwupdDetails(output));
  if (versions.size() == 1 && versions.front() == task.version) co_return Result<void>();
  co_return fail(ErrorCode::Corrupt,
                 fmt::format("the cabinet brings {}, the baseline declares {}; nothing was written",
                             fmt::join(versions, ", "), task.version));
}

/// The tool's exit code proves little: nvme-cli ends with an error where all that is missing is a
/// reset.
Async<void> DeviceFirmwareTasks::write(wire::FirmwareTask task, wire::DeviceVersion device,
                                       fs::path file) {
  CO_TRY_OK(co_await checkFile(file, task.sha256));
  std::vector<ToolCall> calls;
  if (task.way == wire::kMstflint) calls = {mstflintBurn(device.id, file)};
  if (task.way == wire::kNvme) calls = {nvmeDownload(device.id, file), nvmeCommit(device.id)};
  if (task.way == wire::kFwupd) calls = {fwupdInstall(file, device.id)};
  std::string trouble;
  for (const auto& step : calls) {
    if (auto done = co_await call(tools_, step); !done) {
      trouble = done.error().str();
      if (&step != &calls.back()) break;  // what was not transferred whole is not committed
    }
  }
  std::vector<std::string> ways = {task.way};
  const auto now = co_await read(std::move(ways));
  for (const auto& seen : now.devices)
    if (seen.id == device.id && holds(seen, task.version)) co_return Result<void>();
  // fwupd's history holds what was installed and needs nothing more; whether it runs is asked
  // later.
  if (task.way == wire::kFwupd && trouble.empty()) co_return Result<void>();
  const auto again =
      std::find_if(now.devices.begin(), now.devices.end(),
                   [&](const wire::DeviceVersion& seen) { return seen.id == device.id; });
  co_return fail(
      ErrorCode::Internal,
      fmt::format("{} was to be written into {}, but {}{}", task.version, device.id,
                  again == now.devices.end() ? "it cannot be read any more" : describe(*again),
                  trouble.empty() ? "" : ": " + trouble));
}

Async<nlohmann::json> DeviceFirmwareTasks::installAlone(wire::FirmwareTask task,
                                                        TaskContextPtr context) {
  context->progress(0, "looking at the devices");
  std::vector<std::string> ways = {task.way};
  const auto all = co_await read(std::move(ways));
  const auto devices = chosen(all, task);
  if (const auto trouble = all.troubles.find(task.way); trouble != all.troubles.end())
    co_return fail(ErrorCode::Unavailable,
                   "not all devices can be read, nothing was written: " + trouble->second);
  if (devices.empty()) {
    std::vector<std::string> seen;
    for (const auto& device : all.devices) seen.push_back(describe(device));
    co_return fail(ErrorCode::NotFound,
                   fmt::format("no device fits {} {}; there are: {}", task.way, task.match,
                               seen.empty() ? "none" : fmt::format("{}", fmt::join(seen, "; "))));
  }
  auto written = nlohmann::json::array(), had = nlohmann::json::array();
  std::vector<wire::DeviceVersion> left;
  for (const auto& device : devices) {
    if (holds(device, task.version))
      had.push_back(device.id);
    else
      left.push_back(device);
  }
  if (left.empty()) co_return nlohmann::json{{"written", written}, {"had", had}};
  CO_TRY(folder, PrivateFolder::make(tools_.root));
  context->progress(0.05, "fetching the image");
  CO_TRY(file, co_await download(task, folder.path(), context));
  CO_TRY_OK(co_await checkFile(file, task.sha256));
  CO_TRY_OK(co_await checkImage(task, file));
  for (const auto& device : left) {
    if (context->cancelled())
      co_return fail(ErrorCode::Timeout, fmt::format("was cancelled after {} of {} devices",
                                                     written.size(), left.size()));
    context->progress(
        0.1 + 0.9 * static_cast<double>(written.size()) / static_cast<double>(left.size()),
        fmt::format("writing {} into {}", task.version, device.id));
    if (auto done = co_await write(task, device, file); !done)
      co_return fail(
          std::move(done.error())
              .within(fmt::format("{} of {} devices were written", written.size(), left.size())));
    written.push_back(device.id);
  }
  co_return nlohmann::json{{"written", written}, {"had", had}};
}

Async<nlohmann::json> DeviceFirmwareTasks::install(nlohmann::json params, TaskContextPtr context) {
  CO_TRY(task, wire::parseFirmwareTask(jsonText(params)));
  if (writing_) co_return fail(ErrorCode::Conflict, "firmware is being written already");
  struct Writing {
    bool& flag;
    explicit Writing(bool& f) : flag(f) { flag = true; }
    ~Writing() { flag = false; }
  } writing(writing_);
  co_return co_await installAlone(std::move(task), std::move(context));
}

}  // namespace muster::agent
