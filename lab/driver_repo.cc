// SPDX-License-Identifier: Apache-2.0
// The lab's flat apt repository: muster-sim-nvml in two versions, and the RDMA user space for nodes
// that reach no mirror.
//
// What a minimal Debian lacks is resolved by apt itself against an empty dpkg status, so packages
// that happen to be installed on this machine hide nothing. Packages and Release are written here:
// apt-ftparchive would be one more thing to install.
#include "base/io/crypto.h"
#include "base/io/files.h"
#include "base/io/process.h"
#include "lab/lab.h"

#include <array>
#include <set>

namespace muster::lab {

namespace {

using std::filesystem::path;

constexpr std::string_view kVersionMarker = "MUSTER-SIM-NVML-DRIVER-VERSION:";
constexpr std::size_t kVersionSlotBytes = 96;  // as in sim_nvml.cc
constexpr std::array kNvmlVersions = {"570.124.06", "575.57.08"};
constexpr std::string_view kRdmaPackages = "rdma-core ibverbs-utils perftest";
constexpr std::string_view kRepoFormat =
    "1";  // raise it when the repository's content is made otherwise
constexpr std::chrono::seconds kAptLimit{300};

constexpr std::string_view kPostinst = R"(#!/bin/sh
# Describes this machine's simulated GPUs, unless somebody has already: number and model by SMBIOS, serials from the machine's.
set -e
[ "$1" = configure ] || exit 0
ldconfig || true
config=/etc/muster/sim-nvml.json
[ -e "$config" ] && exit 0
dmi=/sys/class/dmi/id
machine=$(cat $dmi/product_serial 2>/dev/null || hostname)
count=$(sed -n 's/^sim-gpus=\([0-9][0-9]*\)$/\1/p' $dmi/product_sku 2>/dev/null || true)
model=$(cat $dmi/product_family 2>/dev/null || true)
mkdir -p /etc/muster
{
  printf '{"gpus": ['
  index=0
  while [ $index -lt "${count:-0}" ]; do
    hex=$(printf '%s gpu %s' "$machine" $index | sha256sum)
    serial=165$(printf '%s' "$hex" | cut -c1-10 | tr a-f 0-5)
    uuid=$(printf '%s' "$hex" | sed 's/^\(.\{8\}\)\(.\{4\}\)\(.\{4\}\)\(.\{4\}\)\(.\{12\}\).*/GPU-\1-\2-\3-\4-\5/')
    [ $index -gt 0 ] && printf ','
    printf '\n  {"name": "%s", "serial": "%s", "uuid": "%s", "bus_id": "00000000:%02X:00.0"}' "${model:-NVIDIA H100 80GB HBM3}" "$serial" "$uuid" $((27 + 16 * index))
    index=$((index + 1))
  done
  printf '\n]}\n'
} > "$config.new"
mv "$config.new" "$config"
)";

Result<std::string> shell(const std::string& script, const path& folder) {
  io::Command command{
      .program = "sh", .args = {"-ec", script}, .working_dir = folder, .timeout = kAptLimit};
  return io::runChecked(command);
}

/// The simulated library with its driver version written in. Installed: in lab/ beside the
/// programs; in a build folder: in lib/ beside bin/.
path builtFile(const char* name) {
  const auto programs = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  std::error_code unknown;
  const auto installed = programs / "lab" / name;
  if (std::filesystem::exists(installed, unknown)) return installed;
  return programs.parent_path() / "lib" / name;
}

Result<std::string> smi() {
  auto bytes = io::readFile(builtFile("nvidia-smi"));
  if (!bytes)
    return fail(
        bytes.error().within("the simulated nvidia-smi is not there (install muster-lab, or build "
                             "muster_sim_nvidia_smi)"));
  return bytes;
}

Result<std::string> libraryOf(const std::string& version) {
  auto file = builtFile("libnvidia-ml.so.1");
  auto bytes = io::readFile(file);
  if (!bytes)
    return fail(bytes.error().within(
        "the simulated NVML is not there (install muster-lab, or build muster_sim_nvml)"));
  auto slot = bytes->find(kVersionMarker);
  if (slot == std::string::npos || version.size() + kVersionMarker.size() >= kVersionSlotBytes)
    return fail(ErrorCode::Corrupt,
                fmt::format("{} has no slot for the version {}", file.string(), version));
  std::string text = version;
  text.resize(kVersionSlotBytes - kVersionMarker.size(), '\0');
  bytes->replace(slot + kVersionMarker.size(), text.size(), text);
  return std::move(*bytes);
}

Result<void> buildNvmlPackage(const std::string& version, const path& work, const path& repo) {
  auto root = work / ("sim-nvml-" + version);
  auto package_version = version + "-1";
  auto control = fmt::format(
      "Package: muster-sim-nvml\nVersion: {}\nArchitecture: amd64\nMaintainer: muster "
      "<muster@localhost>\nDepends: libc6\n"
      "Section: misc\nPriority: optional\nDescription: simulated NVML for machines without GPUs\n"
      " libnvidia-ml.so.1 of NVML's ABI over the GPUs in /etc/muster/sim-nvml.json.\n",
      package_version);
  TRY(library, libraryOf(version));
  auto library_file = root / "usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1";
  TRY_OK(io::makeDirs(root / "DEBIAN"));
  TRY_OK(io::makeDirs(library_file.parent_path()));
  TRY_OK(io::writeFileAtomic(root / "DEBIAN/control", control));
  TRY_OK(io::writeFileAtomic(root / "DEBIAN/postinst", kPostinst, 0755));
  TRY_OK(io::writeFileAtomic(library_file, library));
  TRY(tool, smi());
  TRY_OK(io::makeDirs(root / "usr/bin"));
  TRY_OK(io::writeFileAtomic(root / "usr/bin/nvidia-smi", tool, 0755));
  io::Command build{
      .program = "dpkg-deb",
      .args = {"--root-owner-group", "-Zgzip", "--build", root.string(),
               (repo / fmt::format("muster-sim-nvml_{}_amd64.deb", package_version)).string()},
      .env = {{"SOURCE_DATE_EPOCH", "1767225600"}}};
  TRY_OK(io::runChecked(build));
  return {};
}

/// Downloads the RDMA packages and what a minimal system lacks for them; a folder of .deb files,
/// kept in the cache.
Result<path> rdmaPackages(const Say& say) {
  auto key = io::sha256Hex(fmt::format("{} {}", kRepoFormat, kRdmaPackages)).substr(0, 16);
  auto done = cacheFolder() / "debs" / key;
  std::error_code error;
  if (std::filesystem::exists(done, error)) return done;
  say(fmt::format("downloading {} and what they need (once, to {})", kRdmaPackages, done.string()));
  auto work = cacheFolder() / "debs" / (key + ".part");
  std::filesystem::remove_all(work, error);
  TRY_OK(io::makeDirs(work));
  std::string script = R"sh(
: > status
mkdir -p archives/partial
apt="-o Dir::State::status=$PWD/status -o Dir::Cache::archives=$PWD/archives -o APT::Install-Recommends=false -o Debug::NoLocking=1 -o APT::Sandbox::User=root"
minimal="apt $(apt-cache $apt dumpavail | awk '/^Package:/{p=$2} /^(Priority: required|Essential: yes)/{print p}' | sort -u)"
names() { sed -n 's/^Inst \([^ ]*\).*/\1/p' | sort -u; }
apt-get $apt -s install $minimal | names > have
apt-get $apt -s install $minimal PACKAGES | names > want
missing=$(comm -13 have want)
[ -n "$missing" ] || { echo "apt resolved nothing: run apt-get update" >&2; exit 1; }
apt-get $apt -qq download $missing
rm -rf archives have want status
)sh";
  script.replace(script.find("PACKAGES"), 8, kRdmaPackages);
  if (auto fetched = shell(script, work); !fetched)
    return fail(fetched.error().within("downloading the RDMA packages (is apt-get update done?)"));
  std::filesystem::rename(work, done, error);
  if (error)
    return fail(ErrorCode::Internal,
                fmt::format("cannot keep {}: {}", done.string(), error.message()));
  return done;
}

/// apt escapes the colon of an epoch as %3a; a URL would escape that once more.
std::string plainName(const path& deb) {
  auto name = deb.filename().string();
  for (auto at = name.find("%3a"); at != std::string::npos; at = name.find("%3a"))
    name.replace(at, 3, ".");
  return name;
}

/// One paragraph of Packages: the control file with where and what the archive is.
Result<std::string> paragraphOf(const path& deb) {
  io::Command fields{.program = "dpkg-deb", .args = {"--field", deb.string()}};
  TRY(control, io::runChecked(fields));
  TRY(digest, io::sha256File(deb));
  return fmt::format("{}Filename: ./{}\nSize: {}\nSHA256: {}\n\n", control, deb.filename().string(),
                     std::filesystem::file_size(deb), digest);
}

Result<void> writeIndex(const path& repo) {
  std::set<path> debs;
  for (const auto& entry : std::filesystem::directory_iterator(repo))
    if (entry.path().extension() == ".deb") debs.insert(entry.path());
  std::string packages;
  for (const auto& deb : debs) {
    TRY(paragraph, paragraphOf(deb));
    packages += paragraph;
  }
  auto release = fmt::format(
      "Origin: muster\nLabel: muster lab\nSuite: lab\nArchitectures: amd64\nDate: Thu, 01 Jan 2026 "
      "00:00:00 UTC\nSHA256:\n {} {} "
      "Packages\n",
      io::sha256Hex(packages), packages.size());
  TRY_OK(io::writeFileAtomic(repo / "Packages", packages));
  return io::writeFileAtomic(repo / "Release", release);
}

}  // namespace

Result<void> buildDriverRepo(const std::filesystem::path& folder, Say say) {
  TRY(rdma, rdmaPackages(say));
  std::string inputs(kRepoFormat);
  for (const auto* version : kNvmlVersions) {
    TRY(library, libraryOf(version));
    inputs += io::sha256Hex(library);
  }
  TRY(tool, smi());
  inputs = io::sha256Hex(inputs + io::sha256Hex(tool) + std::string(kPostinst) + rdma.string());
  auto stamp = folder / ".inputs";
  if (auto before = io::readFile(stamp); before && *before == inputs) return {};

  std::error_code error;
  TRY_OK(io::makeDirs(folder));
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (entry.path().extension() == ".deb") std::filesystem::remove(entry.path(), error);
  for (const auto& entry : std::filesystem::directory_iterator(rdma, error)) {
    if (entry.path().extension() != ".deb") continue;
    std::filesystem::copy_file(entry.path(), folder / plainName(entry.path()), error);
    if (error)
      return fail(ErrorCode::Internal,
                  fmt::format("cannot copy {}: {}", entry.path().string(), error.message()));
  }
  auto work = folder / ".work";
  for (const auto* version : kNvmlVersions) TRY_OK(buildNvmlPackage(version, work, folder));
  std::filesystem::remove_all(work, error);
  TRY_OK(writeIndex(folder));
  TRY_OK(io::writeFileAtomic(stamp, inputs));
  say(fmt::format("apt repository {} is ready", folder.string()));
  return {};
}

}  // namespace muster::lab
