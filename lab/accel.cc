// SPDX-License-Identifier: Apache-2.0
// KVM or TCG, by proof. On nested hosts /dev/kvm may exist and start firmware while a Linux kernel
// hangs in it for ever, so the proof is a kernel that comes as far as to complain about its missing
// root file system.
#include "base/io/crypto.h"
#include "base/io/files.h"
#include "base/io/process.h"
#include "lab/lab.h"

#include <sys/utsname.h>
#include <unistd.h>
#include <fstream>

namespace muster::lab {

namespace {

constexpr std::chrono::seconds kProofLimit{10};  // TCG needs 2 to 3 s for the same boot
constexpr std::chrono::seconds kDownloadLimit{120};

std::string cpuModel() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);)
    if (line.starts_with("model name")) return line;
  return "unknown";
}

/// What the answer depends on: another kernel, CPU or QEMU may answer otherwise.
std::string hostFingerprint() {
  utsname host{};
  ::uname(&host);
  io::Command version{.program = "qemu-system-x86_64", .args = {"--version"}};
  auto qemu = io::runChecked(version);
  return io::sha256Hex(fmt::format("{} {} {} {}", host.release, host.version, cpuModel(),
                                   qemu ? *qemu : "no qemu"))
      .substr(0, 16);
}

std::optional<std::filesystem::path> kernelIn(const std::filesystem::path& folder) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (entry.path().filename().string().starts_with("vmlinuz-")) return entry.path();
  return std::nullopt;
}

/// Any Linux kernel: the host's, or Debian's cloud kernel fetched once.
Result<std::filesystem::path> tinyKernel(const std::filesystem::path& cache) {
  if (auto own = kernelIn("/boot")) return *own;
  auto folder = cache / "kernel";
  if (auto fetched = kernelIn(folder / "boot")) return *fetched;
  TRY_OK(io::makeDirs(folder));
  std::string script =
      "set -e; package=$(apt-cache depends linux-image-cloud-amd64 | awk '/Depends: "
      "linux-image/{print $2; exit}'); "
      "apt-get -qq download \"$package\"; dpkg-deb --fsys-tarfile \"$package\"_*.deb | tar -x "
      "./boot; rm -f \"$package\"_*.deb";
  io::Command fetch{
      .program = "sh", .args = {"-c", script}, .working_dir = folder, .timeout = kDownloadLimit};
  TRY_OK(io::runChecked(fetch));
  if (auto fetched = kernelIn(folder / "boot")) return *fetched;
  return fail(ErrorCode::NotFound, "Debian's cloud kernel package holds no kernel");
}

bool kvmBoots(const std::filesystem::path& kernel) {
  io::Command guest{.program = "qemu-system-x86_64",
                    .args = {"-accel", "kvm", "-cpu", "host", "-m", "256", "-nodefaults",
                             "-display", "none", "-serial", "stdio", "-no-reboot", "-kernel",
                             kernel.string(), "-append", "console=ttyS0 panic=-1"},
                    .timeout = kProofLimit};
  auto exit = io::runBlocking(guest);
  return exit && exit->code == 0 && exit->out.find("Kernel panic") != std::string::npos &&
         exit->out.find("root fs") != std::string::npos;
}

}  // namespace

Accel provenAccel(const std::filesystem::path& cache, Say say) {
  if (::access("/dev/kvm", R_OK | W_OK) != 0) return Accel::Tcg;
  auto answer_file = cache / hostFingerprint();
  if (auto known = io::readFile(answer_file, 16))
    return known->starts_with("kvm") ? Accel::Kvm : Accel::Tcg;
  say(fmt::format(
      "/dev/kvm is there: booting a small guest to see whether it works (at most {} s, once)",
      kProofLimit.count()));
  auto kernel = tinyKernel(cache);
  if (!kernel) {
    say(fmt::format("no kernel to prove KVM with, so guests are emulated: {}",
                    kernel.error().str()));
    return Accel::Tcg;
  }
  bool proven = kvmBoots(*kernel);
  say(proven ? "KVM works" : "KVM does not boot a kernel here: guests are emulated (TCG)");
  if (auto made = io::makeDirs(cache); made)
    if (auto kept = io::writeFileAtomic(answer_file, proven ? "kvm\n" : "tcg\n"); !kept)
      say(kept.error().str());
  return proven ? Accel::Kvm : Accel::Tcg;
}

}  // namespace muster::lab
