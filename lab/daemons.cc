// SPDX-License-Identifier: Apache-2.0
#include "lab/daemons.h"

#include "base/ids.h"
#include "base/io/files.h"
#include "base/io/process.h"
#include "base/ip_address.h"
#include "lab/netns.h"
#include "lab/slowness.h"
#include "lab/virt.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <thread>

namespace muster::lab {

namespace {

constexpr std::chrono::milliseconds kReadyPoll{20};
constexpr std::size_t kQuotedLogBytes = 1500;
constexpr std::size_t kMungeKeyBytes = 128;

std::filesystem::path ownBinary(const std::string& name) {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / name;
}

bool answersUnix(const std::filesystem::path& socket_file) {
  io::Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  auto text = socket_file.string();
  if (text.size() >= sizeof address.sun_path) return false;
  text.copy(address.sun_path, text.size());
  return ::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
}

bool answersTcp(const std::string& netns, Ipv4 host, std::uint16_t port) {
  auto dial = [&]() -> Result<void> {
    io::Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(host.value());
    if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return {};
    return fail(ErrorCode::Unavailable, "refused");
  };
  return insideNamespace(netns, dial).has_value();
}

std::string endOfLog(const std::filesystem::path& file) {
  auto text = io::readFile(file);
  if (!text || text->empty()) return "its log is empty";
  if (text->size() > kQuotedLogBytes) return "…" + text->substr(text->size() - kQuotedLogBytes);
  return *text;
}

Result<void> writeAll(const std::vector<std::pair<std::filesystem::path, std::string>>& files,
                      unsigned mode = 0644) {
  for (const auto& [path, text] : files) {
    TRY_OK(io::makeDirs(path.parent_path()));
    TRY_OK(io::writeFileAtomic(path, text, mode));
  }
  return {};
}

Result<void> prepareLibvirt(const Rack& rack, const std::filesystem::path& capabilities_cache) {
  auto home = rack.paths.libvirt();
  for (const char* folder : {"run", "lib", "etc", "log", "nvram"})
    TRY_OK(io::makeDirs(home / folder));
  TRY_OK(io::makeDirs(capabilities_cache));
  auto daemon_conf = fmt::format(
      "unix_sock_dir = \"{}\"\nauth_unix_rw = \"none\"\nauth_unix_ro = \"none\"\nlog_level = "
      "3\nlog_outputs = \"3:stderr\"\n",
      (home / "run").string());
  // Root runs the guests; security drivers, cgroups and virtlogd would only reach outside of the
  // lab.
  std::string qemu_conf =
      "user = \"root\"\ngroup = \"root\"\ndynamic_ownership = 0\nremember_owner = "
      "0\nsecurity_driver = \"none\"\n"
      "namespaces = []\ncgroup_controllers = []\nstdio_handler = \"file\"\n";
  return writeAll(
      {{home / "etc" / "libvirtd.conf", daemon_conf}, {home / "etc" / "qemu.conf", qemu_conf}});
}

}  // namespace

Daemon libvirtDaemon(const Rack& rack, const std::filesystem::path& capabilities_cache) {
  auto home = rack.paths.libvirt();
  // libvirt's folders are compiled in: own ones are bound over them in a mount namespace that only
  // this daemon and its guests see.
  auto bind = [](const std::filesystem::path& from, const char* to) {
    return fmt::format("mkdir -p {1} && mount --bind '{0}' {1} && ", from.string(), to);
  };
  auto script = bind(home / "run", "/run/libvirt") + bind(home / "lib", "/var/lib/libvirt") +
                bind(capabilities_cache, "/var/cache/libvirt") +
                bind(home / "log", "/var/log/libvirt") + bind(home / "etc", "/etc/libvirt") +
                fmt::format("exec libvirtd -f /etc/libvirt/libvirtd.conf -p '{}'",
                            (home / "libvirtd.pid").string());
  Daemon daemon;
  daemon.name = "libvirtd";
  daemon.argv = {"unshare", "--mount", "--propagation", "private", "sh", "-c", script};
  daemon.prepare = [rack, capabilities_cache] { return prepareLibvirt(rack, capabilities_cache); };
  daemon.ready = [rack] { return Virt::connect(rack.libvirt_uri).has_value(); };
  return daemon;
}

Daemon vbmcDaemon(const Rack& rack, const std::string& config_text) {
  auto config = rack.paths.bmc() / "vbmc.conf";
  Daemon daemon;
  daemon.name = "vbmc";
  daemon.argv = {ownBinary("muster-vbmc").string(), "serve", config.string()};
  daemon.prepare = [config, config_text] { return writeAll({{config, config_text}}, 0600); };
  daemon.ready = [rack] {
    for (const auto& node : rack.nodes)
      if (!answersTcp(rack.netns, node.bmc_address, node.bmc_port)) return false;
    return true;
  };
  return daemon;
}

Daemon ibsimDaemon(const Rack& rack, const SimulatedFabric& fabric) {
  const auto home = fabric.folder;
  const auto net = fabric.net;
  auto console = home / "console";
  auto lines = std::count(net.begin(), net.end(), '\n');
  Daemon daemon;
  daemon.name = fabric.is_main ? "ibsim" : "ibsim-" + fabric.name;
  // The console is a FIFO opened for reading and writing, so it never reaches its end.
  daemon.argv = {
      "sh", "-c",
      fmt::format("exec ibsim -s -N {0} -S {0} -P {1} '{2}' <>'{3}'", lines + 64, 64 * lines + 4096,
                  (home / "declared.net").string(), console.string())};
  daemon.env = fabric.env;
  const auto log = rack.paths.log(daemon.name);
  daemon.prepare = [home, net, console, log]() -> Result<void> {
    TRY_OK(writeAll({{home / "declared.net", net}}));
    std::error_code ignored;
    std::filesystem::remove(log,
                            ignored);  // "ready" of an earlier run must not be taken for this one's
    if (::mkfifo(console.c_str(), 0600) != 0 && errno != EEXIST)
      return fail(ErrorCode::Internal, "cannot make ibsim's console");
    return {};
  };
  daemon.ready = [log] {
    auto text = io::readFile(log);
    return text && text->find("Network simulator ready") != std::string::npos;
  };
  return daemon;
}

Daemon mungeDaemon(const Rack& rack) {
  auto home = rack.paths.munge();
  auto in = [&](const char* name) { return (home / name).string(); };
  Daemon daemon;
  daemon.name = "munged";
  daemon.argv = {"munged",         "--foreground", "--force",          "--key-file",
                 in("munge.key"),  "--socket",     in("munge.socket"), "--pid-file",
                 in("munged.pid"), "--log-file",   in("munged.log"),   "--seed-file",
                 in("munged.seed")};
  daemon.prepare = [home]() -> Result<void> {
    TRY_OK(io::makeDirs(home));
    std::error_code gone;
    if (std::filesystem::exists(home / "munge.key", gone)) return {};
    std::string key(kMungeKeyBytes, '\0');
    if (::getrandom(key.data(), key.size(), 0) != static_cast<ssize_t>(key.size()))
      return fail(ErrorCode::Internal, "no random bytes for the munge key");
    return io::writeFileAtomic(home / "munge.key", key, 0400);
  };
  daemon.ready = [home] { return answersUnix(home / "munge.socket"); };
  return daemon;
}

Daemon slurmDaemon(const Rack& rack, const std::string& conf, const std::string& node_conf) {
  auto home = rack.paths.slurm();
  Daemon daemon;
  daemon.name = "slurmctld";
  // slurmctld wants the host's name to be SlurmctldHost's: a UTS namespace gives it that name and
  // leaves the host's alone.
  daemon.argv = {"unshare", "--uts", "sh", "-c",
                 fmt::format("hostname muster-controller && exec slurmctld -D -f '{}'",
                             (home / "slurm.conf").string())};
  daemon.prepare = [home, conf, node_conf]() -> Result<void> {
    TRY_OK(io::makeDirs(home / "state", 0700));
    return writeAll({{home / "slurm.conf", conf}, {home / "slurm-node.conf", node_conf}});
  };
  daemon.ready = [rack] { return answersTcp(rack.netns, rack.controller, 6817); };
  return daemon;
}

Result<void> startDaemon(const Rack& rack, const Daemon& daemon) {
  io::PidFile pid_file{rack.paths.pid(daemon.name)};
  if (pid_file.alive()) return {};
  TRY_OK(daemon.prepare());
  io::Command command;
  command.program = "ip";
  command.args = {"netns", "exec", rack.netns};
  command.args.insert(command.args.end(), daemon.argv.begin(), daemon.argv.end());
  command.env = daemon.env;
  auto started = io::makeProcessRunner()->startDetached(command, rack.paths.log(daemon.name));
  if (!started) return fail(started.error().within("starting " + daemon.name));
  return pid_file.write(*started);
}

Result<void> awaitReady(const Rack& rack, const Daemon& daemon) {
  io::PidFile pid_file{rack.paths.pid(daemon.name)};
  const auto began = std::chrono::steady_clock::now();
  auto within = daemon.ready_within;
  while (!daemon.ready()) {
    auto log = rack.paths.log(daemon.name);
    if (!pid_file.alive())
      return fail(ErrorCode::Unavailable,
                  fmt::format("{} ended ({}): {}", daemon.name, log.string(), endOfLog(log)));
    if (const auto waited = std::chrono::steady_clock::now() - began; waited > within) {
      // The limit is for a machine that has nothing else to do; only what outlasts it on this one,
      // too, is broken.
      const double factor = slowness(std::thread::hardware_concurrency());
      within = std::chrono::duration_cast<std::chrono::milliseconds>(daemon.ready_within * factor);
      if (waited > within)
        return fail(ErrorCode::Timeout,
                    fmt::format("{} is not ready after {} s, on a machine that is {:.1f} times "
                                "slower than idle ({}): {}",
                                daemon.name,
                                std::chrono::duration_cast<std::chrono::seconds>(waited).count(),
                                factor, log.string(), endOfLog(log)));
    }
    std::this_thread::sleep_for(kReadyPoll);
  }
  return {};
}

}  // namespace muster::lab
