// The real SystemBuilder: mmdebstrap for packages, mke2fs for the file system, qemu-img for imports.
#include "base/io/crypto.h"
#include "base/io/files.h"
#include "base/io/process.h"
#include "provision/image/apt_sources.h"
#include "provision/image/image_import.h"
#include "provision/image/live_image.h"
#include "provision/image/recipes.h"
#include "provision/image/system_builder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ctime>
#include <unistd.h>

namespace muster::provision {

namespace {

constexpr std::chrono::minutes kBootstrapLimit{30};
constexpr std::chrono::minutes kPackLimit{10};
constexpr const char* kRamOsSuite = "bookworm";

/// Says how long a step took when it goes out of scope of the caller's interest.
class Step {
 public:
  Step(const Say& say, std::string what) : say_(say), what_(std::move(what)) { say_(what_ + " …"); }
  void done(const std::string& result = {}) const {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    say_(fmt::format("{}: {:.0f} s{}{}", what_, seconds, result.empty() ? "" : ", ", result));
  }

 private:
  const Say& say_;
  std::string what_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Package names, and "name=version" pins. Anything else could be an option or an apt pattern.
Result<void> checkPackage(const std::string& package) {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.=:~_";
  const bool fine = package.size() >= 2 && std::isalnum(static_cast<unsigned char>(package[0])) && package.find_first_not_of(kAllowed) == std::string::npos;
  if (!fine) return fail(ErrorCode::InvalidInput, fmt::format("\"{}\" is not the name of a package (write name or name=version)", package));
  return {};
}

/// The proxy that this machine's apt uses, for mmdebstrap's own apt; never stored in the image.
std::map<std::string, std::string> proxyEnvironment() {
  std::map<std::string, std::string> env;
  for (const char* scheme : {"http", "https"}) {
    const std::string name = std::string(scheme) + "_proxy";
    if (::getenv(name.c_str()) != nullptr) continue;
    io::Command ask{.program = "apt-config", .args = {"shell", "P", fmt::format("Acquire::{}::Proxy", scheme)}};
    const auto answer = io::runChecked(ask);
    if (!answer) continue;
    const auto open = answer->find('\''), close = answer->rfind('\'');
    if (open != std::string::npos && close > open + 1) env[name] = answer->substr(open + 1, close - open - 1);
  }
  return env;
}

struct Bootstrap {
  std::string variant, suite;
  std::vector<std::string> packages, mirrors, options;
  std::map<std::string, std::string> env;
  std::filesystem::path root, recipes, out;
};

Result<void> bootstrap(Bootstrap job) {
  if (::geteuid() != 0) return fail(ErrorCode::Denied, "building images needs root (mmdebstrap makes device nodes and owners); run it with sudo");
  io::Command command;
  // A mount namespace of its own: should mmdebstrap be killed, /proc and /sys inside the folder are gone with it.
  command.program = "unshare";
  command.args = {"--mount", "--propagation", "private", "mmdebstrap", "--mode=root", "--variant=" + job.variant, "--format=directory",
                  "--aptopt=Acquire::Languages \"none\"", "--aptopt=Acquire::Retries \"3\"", "--aptopt=APT::Install-Recommends \"false\"",
                  "--dpkgopt=" + (job.recipes / "dpkg.cfg").string(), fmt::format("--include={}", fmt::join(job.packages, ","))};
  command.args.insert(command.args.end(), job.options.begin(), job.options.end());
  command.args.push_back(job.suite);
  command.args.push_back(job.root.string());
  command.args.insert(command.args.end(), job.mirrors.begin(), job.mirrors.end());
  command.env = std::move(job.env);
  command.env.merge(proxyEnvironment());
  command.env["MUSTER_RECIPES"] = job.recipes.string();
  command.env["MUSTER_OUT"] = job.out.string();
  command.env["TMPDIR"] = job.out.string();
  command.timeout = kBootstrapLimit;
  auto done = io::runChecked(command);
  if (!done) return fail(std::move(done).error().within("building a Debian system"));
  return {};
}

class DebianBuilder final : public SystemBuilder {
 public:
  Result<void> buildRootFs(const inventory::Image& image, const std::filesystem::path& work, const std::filesystem::path& image_file,
                           const Say& say) override {
    if (const auto* import = std::get_if<inventory::ImageImport>(&image.source)) return importImage(*import, image.kind, work, image_file, say);
    const auto& build = std::get<inventory::ImageBuild>(image.source);
    TRY(packages, packagesOf(build, !image.authorized_keys.empty()));
    const auto recipes = work / "recipes", root = work / "root";
    TRY_OK(writeRecipes(recipes));
    auto mirrors = build.mirror.empty() ? hostDebianLines("/etc/apt", build.suite)
                                        : std::vector<std::string>{fmt::format("deb {} {} main", build.mirror, build.suite)};

    const bool live = image.kind == inventory::ImageKind::Live;
    const auto since = static_cast<std::int64_t>(std::time(nullptr));
    const Step install(say, fmt::format("{}: installing {} packages of Debian {}", image.name, packages.size(), build.suite));
    TRY_OK(bootstrap({.variant = "minbase", .suite = build.suite, .packages = packages, .mirrors = std::move(mirrors),
                      .options = {"--dpkgopt=" + (recipes / "node/modules-left-out.cfg").string(),
                                  "--essential-hook=" + (recipes / "node/essential.sh").string(),
                                  "--customize-hook=" + (recipes / "node/customize.sh").string()},
                      .env = live ? std::map<std::string, std::string>{{"INITRD", "No"}} : std::map<std::string, std::string>(), .root = root, .recipes = recipes, .out = work}));
    install.done();

    const Step file_system(say, image.name + ": making the file system");
    TRY_OK(live ? makeSquashfs(root, image_file, since) : makeExt4(root, image_file, since));
    std::error_code ignored;
    file_system.done(fmt::format("{} MiB", std::filesystem::file_size(image_file, ignored) >> 20));
    return {};
  }

  Result<void> buildRamOs(const std::filesystem::path& work, const std::filesystem::path& out, const Say& say) override {
    const auto recipes = work / "recipes", root = work / "root";
    TRY_OK(writeRecipes(recipes));
    const Step install(say, "RAM OS: installing packages");
    TRY_OK(bootstrap({.variant = "essential", .suite = kRamOsSuite, .packages = recipeLines("ramos/packages"),
                      .mirrors = hostDebianLines("/etc/apt", kRamOsSuite),
                      .options = {"--customize-hook=" + (recipes / "ramos/customize.sh").string()},
                      .env = {{"INITRD", "No"}}, .root = root, .recipes = recipes, .out = out}));
    install.done();

    const Step pack(say, "RAM OS: packing");
    io::Command command{.program = (recipes / "ramos/pack.sh").string(), .args = {root.string(), (out / "initrd.img").string()}};
    command.timeout = kPackLimit;
    if (auto done = io::runChecked(command); !done) return fail(std::move(done).error().within("packing the RAM OS"));
    std::error_code ignored;
    pack.done(fmt::format("{} MiB", std::filesystem::file_size(out / "initrd.img", ignored) >> 20));
    return {};
  }

 private:
  static Result<std::vector<std::string>> packagesOf(const inventory::ImageBuild& build, bool ssh) {
    auto packages = recipeLines("node/packages");
    packages.insert(packages.end(), build.packages.begin(), build.packages.end());
    if (ssh) packages.push_back("openssh-server");
    const bool kernel = std::any_of(packages.begin(), packages.end(), [](const auto& p) { return p.starts_with("linux-image-"); });
    if (!kernel) packages.push_back("linux-image-amd64");
    for (const auto& package : packages) TRY_OK(checkPackage(package));
    const bool suite_fine = !build.suite.empty() && std::all_of(build.suite.begin(), build.suite.end(), [](unsigned char c) { return std::isalnum(c); });
    if (!suite_fine) return fail(ErrorCode::InvalidInput, fmt::format("\"{}\" is not the name of a Debian release (such as bookworm)", build.suite));
    if (build.mirror.find_first_of(" \t\n") != std::string::npos) return fail(ErrorCode::InvalidInput, "a mirror is one URL");
    return packages;
  }
};

}  // namespace

std::unique_ptr<SystemBuilder> makeDebianBuilder() { return std::make_unique<DebianBuilder>(); }

}  // namespace muster::provision
