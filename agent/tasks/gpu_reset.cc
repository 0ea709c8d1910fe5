// SPDX-License-Identifier: Apache-2.0
// ResetGpu: what a reboot would do for a GPU, in seconds. Refused while anything uses one of them;
// nothing is ended for it.
//
// params {gpus: [PCI address]}. Where a Fabric Manager runs, all GPUs of the node are reset
// together: their links are trained as one.
#include "agent/tasks/systemd.h"
#include "base/io/files.h"
#include "base/json_output.h"
#include "wire/task_params.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kAskLimit{30}, kResetLimit{180};
constexpr std::size_t kAddressBytes =
    12;  ///< "0000:18:00.0"; NVIDIA's tools write the domain with eight digits
constexpr std::size_t kMaxUsersNamed = 4;
/// Services that hold every GPU's device file and let go of it for a reset by themselves; the
/// kernel cuts names at 15 bytes.
constexpr std::array<std::string_view, 2> kServices = {"nvidia-persiste", "nv-fabricmanage"};

struct Gpu {
  std::string index, address;
};

std::string trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())))
    text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())))
    text.remove_suffix(1);
  return std::string(text);
}

std::string addressOf(std::string_view text) {
  auto out = trimmed(text);
  if (out.size() > kAddressBytes) out = out.substr(out.size() - kAddressBytes);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

/// Lines of "a, b, c", split and trimmed.
std::vector<std::vector<std::string>> rowsOf(std::string_view csv) {
  std::vector<std::vector<std::string>> rows;
  while (!csv.empty()) {
    auto line = csv.substr(0, csv.find('\n'));
    csv.remove_prefix(std::min(csv.size(), line.size() + 1));
    if (trimmed(line).empty()) continue;
    auto& row = rows.emplace_back();
    for (std::size_t comma = 0; comma != std::string_view::npos;) {
      comma = line.find(',');
      row.push_back(trimmed(line.substr(0, comma)));
      line.remove_prefix(comma == std::string_view::npos ? line.size() : comma + 1);
    }
  }
  return rows;
}

Async<std::string> nvidiaSmi(TaskTools tools, std::vector<std::string> args,
                             std::chrono::seconds limit) {
  co_return co_await runTool(tools, "nvidia-smi", std::move(args), limit);
}

Async<std::vector<Gpu>> listGpus(TaskTools tools) {
  std::vector<std::string> args = {"--query-gpu=index,pci.bus_id", "--format=csv,noheader"};
  CO_TRY(out, co_await nvidiaSmi(tools, std::move(args), kAskLimit));
  std::vector<Gpu> gpus;
  for (const auto& row : rowsOf(out)) {
    if (row.size() != 2)
      co_return fail(ErrorCode::Corrupt,
                     "nvidia-smi lists no GPUs: " + out.substr(0, wire::kMaxNameBytes));
    gpus.push_back({row[0], addressOf(row[1])});
  }
  co_return gpus;
}

/// Programs that compute there, as the driver knows them.
Async<std::vector<std::string>> computing(TaskTools tools, std::vector<Gpu> gpus) {
  std::vector<std::string> args = {"--query-compute-apps=gpu_bus_id,pid,process_name",
                                   "--format=csv,noheader"};
  CO_TRY(out, co_await nvidiaSmi(tools, std::move(args), kAskLimit));
  std::vector<std::string> users;
  for (const auto& row : rowsOf(out)) {
    if (row.size() < 3)
      co_return fail(ErrorCode::Corrupt, "nvidia-smi did not list the compute processes: " +
                                             out.substr(0, wire::kMaxNameBytes));
    const bool here = std::any_of(gpus.begin(), gpus.end(), [&row](const Gpu& gpu) {
      return gpu.address == addressOf(row[0]);
    });
    if (here) users.push_back(fmt::format("{} ({})", row[1], row[2]));
  }
  co_return users;
}

/// Programs that hold a device file: also those that have not begun to compute, and those of other
/// name spaces.
std::vector<std::string> holding(const fs::path& root, const std::vector<Gpu>& gpus) {
  std::vector<std::string> users;
  std::error_code ignored;
  for (const auto& process : fs::directory_iterator(root / "proc", ignored)) {
    const auto pid = process.path().filename().string();
    if (pid.empty() ||
        !std::all_of(pid.begin(), pid.end(), [](unsigned char c) { return std::isdigit(c); }))
      continue;
    auto comm = io::readFile(process.path() / "comm", wire::kMaxNameBytes);
    const auto name = comm ? trimmed(*comm) : std::string();
    if (std::find(kServices.begin(), kServices.end(), name) != kServices.end()) continue;
    std::error_code gone;
    for (const auto& fd : fs::directory_iterator(process.path() / "fd", gone)) {
      const auto target = fs::read_symlink(fd.path(), gone).string();
      const bool here = std::any_of(gpus.begin(), gpus.end(), [&target](const Gpu& gpu) {
        return target == "/dev/nvidia" + gpu.index;
      });
      if (!here) continue;
      users.push_back(fmt::format("{} ({})", pid, name));
      break;
    }
  }
  return users;
}

Result<std::vector<Gpu>> chosen(const std::vector<Gpu>& all,
                                const std::vector<std::string>& wanted) {
  std::vector<Gpu> out;
  for (const auto& address : wanted) {
    const auto found = std::find_if(all.begin(), all.end(), [&address](const Gpu& gpu) {
      return gpu.address == addressOf(address);
    });
    if (found == all.end())
      return fail(
          ErrorCode::NotFound,
          fmt::format(
              "no GPU answers at {}: what has fallen off the bus cannot be reset, reboot the node",
              address));
    out.push_back(*found);
  }
  return out;
}

Async<void> nobodyUses(TaskTools tools, std::vector<Gpu> gpus) {
  CO_TRY(users, co_await computing(tools, gpus));
  auto held = holding(tools.root, gpus);
  users.insert(users.end(), std::make_move_iterator(held.begin()),
               std::make_move_iterator(held.end()));
  if (users.empty()) co_return Result<void>();
  users.resize(std::min(users.size(), kMaxUsersNamed));
  co_return fail(ErrorCode::Conflict,
                 fmt::format("still in use, by {}; nothing was reset", fmt::join(users, ", ")));
}

}  // namespace

Async<nlohmann::json> resetGpus(TaskTools tools, nlohmann::json params, TaskContextPtr context) {
  CO_TRY(order, wire::parseResetGpuParams(jsonText(params)));
  context->progress(0.1, "looking who uses them");
  CO_TRY(before, co_await listGpus(tools));
  CO_TRY(gpus, chosen(before, order.gpus));
  const bool together = co_await unitState(tools, "nvidia-fabricmanager") == "active";
  if (together) gpus = before;
  CO_TRY_OK(co_await nobodyUses(tools, gpus));

  context->progress(0.3, fmt::format("resetting {} GPUs", gpus.size()));
  std::vector<std::string> args = {"--gpu-reset"};
  std::string indexes;
  for (const auto& gpu : gpus) indexes += (indexes.empty() ? "" : ",") + gpu.index;
  if (!together) args.insert(args.end(), {"-i", indexes});
  CO_TRY_OK(co_await nvidiaSmi(tools, std::move(args), kResetLimit));

  context->progress(0.8, "looking whether all are back");
  CO_TRY(after, co_await listGpus(tools));
  if (after.size() < before.size())
    co_return fail(ErrorCode::Internal,
                   fmt::format("{} GPUs answer after the reset, {} did before; reboot the node",
                               after.size(), before.size()));
  auto out = nlohmann::json::array();
  for (const auto& gpu : gpus) out.push_back(gpu.address);
  co_return nlohmann::json{{"reset", std::move(out)}};
}

}  // namespace muster::agent
