// SPDX-License-Identifier: Apache-2.0
// A TPM for a virtual machine with UEFI: swtpm, started anew with each start of the machine, with
// what it knew before.
#pragma once

#include "base/io/files.h"
#include "base/io/process.h"

#include <gtest/gtest.h>

#include <unistd.h>

namespace muster::provision {

class VmTpm {
 public:
  explicit VmTpm(std::filesystem::path folder) : folder_(std::move(folder)) {}
  ~VmTpm() {
    if (running_) running_->terminate(std::chrono::seconds(3));
  }
  /// QEMU's words for the firmware and the TPM. A TPM ends with the machine that used it, so each
  /// start has its own.
  std::vector<std::string> parts() {
    const auto vars = folder_ / "vars.fd";
    if (!std::filesystem::exists(vars))
      std::filesystem::copy_file("/usr/share/OVMF/OVMF_VARS_4M.fd", vars);
    start();
    return {
        "-drive",   "if=pflash,format=raw,unit=0,readonly=on,file=/usr/share/OVMF/OVMF_CODE_4M.fd",
        "-drive",   "if=pflash,format=raw,unit=1,file=" + vars.string(),
        "-fw_cfg",  "name=opt/org.tianocore/IPv6PXESupport,string=n",
        "-chardev", "socket,id=tpm,path=" + socket().string(),
        "-tpmdev",  "emulator,id=tpm0,chardev=tpm",
        "-device",  "tpm-crb,tpmdev=tpm0"};
  }

 private:
  std::filesystem::path socket() const { return folder_ / "tpm.sock"; }
  void start() {
    if (running_) running_->terminate(std::chrono::seconds(3));
    std::filesystem::remove(socket());
    ASSERT_TRUE(io::makeDirs(folder_ / "tpm"));
    auto started = processes_->start(
        {.program = "swtpm",
         .args = {"socket", "--tpm2", "--tpmstate", "dir=" + (folder_ / "tpm").string(), "--ctrl",
                  "type=unixio,path=" + socket().string(), "--flags", "startup-clear"}},
        folder_ / "tpm.log");
    ASSERT_TRUE(started) << started.error().str();
    running_ = std::move(*started);
    for (int i = 0; i < 500 && !std::filesystem::exists(socket()); ++i)
      ::usleep(10'000);  // QEMU connects once
  }

  std::filesystem::path folder_;
  std::unique_ptr<io::ProcessRunner> processes_ = io::makeProcessRunner();
  std::unique_ptr<io::Child> running_;
};

}  // namespace muster::provision
