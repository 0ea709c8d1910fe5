// SPDX-License-Identifier: Apache-2.0
// The programs that write firmware of devices: their command lines, and what they say. Pure;
// nothing else knows either.
//
// Sources: mstflint 4.21 (mstflint.1, "query" and "burn"), nvme-cli 2.3 (fw-log, fw-download,
// fw-commit; NVMe base specification 2.0, log page 3), fwupd 2.0 (fwupdtool get-devices,
// get-history, get-details, install). What is not understood is an error, never a guess.
#pragma once

#include "base/result.h"
#include "wire/device_firmware.h"

#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace muster::agent {

struct ToolCall {
  std::string program;
  std::vector<std::string> args;
  std::chrono::seconds limit;
};

// ---- mstflint

ToolCall mstflintQuery(const std::string& pci);
ToolCall mstflintQueryImage(const std::filesystem::path& image);
/// Fails safe: the running image stays until the new one is complete. Never with
/// --allow_psid_change or --nofs.
ToolCall mstflintBurn(const std::string& pci, const std::filesystem::path& image);

struct MstflintInfo {
  std::string psid, version;  ///< version: in the flash
  std::string running;        ///< when it is another one than in the flash
};
/// Errors: Corrupt (no version, no PSID)
Result<MstflintInfo> parseMstflint(std::string_view text);

// ---- nvme-cli

ToolCall nvmeFirmwareLog(const std::string& controller);
ToolCall nvmeDownload(const std::string& controller, const std::filesystem::path& image);
/// Into the slot that the controller chooses, to run after its next reset.
ToolCall nvmeCommit(const std::string& controller);

/// The version that runs after the next reset; empty: the same. `page`: log page 3 as bytes.
/// Errors: Corrupt
Result<std::string> nvmePending(std::string_view page);

// ---- fwupd

ToolCall fwupdDevices();
ToolCall fwupdHistory();
ToolCall fwupdDetails(const std::filesystem::path& cabinet);
ToolCall fwupdInstall(const std::filesystem::path& cabinet, const std::string& device);

/// `devices`, `history`: JSON of the two programs; an empty history is none. Errors: Corrupt
Result<std::vector<wire::DeviceVersion>> parseFwupd(std::string_view devices,
                                                    std::string_view history);
/// The versions that a cabinet brings to this machine. Errors: Corrupt (it is for none of its
/// devices)
Result<std::vector<std::string>> parseFwupdDetails(std::string_view text);

}  // namespace muster::agent
