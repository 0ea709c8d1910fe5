// SPDX-License-Identifier: Apache-2.0
// The real SystemBuilder: mmdebstrap and dnf for packages, mke2fs for the file system, qemu-img for
// imports.
#include "base/io/files.h"
#include "base/io/process.h"
#include "inventory/model/images.h"
#include "provision/images/apt_sources.h"
#include "provision/images/apt_system.h"
#include "provision/images/dnf_system.h"
#include "provision/images/image_import.h"
#include "provision/images/live_image.h"
#include "provision/images/recipes.h"
#include "provision/images/startable.h"
#include "provision/images/step.h"
#include "provision/images/system_builder.h"
#include "provision/images/umask_guard.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ctime>

namespace muster::provision {

namespace {

constexpr std::chrono::minutes kPackLimit{10};
constexpr const char* kRamOsSuite = "bookworm";

class PackageBuilder final : public SystemBuilder {
 public:
  explicit PackageBuilder(std::filesystem::path fetch_socket)
      : fetch_socket_(std::move(fetch_socket)) {}

  Result<void> buildRootFs(const inventory::Image& image, const std::filesystem::path& work,
                           const std::filesystem::path& image_file, const Say& say) override {
    const UmaskGuard modes(kTreeUmask);
    if (const auto* import = std::get_if<inventory::ImageImport>(&image.source))
      return importImage(*import, image.kind, work, image_file, say, image.arch);
    const auto& build = std::get<inventory::ImageBuild>(image.source);
    const auto recipes = work / "recipes", root = work / "root";
    TRY_OK(writeRecipes(recipes));
    const bool live = image.kind == inventory::ImageKind::Live;
    const auto since = static_cast<std::int64_t>(std::time(nullptr));
    const bool dnf = !build.release.empty(), ssh = !image.authorized_keys.empty();
    TRY_OK(checkRunsProgramsOf(image.arch));
    const Step install(say, fmt::format("{}: installing the packages of {}", image.name,
                                        dnf ? "release " + build.release : build.suite));
    TRY_OK(dnf ? installDnfSystem(
                     {build, dnfPackagesOf(build, ssh), root, recipes, work, fetch_socket_})
               : installApt(image, ssh, recipes, work));
    install.done();
    TRY_OK(checkStarts(root, image));

    const Step file_system(say, image.name + ": making the file system");
    TRY_OK(live ? makeSquashfs(root, image_file, since) : makeExt4(root, image_file, since));
    std::error_code ignored;
    file_system.done(fmt::format("{} MiB", std::filesystem::file_size(image_file, ignored) >> 20));
    return {};
  }

  Result<void> buildRamOs(const inventory::RamOsSpec& spec, Architecture architecture,
                          const std::filesystem::path& work, const std::filesystem::path& out,
                          const Say& say) override {
    const UmaskGuard modes(kTreeUmask);
    const auto recipes = work / "recipes", root = work / "root";
    TRY_OK(writeRecipes(recipes));
    TRY(packages, aptPackagesOf(spec, architecture));
    TRY(lines, aptLinesOf(spec, kRamOsSuite));
    const std::string name = fmt::format("RAM OS for {}", traitsOf(architecture).name);
    const Step install(say, name + ": installing packages");
    const auto hook = [&recipes](const char* when, const char* script) {
      return fmt::format("--{}-hook={}", when, (recipes / script).string());
    };
    AptSystem system{.variant = "essential",
                     .suite = kRamOsSuite,
                     .packages = std::move(packages),
                     .lines = std::move(lines),
                     .options = {},
                     .env = {{"INITRD", "No"},
                             {"MUSTER_ARCH", traitsOf(architecture).name},
                             {"MUSTER_MODULES", fmt::format("{}", fmt::join(spec.modules, "\n"))}},
                     .root = root,
                     .recipes = recipes,
                     .out = out,
                     .architecture = architecture,
                     .unpack_only = architecture != kBuiltFor};
    if (system.unpack_only) {
      system.variant = "extract";  // whose last hook is of this name
      system.options = {hook("setup", "ramos/merged-usr.sh"),
                        hook("extract", "ramos/configure-unpacked.sh"),
                        hook("extract", "ramos/customize.sh")};
    } else {
      system.options = {hook("customize", "ramos/customize.sh")};
    }
    TRY_OK(installAptSystem(std::move(system)));
    install.done();

    const Step pack(say, name + ": packing");
    io::Command command{.program = (recipes / "ramos/pack.sh").string(),
                        .args = {root.string(), (out / "initrd.img").string()}};
    command.timeout = kPackLimit;
    if (auto done = io::runChecked(command); !done)
      return fail(std::move(done).error().within("packing the RAM OS"));
    std::error_code ignored;
    pack.done(fmt::format("{} MiB", std::filesystem::file_size(out / "initrd.img", ignored) >> 20));
    return {};
  }

 private:
  /// A package list can leave out what a machine starts by, as an import can.
  static Result<void> checkStarts(const std::filesystem::path& root,
                                  const inventory::Image& image) {
    const auto tree = openFolderTree(root);
    Obstacles obstacles;
    obstacles = image.kind == inventory::ImageKind::Live ? inMemoryObstacles(*tree)
                                                         : kernelObstacles(*tree, image.arch);
    const auto userspace = userspaceObstacles(*tree, image.arch);
    obstacles.insert(obstacles.end(), userspace.begin(), userspace.end());
    if (auto starts = refuseObstacles(obstacles); !starts)
      return fail(std::move(starts).error().within("image " + image.name));
    return {};
  }
  static Result<void> installApt(const inventory::Image& image, bool ssh,
                                 const std::filesystem::path& recipes,
                                 const std::filesystem::path& work) {
    const auto& build = std::get<inventory::ImageBuild>(image.source);
    TRY(packages, aptPackagesOf(build, ssh, image.arch));
    TRY(lines, aptLinesOf(build));
    AptSystem system{.variant = "minbase",
                     .suite = build.suite,
                     .packages = std::move(packages),
                     .lines = std::move(lines),
                     .options = {},
                     .env = {},
                     .root = work / "root",
                     .recipes = recipes,
                     .out = work,
                     .architecture = image.arch};
    system.options = {"--dpkgopt=" + (recipes / "node/modules-left-out.cfg").string(),
                      "--essential-hook=" + (recipes / "node/essential.sh").string(),
                      "--customize-hook=" + (recipes / "node/customize.sh").string()};
    if (image.kind == inventory::ImageKind::Live) system.env["INITRD"] = "No";
    return installAptSystem(std::move(system));
  }

  std::filesystem::path fetch_socket_;
};

}  // namespace

std::unique_ptr<SystemBuilder> makePackageBuilder(std::filesystem::path fetch_socket) {
  return std::make_unique<PackageBuilder>(std::move(fetch_socket));
}

}  // namespace muster::provision
