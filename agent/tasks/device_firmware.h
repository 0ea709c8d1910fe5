// SPDX-License-Identifier: Apache-2.0
// ListFirmware and InstallFirmware: what NICs, NVMe drives and fwupd's devices run, and writing new
// images into them.
#pragma once

#include "agent/tasks/tasks.h"
#include "base/io/http.h"
#include "wire/device_firmware.h"

#include <memory>

namespace muster::agent {

using MakeHttp = std::function<std::unique_ptr<io::HttpClient>()>;

/// Reads and writes of firmware exclude each other: a tool that asks a flash which another one
/// writes gets in its way.
class DeviceFirmwareTasks {
 public:
  DeviceFirmwareTasks(TaskTools tools, MakeHttp make_http)
      : tools_(std::move(tools)), make_http_(std::move(make_http)) {}

  /// params {ways}. Errors: Conflict (an installation runs)
  Async<nlohmann::json> list(nlohmann::json params);
  /// Downloads the image, checks its digest and what it says of itself, and writes it into every
  /// device that fits and has it not; the digest is checked anew before each. What counts is what
  /// the device says afterwards. Errors: NotFound (no such device; the tool is not installed),
  /// Corrupt (digest, wrong image), Internal (the tool's words)
  Async<nlohmann::json> install(nlohmann::json params, TaskContextPtr context);

 private:
  Async<void> readMstflint(wire::DeviceFirmware& out);
  Async<void> readNvme(wire::DeviceFirmware& out);
  Async<void> readFwupd(wire::DeviceFirmware& out);
  /// Never fails as a whole: what cannot be read is a trouble.
  Task<wire::DeviceFirmware> read(std::vector<std::string> ways);

  Async<std::filesystem::path> download(wire::FirmwareTask task, std::filesystem::path folder,
                                        TaskContextPtr context);
  Async<void> checkFile(std::filesystem::path file, std::string sha256);
  /// What the image says of itself. NVMe images say nothing.
  Async<void> checkImage(wire::FirmwareTask task, std::filesystem::path file);
  Async<void> write(wire::FirmwareTask task, wire::DeviceVersion device,
                    std::filesystem::path file);
  Async<nlohmann::json> installAlone(wire::FirmwareTask task, TaskContextPtr context);

  TaskTools tools_;
  MakeHttp make_http_;
  bool writing_ = false;
};

}  // namespace muster::agent
