// SPDX-License-Identifier: Apache-2.0
#include "provision/images/apt_system.h"

#include "base/io/files.h"
#include "base/io/process.h"
#include "inventory/model/images.h"
#include "provision/images/apt_sources.h"
#include "provision/images/fetch/proxy_environment.h"
#include "provision/images/recipes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <unistd.h>
#include <algorithm>

namespace muster::provision {

namespace {

constexpr std::chrono::minutes kBootstrapLimit{30};
/// Where each package's scripts run by emulation, ten to twenty times slower.
constexpr std::chrono::hours kEmulatedBootstrapLimit{4};
constexpr std::size_t kMaxHandlerBytes = 4096;

/// Package names, and "name=version" pins. Anything else could be an option or an apt pattern.
Result<void> checkPackage(const std::string& package) {
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.=:~_";
  const bool fine = package.size() >= 2 && std::isalnum(static_cast<unsigned char>(package[0])) &&
                    package.find_first_not_of(kAllowed) == std::string::npos;
  if (!fine)
    return fail(
        ErrorCode::InvalidInput,
        fmt::format("\"{}\" is not the name of a package (write name or name=version)", package));
  return {};
}

/// Debian's and Ubuntu's kernels, and the packages that stand for the newest of a flavour.
bool bringsKernel(const std::string& package) {
  constexpr std::string_view kKernels[] = {"linux-image-",     "linux-generic", "linux-virtual",
                                           "linux-lowlatency", "linux-nvidia",  "linux-kvm"};
  return std::any_of(std::begin(kKernels), std::end(kKernels),
                     [&package](std::string_view kernel) { return package.starts_with(kernel); });
}

/// Releases in which systemd-resolved is a part of the package systemd.
bool hasResolvedInSystemd(const std::string& suite) {
  constexpr std::string_view kSuites[] = {"buster", "bullseye", "bionic", "focal", "jammy"};
  return std::find(std::begin(kSuites), std::end(kSuites), suite) != std::end(kSuites);
}

/// Debian names its kernel after the processor, Ubuntu after its flavour.
const char* kernelOf(const std::string& suite, Architecture architecture) {
  constexpr std::string_view kUbuntu[] = {"bionic", "focal",  "jammy",
                                          "noble",  "plucky", "questing"};
  return std::find(std::begin(kUbuntu), std::end(kUbuntu), suite) != std::end(kUbuntu)
             ? "linux-generic"
             : traitsOf(architecture).debian_kernel;
}

Result<void> addArchives(const std::vector<inventory::PackageArchive>& archives,
                         std::vector<std::string>& lines) {
  for (const auto& archive : archives) {
    TRY(key, archiveKey(archive));
    const auto where = archive.suite.empty() ? std::string("./")
                                             : fmt::format("{} {}", archive.suite,
                                                           fmt::join(archive.components, " "));
    lines.push_back(fmt::format("deb [signed-by={}] {} {}", key.string(), archive.url, where));
  }
  return {};
}

}  // namespace

// mmdebstrap ignores SIGTERM, and its children know nothing of who began it. As the first process
// of a namespace its end is the end of all of them; unshare's own end is its.
io::Command inOwnNamespaces(std::vector<std::string> words) {
  io::Command command;
  command.program = "unshare";
  command.args = {"--mount", "--propagation",     "private",      "--pid",
                  "--fork",  "--kill-child=KILL", "--mount-proc", "--"};
  command.args.insert(command.args.end(), words.begin(), words.end());
  return command;
}

std::vector<std::string> packagesFor(Architecture architecture, std::vector<std::string> packages) {
  if (architecture == Architecture::Amd64) return packages;
  constexpr std::string_view kOwn = "amd64";
  std::erase(packages, "grub-pc-bin");  // of BIOS
  for (auto& package : packages)
    for (const std::string_view family : {"linux-image-", "grub-efi-"})
      if (const auto at = package.find(kOwn);
          package.starts_with(family) && at != std::string::npos)
        package.replace(at, kOwn.size(), traitsOf(architecture).name);
  return packages;
}

Result<void> checkRunsProgramsOf(Architecture architecture) {
  if (architecture == kBuiltFor) return {};
  const auto& wanted = traitsOf(architecture);
  const auto handler =
      std::filesystem::path("/proc/sys/fs/binfmt_misc") / (std::string("qemu-") + wanted.uname);
  const auto text = io::readFile(handler, kMaxHandlerBytes);
  const bool emulates = text && text->starts_with("enabled");
  // mmdebstrap asks it.
  if (emulates && ::access("/usr/bin/arch-test", X_OK) == 0) return {};
  return fail(
      ErrorCode::Unavailable,
      fmt::format("installing packages for {} takes {}; install qemu-user-static and arch-test (a "
                  "container has no binfmt_misc: build the image on another machine, and import "
                  "it)",
                  wanted.name,
                  emulates ? "the program arch-test" : "a kernel that starts its programs"));
}

Result<std::vector<std::string>> aptPackagesOf(const inventory::ImageBuild& build, bool ssh,
                                               Architecture architecture) {
  auto packages = packagesFor(architecture, recipeLines("node/packages"));
  if (hasResolvedInSystemd(build.suite)) std::erase(packages, "systemd-resolved");
  packages.insert(packages.end(), build.packages.begin(), build.packages.end());
  if (ssh) packages.push_back("openssh-server");
  if (std::none_of(packages.begin(), packages.end(), bringsKernel))
    packages.emplace_back(kernelOf(build.suite, architecture));
  for (const auto& package : packages) TRY_OK(checkPackage(package));
  const bool suite_fine =
      !build.suite.empty() && std::all_of(build.suite.begin(), build.suite.end(),
                                          [](unsigned char c) { return std::isalnum(c); });
  if (!suite_fine)
    return fail(
        ErrorCode::InvalidInput,
        fmt::format("\"{}\" is not the name of a Debian or Ubuntu release (such as bookworm)",
                    build.suite));
  return packages;
}

Result<std::vector<std::string>> aptPackagesOf(const inventory::RamOsSpec& spec,
                                               Architecture architecture) {
  auto packages = recipeLines("ramos/packages");
  if (!spec.kernel.empty()) {
    std::erase_if(packages, bringsKernel);
    packages.push_back(spec.kernel);
  }
  packages.insert(packages.end(), spec.packages.begin(), spec.packages.end());
  for (const auto& package : packages) TRY_OK(checkPackage(package));
  return packagesFor(architecture, std::move(packages));
}

Result<std::vector<std::string>> aptLinesOf(const inventory::ImageBuild& build) {
  if (build.mirror.find_first_of(" \t\n") != std::string::npos)
    return fail(ErrorCode::InvalidInput, "a mirror is one URL");
  if (!build.mirror.empty())
    return std::vector<std::string>{fmt::format("deb {} {} main", build.mirror, build.suite)};
  if (build.archives.empty())
    return hostDebianLines("/etc/apt", build.suite);  // none: mmdebstrap knows Debian's own
  std::vector<std::string> lines;
  TRY_OK(addArchives(build.archives, lines));
  return lines;
}

Result<std::vector<std::string>> aptLinesOf(const inventory::RamOsSpec& spec,
                                            std::string_view suite) {
  auto lines = hostDebianLines("/etc/apt", suite);
  if (spec.archives.empty()) return lines;  // none: mmdebstrap knows Debian's own
  if (lines.empty())
    lines = {fmt::format("deb http://deb.debian.org/debian {} main", suite),
             fmt::format("deb http://deb.debian.org/debian {}-updates main", suite),
             fmt::format("deb http://deb.debian.org/debian-security {}-security main", suite)};
  TRY_OK(addArchives(spec.archives, lines));
  return lines;
}

Result<void> installAptSystem(AptSystem system) {
  if (::geteuid() != 0)
    return fail(
        ErrorCode::Denied,
        "building images needs root (mmdebstrap makes device nodes and owners); run it with sudo");
  auto command = inOwnNamespaces({"mmdebstrap", "--mode=root", "--variant=" + system.variant,
                                  "--format=directory", "--aptopt=Acquire::Languages \"none\"",
                                  "--aptopt=Acquire::Retries \"3\"",
                                  "--aptopt=APT::Install-Recommends \"false\"",
                                  "--dpkgopt=" + (system.recipes / "dpkg.cfg").string(),
                                  fmt::format("--include={}", fmt::join(system.packages, ","))});
  const bool is_foreign = system.architecture != kBuiltFor;
  if (is_foreign)
    command.args.push_back(std::string("--architectures=") + traitsOf(system.architecture).name);
  // Unpacked alone, even what every system has must be named.
  if (system.unpack_only) command.args.emplace_back("--include=?essential");
  command.args.insert(command.args.end(), system.options.begin(), system.options.end());
  command.args.push_back(system.suite);
  command.args.push_back(system.root.string());
  command.args.insert(command.args.end(), system.lines.begin(), system.lines.end());
  command.env = std::move(system.env);
  command.env.merge(proxyEnvironment());
  command.env["MUSTER_RECIPES"] = system.recipes.string();
  command.env["MUSTER_OUT"] = system.out.string();
  command.env["SOURCE_DATE_EPOCH"] = std::to_string(
      kImageEpochSeconds);  // initrd, caches, days of passwords: the packages' own scripts heed it
  command.env["TMPDIR"] = system.out.string();
  const bool is_emulated = is_foreign && !system.unpack_only;
  command.timeout = is_emulated ? kEmulatedBootstrapLimit : kBootstrapLimit;
  auto done = io::runChecked(command);
  if (!done) return fail(std::move(done).error().within("building a system of " + system.suite));
  return {};
}

}  // namespace muster::provision
