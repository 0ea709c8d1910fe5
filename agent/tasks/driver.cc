// SPDX-License-Identifier: Apache-2.0
// InstallDriver: packages at their pins from the controller's repository, modules loaded now and at
// every boot, soft-RoCE device when rdma_rxe is asked for; then the running values are read and
// must fit.
//
// params {name?, packages: ["name" | "name=version"], repository_url?, repository_ca_pem?,
// modules?, verify?: {probe: glob}, netdev?} and the settings of os_settings.h {files?, archives?,
// services?, kernel?, build?}. Where only a restart brings what is wanted, the machine is restarted
// once and the task with it: the agent tells of it after the restart as one to be tried again.
//
// The repository is not signed: what vouches for it is the connection. So its URL must be https,
// its server must prove itself by the root that the controller names in this task (which came over
// mutual TLS), and only then may apt be told `trusted=yes`. The controller gives its repositories
// to its nodes only, so apt shows the node's certificate there. The source, the root and the copy
// of the node's key, which only apt's own user can read, are there for the run only.
#include "agent/tasks/host_settings.h"
#include "agent/tasks/os_settings.h"
#include "agent/tasks/package_manager.h"
#include "agent/tasks/tasks.h"
#include "base/io/crypto.h"
#include "base/io/files.h"
#include "base/io/http.h"
#include "base/json_output.h"
#include "base/log.h"
#include "wire/task_params.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <sstream>

#include <fnmatch.h>
#include <unistd.h>

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kUpdateLimit{120};
constexpr std::chrono::seconds kInstallLimit{1200};
constexpr std::chrono::seconds kToolLimit{30};
constexpr std::size_t kMaxPasswdBytes = 1u << 20;
constexpr std::string_view kLower = "abcdefghijklmnopqrstuvwxyz0123456789";
constexpr std::string_view kRxeDevice = "rxe0";

using Params = wire::DriverParams;

bool isWord(std::string_view text, std::string_view extra) {
  if (text.empty() || !std::isalnum(static_cast<unsigned char>(text.front()))) return false;
  return std::ranges::all_of(text, [&](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || extra.find(c) != std::string_view::npos;
  });
}

bool isPackage(const std::string& text) {
  auto equals = text.find('=');
  auto name = text.substr(0, equals);
  bool lower = name.find_first_not_of(std::string(kLower) + "+-.:") == std::string::npos;
  return lower && isWord(name, "+-.:") &&
         (equals == std::string::npos || isWord(text.substr(equals + 1), "+-.:~"));
}

bool isRepository(const std::string& url) {
  auto parsed = io::Url::parse(url);
  return parsed && parsed->scheme == "https" && std::ranges::none_of(url, [](unsigned char c) {
           return c <= ' ' || c >= 0x7f || c == '[' || c == ']';
         });
}

/// ".../repo/rdma" → "rdma"
std::string lastSegment(std::string url) {
  while (!url.empty() && url.back() == '/') url.pop_back();
  auto slash = url.rfind('/');
  return slash == std::string::npos ? url : url.substr(slash + 1);
}

/// With a name where it had none. Errors: InvalidInput
Result<Params> checked(Params params) {
  const auto wrong = [](const char* key, const std::string& why) {
    return fail(ErrorCode::InvalidInput, fmt::format("params.{} {}", key, why));
  };
  if (params.name.empty())
    params.name = params.repository_url.empty() ? "driver" : lastSegment(params.repository_url);
  if (!isWord(params.name, "+-._")) return wrong("name", "is no name: \"" + params.name + "\"");
  if (!params.repository_url.empty() && !isRepository(params.repository_url))
    return wrong("repository_url",
                 "is no plain https URL; packages are installed as root, so their server must "
                 "prove who it is");
  if (!params.repository_url.empty() && !io::describeCertificate(params.repository_ca_pem))
    return wrong("repository_ca_pem",
                 "is no certificate; without it the packages cannot be verified");
  if (!params.netdev.empty() && !isWord(params.netdev, ".-_"))
    return wrong("netdev", "is no name of a network device");
  for (const auto& package : params.packages)
    if (!isPackage(package)) return wrong("packages", "has no package's name: \"" + package + "\"");
  for (const auto& module : params.modules)
    if (!isWord(module, "-_")) return wrong("modules", "has no module's name: \"" + module + "\"");
  return params;
}

// ---- packages

/// True when every package is there at its pin; then apt is not asked at all.
Task<bool> allInstalled(TaskTools tools, std::vector<std::string> packages) {
  std::set<std::string> probes;
  for (const auto& package : packages)
    probes.insert("package." + package.substr(0, package.find('=')));
  auto versions = co_await readProbes(tools, probes);
  for (const auto& package : packages) {
    auto equals = package.find('=');
    auto version = versions.find("package." + package.substr(0, equals));
    if (version == versions.end()) co_return false;
    if (equals != std::string::npos && version->second != package.substr(equals + 1))
      co_return false;
  }
  co_return true;
}

Async<std::string> packageTool(TaskTools tools, std::string program, std::vector<std::string> args,
                               std::chrono::seconds limit) {
  io::Command command;
  command.program = program;
  command.args = std::move(args);
  command.env = {{"DEBIAN_FRONTEND", "noninteractive"}, {"LC_ALL", "C"}, {"NEEDRESTART_MODE", "a"}};
  command.timeout = limit;
  CO_TRY(exit, co_await tools.processes.run(std::move(command)));
  if (exit.code == 0) co_return exit.out;
  std::string output = exit.err.empty() ? exit.out : exit.err;
  if (output.size() > 2000) output = "…" + output.substr(output.size() - 2000);
  co_return fail(ErrorCode::Unavailable,
                 fmt::format("{} ended with {}: {}", program, exit.code, output));
}

/// Of the system below `root`, which need not be the one that runs.
std::optional<uid_t> userId(const fs::path& root, std::string_view user) {
  const auto users = io::readFile(root / "etc/passwd", kMaxPasswdBytes);
  if (!users) return std::nullopt;
  std::istringstream lines(*users);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(std::string(user) + ":")) continue;
    const auto mark = line.find(':', user.size() + 1);
    uid_t id = 0;
    if (mark == std::string::npos) return std::nullopt;
    const auto [end, error] =
        std::from_chars(line.data() + mark + 1, line.data() + line.size(), id);
    return error == std::errc() && *end == ':' ? std::optional(id) : std::nullopt;
  }
  return std::nullopt;
}

/// The controller's repository as a source of apt, with the root that its server must prove itself
/// by. Gone with this object: neither an unsigned source nor a root of ours stays in the machine's
/// configuration.
class RepositorySource {
 public:
  static Result<std::unique_ptr<RepositorySource>> write(const TaskTools& tools,
                                                         const Params& params) {
    TRY(url, io::Url::parse(params.repository_url));
    std::unique_ptr<RepositorySource> source(new RepositorySource);
    source->list_ = "sources.list.d/muster-" + params.name + ".list";
    source->list_file_ = tools.root / "etc/apt" / source->list_;
    source->ca_file_ = tools.root / "etc/apt" / ("muster-" + params.name + "-ca.pem");
    source->host_ = url.host;
    TRY_OK(io::makeDirs(source->list_file_.parent_path()));
    TRY_OK(source->writeIdentity(tools, params.name));
    TRY_OK(io::writeFileAtomic(
        source->ca_file_, params.repository_ca_pem));  // readable for apt's own user, who fetches
    TRY_OK(io::writeFileAtomic(source->list_file_,
                               "deb [trusted=yes] " + params.repository_url + " ./\n"));
    return source;
  }
  ~RepositorySource() {
    std::error_code ignored;
    if (!list_file_.empty()) fs::remove(list_file_, ignored);
    if (!ca_file_.empty()) fs::remove(ca_file_, ignored);
    if (!key_file_.empty()) fs::remove(key_file_, ignored);
    if (!certificate_file_.empty()) fs::remove(certificate_file_, ignored);
  }
  RepositorySource(const RepositorySource&) = delete;
  RepositorySource& operator=(const RepositorySource&) = delete;

  const std::string& list() const { return list_; }
  /// For this host only: other sources keep the trust that the system has for them, and see nothing
  /// of the node's key.
  void addTrust(std::vector<std::string>& args) const {
    args.insert(args.end(),
                {"-o", fmt::format("Acquire::https::{}::CAInfo={}", host_, ca_file_.string()),
                 // A proxy of the site neither reaches it nor may look into it.
                 "-o", fmt::format("Acquire::https::Proxy::{}=DIRECT", host_)});
    if (key_file_.empty()) return;
    args.insert(args.end(), {"-o", fmt::format("Acquire::https::{}::SslCert={}", host_,
                                               certificate_file_.string())});
    args.insert(args.end(),
                {"-o", fmt::format("Acquire::https::{}::SslKey={}", host_, key_file_.string())});
  }

 private:
  RepositorySource() = default;
  Result<void> writeIdentity(const TaskTools& tools, const std::string& name) {
    if (!tools.identity) return {};
    TRY(identity, tools.identity());
    certificate_file_ = tools.root / "etc/apt" / ("muster-" + name + "-client.pem");
    key_file_ = tools.root / "etc/apt" / ("muster-" + name + "-client.key");
    TRY_OK(io::writeFileAtomic(certificate_file_, identity.certificate_pem));
    TRY_OK(io::writeFileAtomic(key_file_, identity.key_pem.reveal(), 0600));
    const auto fetcher = userId(tools.root, "_apt");
    if (fetcher && ::chown(key_file_.c_str(), *fetcher, static_cast<gid_t>(-1)) != 0)
      return fail(ErrorCode::Internal, fmt::format("cannot give {} to apt's user: {}",
                                                   key_file_.string(), std::strerror(errno)));
    return {};
  }
  std::string list_, host_;
  fs::path list_file_, ca_file_, certificate_file_, key_file_;
};

/// Lists of signed archives; the image's own sources need not be reachable.
Async<void> readArchives(TaskTools tools, OsSettings settings) {
  for (const auto& archive : settings.archives) {
    std::vector<std::string> update = {
        "update",
        "-o",
        fmt::format("Dir::Etc::sourcelist=sources.list.d/muster-{}-{}.sources", settings.driver,
                    archive.name),
        "-o",
        "Dir::Etc::sourceparts=-",
        "-o",
        "APT::Get::List-Cleanup=0",
        "-o",
        "Acquire::Retries=3",
        "-o",
        "APT::Update::Error-Mode=any"};
    CO_TRY_OK(co_await packageTool(tools, "apt-get", std::move(update), kUpdateLimit));
  }
  co_return Result<void>();
}

/// dnf takes an older version only when it is told to go down.
Async<void> installByDnf(TaskTools tools, Params params) {
  for (const char* verb : {"install", "downgrade"}) {
    std::vector<std::string> args = {verb, "-y", "--setopt=install_weak_deps=False",
                                     "--allowerasing"};
    for (auto& word : packageWords(PackageManager::Dnf, params.packages))
      args.push_back(std::move(word));
    CO_TRY_OK(co_await packageTool(tools, "dnf", std::move(args), kInstallLimit));
    if (co_await allInstalled(tools, params.packages)) break;
  }
  co_return Result<void>();
}

/// DKMS builds for the kernel that runs only when that kernel's headers are there.
std::string headersPackage(const TaskTools& tools) {
  auto release = io::readFile(tools.root / "proc/sys/kernel/osrelease", 256);
  if (!release) return {};
  release->erase(release->find_last_not_of(" \n") + 1);
  return (packageManager(tools.root) == PackageManager::Apt ? "linux-headers-" : "kernel-devel-") +
         *release;
}

Async<void> installPackages(TaskTools tools, Params params, OsSettings settings,
                            TaskContextPtr context) {
  if (packageManager(tools.root) == PackageManager::Dnf) {
    if (!params.repository_url.empty())
      co_return fail(
          ErrorCode::InvalidInput,
          "a folder with an apt repository is of no use to dnf; declare archives instead");
    context->progress(0.3, fmt::format("installing {}", fmt::join(params.packages, " ")));
    co_return co_await installByDnf(tools, params);
  }
  CO_TRY_OK(co_await readArchives(tools, settings));
  std::unique_ptr<RepositorySource> source;
  if (!params.repository_url.empty()) {
    CO_TRY(written, RepositorySource::write(tools, params));
    source = std::move(written);
    context->progress(0.1, "reading the list of " + params.repository_url);
    std::vector<std::string> update = {"update",
                                       "-o",
                                       "Dir::Etc::sourcelist=" + source->list(),
                                       "-o",
                                       "Dir::Etc::sourceparts=-",
                                       "-o",
                                       "APT::Get::List-Cleanup=0",
                                       "-o",
                                       "Acquire::Retries=3",
                                       "-o",
                                       "APT::Update::Error-Mode=any"};
    source->addTrust(update);
    CO_TRY_OK(co_await packageTool(tools, "apt-get", std::move(update), kUpdateLimit));
  }
  std::vector<std::string> install = {"install",
                                      "-y",
                                      "--no-install-recommends",
                                      "--allow-downgrades",
                                      "--allow-change-held-packages",
                                      "-o",
                                      "Dpkg::Options::=--force-confdef",
                                      "-o",
                                      "Dpkg::Options::=--force-confold",
                                      "-o",
                                      "DPkg::Lock::Timeout=120"};
  if (source) source->addTrust(install);
  install.insert(install.end(), params.packages.begin(), params.packages.end());
  context->progress(0.3, fmt::format("installing {}", fmt::join(params.packages, " ")));
  CO_TRY_OK(co_await packageTool(tools, "apt-get", std::move(install), kInstallLimit));
  co_return Result<void>();
}

// ---- modules and soft-RoCE

Async<void> loadModules(TaskTools tools, Params params) {
  std::string names;
  for (const auto& module : params.modules) {
    names += module + "\n";
    std::vector<std::string> args = {module};
    CO_TRY_OK(co_await runTool(tools, "modprobe", std::move(args), kToolLimit));
  }
  CO_TRY_OK(io::makeDirs(tools.root / "etc/modules-load.d"));
  co_return io::writeFileAtomic(
      tools.root / "etc/modules-load.d" / ("muster-" + params.name + ".conf"), names);
}

/// The NIC with the provisioning MAC; without that knowledge the first real one that has a link.
std::string chooseNetdev(const TaskTools& tools) {
  std::error_code error;
  std::vector<fs::path> nets;
  for (const auto& entry : fs::directory_iterator(tools.root / "sys/class/net", error))
    nets.push_back(entry.path());
  std::sort(nets.begin(), nets.end());
  std::string linked;
  for (const auto& net : nets) {
    if (!fs::exists(net / "device", error)) continue;
    auto address = io::readFile(net / "address", 64);
    if (address && !tools.provisioning_mac.empty() && address->starts_with(tools.provisioning_mac))
      return net.filename();
    auto state = io::readFile(net / "operstate", 64);
    if (linked.empty() && state && state->starts_with("up")) linked = net.filename();
  }
  return linked;
}

std::string rxeUnit(const std::string& netdev) {
  return fmt::format(
      "# Written by muster: the soft-RoCE device, also after a restart.\n"
      "[Unit]\nDescription=soft-RoCE device {0} on {1}\nAfter=systemd-modules-load.service "
      "sys-subsystem-net-devices-{2}.device\n"
      "Wants=sys-subsystem-net-devices-{2}.device\n\n"
      "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStartPre=modprobe rdma_rxe\n"
      "ExecStart=sh -c 'test -e /sys/class/infiniband/{0} || rdma link add {0} type rxe netdev "
      "{1}'\n\n"
      "[Install]\nWantedBy=multi-user.target\n",
      kRxeDevice, netdev, [&] {
        std::string escaped = netdev;  // as systemd-escape would: '-' in a name is \x2d
        for (std::size_t at = 0; (at = escaped.find('-', at)) != std::string::npos; at += 4)
          escaped.replace(at, 1, "\\x2d");
        return escaped;
      }());
}

Async<void> ensureRxe(TaskTools tools, Params params) {
  std::string netdev = params.netdev.empty() ? chooseNetdev(tools) : params.netdev;
  if (netdev.empty())
    co_return fail(ErrorCode::NotFound, "no network device with a link for soft-RoCE");
  std::error_code error;
  if (!fs::exists(tools.root / "sys/class/infiniband" / kRxeDevice, error)) {
    std::vector<std::string> args = {"link",   "add", std::string(kRxeDevice), "type", "rxe",
                                     "netdev", netdev};
    CO_TRY_OK(co_await runTool(tools, "rdma", std::move(args), kToolLimit));
  }
  auto unit = tools.root / "etc/systemd/system/muster-rxe.service";
  auto wanted = rxeUnit(netdev);
  auto present = fs::exists(unit, error) ? io::readFile(unit, 1u << 16) : Result<std::string>("");
  if (present && *present == wanted) co_return Result<void>();
  CO_TRY_OK(io::makeDirs(unit.parent_path()));
  CO_TRY_OK(io::writeFileAtomic(unit, wanted));
  std::vector<std::string> reload = {"daemon-reload"};
  CO_TRY_OK(co_await runTool(tools, "systemctl", std::move(reload), kToolLimit));
  std::vector<std::string> enable = {"enable", "muster-rxe.service"};
  CO_TRY_OK(co_await runTool(tools, "systemctl", std::move(enable), kToolLimit));
  co_return Result<void>();
}

// ---- proof

Result<void> evaluate(const std::map<std::string, std::string>& wanted,
                      const std::map<std::string, std::string>& running) {
  std::string wrong;
  for (const auto& [probe, glob] : wanted) {
    auto found = running.find(probe);
    std::string value = found == running.end() ? "absent" : found->second;
    if (found != running.end() && ::fnmatch(glob.c_str(), value.c_str(), 0) == 0) continue;
    wrong += fmt::format("{}{} is {}, wanted {}", wrong.empty() ? "" : "; ", probe, value, glob);
  }
  if (wrong.empty()) return {};
  return fail(ErrorCode::Corrupt, "installed, but what runs does not fit: " + wrong);
}

}  // namespace

Async<nlohmann::json> installDriver(TaskTools tools, nlohmann::json json, TaskContextPtr context) {
  CO_TRY(ordered, wire::parseDriverParams(jsonText(json)));
  co_return co_await installDriver(std::move(tools), std::move(ordered), std::move(context));
}

Async<nlohmann::json> installDriver(TaskTools tools, wire::DriverParams ordered,
                                    TaskContextPtr context) {
  CO_TRY(params, checked(std::move(ordered)));
  CO_TRY(settings, settingsOf(params));
  CO_TRY_OK(writeArchives(tools, settings));
  if (const auto headers = headersPackage(tools); settings.dkms && !headers.empty())
    params.packages.push_back(headers);
  bool present = co_await allInstalled(tools, params.packages);
  if (!present) {
    CO_TRY_OK(co_await installPackages(tools, params, settings, context));
  }
  context->progress(0.7, "writing settings");
  CO_TRY_OK(co_await applySettings(tools, settings));
  CO_TRY_OK(co_await applyHostSettings(tools, params.name));
  context->progress(0.8, "loading modules");
  if (!params.modules.empty()) {
    CO_TRY_OK(co_await loadModules(tools, params));
  }
  if (std::ranges::find(params.modules, "rdma_rxe") != params.modules.end()) {
    CO_TRY_OK(co_await ensureRxe(tools, params));
  }
  CO_TRY_OK(co_await startServices(tools, settings));
  context->progress(0.9, "reading what runs");
  std::set<std::string> probes;
  for (const auto& [probe, glob] : params.verify) probes.insert(probe);
  auto running = co_await readProbes(tools, probes);
  const auto fits = evaluate(params.verify, running);
  if (fits) {
    forgetRestart(tools.root, params.name);
    co_return nlohmann::json(running);
  }
  const auto reason = co_await restartReason(tools, settings);
  if (reason.empty()) co_return fail(fits.error());
  CO_TRY_OK(co_await restartFor(tools, params.name, reason, context));
  co_return fail(fits.error());
}

}  // namespace muster::agent
