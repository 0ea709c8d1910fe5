// SPDX-License-Identifier: Apache-2.0
// muster-agent: the node side. With --config, or where /etc/muster/agent.json is, it is on an
// installed system; otherwise it is in the RAM OS and reads the kernel's command line. `tool` is
// how it runs checks apart from itself.
#include "agent/core/agent.h"
#include "agent/core/agent_clock.h"
#include "agent/tasks/erase_disks.h"
#include "agent/tasks/fit_command.h"
#include "agent/tasks/health.h"
#include "agent/tasks/tasks.h"
#include "agent/tasks/tool_command.h"
#include "agent/tasks/write_image.h"
#include "base/io/files.h"
#include "base/io/slow_tools.h"
#include "base/log.h"
#include "base/main_guard.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/signal_set.hpp>

#include <gnu/libc-version.h>
#include <sys/reboot.h>
#include <unistd.h>
#include <cstring>
#include <iostream>
#include <memory>

namespace {

using namespace muster;
using namespace muster::agent;

constexpr std::size_t kWorkerThreads = 4;
constexpr std::chrono::seconds kReachLimit{5};
constexpr std::size_t kMaxConfigBytes = 64u << 10;
constexpr const char* kInstalledConfig = "/etc/muster/agent.json";
constexpr const char* kKernelCommandLine = "/proc/cmdline";
const std::set<std::string> kAlwaysProbed = {"kernel", "nvml.driver", "rdma.devices",
                                             "rdma.layers"};

struct Arguments {
  std::string config;
  std::string cmdline;
  std::string state;
  std::string tool;
  bool fit = false;
  FitCommand fit_command;
  bool version = false;
};

std::optional<Arguments> parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    bool has_next = i + 1 < argc;
    if (word == "--config" && has_next) {
      arguments.config = argv[++i];
    } else if (word == "--cmdline" && has_next) {
      arguments.cmdline = argv[++i];
    } else if (word == "--state" && has_next) {
      arguments.state = argv[++i];
    } else if (word == "tool" && has_next) {
      arguments.tool = argv[++i];
    } else if (word == "fit") {
      arguments.fit = true;
    } else if (arguments.fit && word == "--drain") {
      arguments.fit_command.drain = true;
    } else if (arguments.fit && word == "--prolog") {
      arguments.fit_command.prolog = true;
    } else if (arguments.fit && word == "--root" && has_next) {
      arguments.fit_command.root = argv[++i];
    } else if (word == "--version") {
      arguments.version = true;
    } else {
      return std::nullopt;
    }
  }
  return arguments;
}

Result<AgentOptions> optionsFrom(const Arguments& arguments) {
  std::error_code error;
  bool installed = !arguments.config.empty() ||
                   (arguments.cmdline.empty() && std::filesystem::exists(kInstalledConfig, error));
  std::string file = installed ? kInstalledConfig : kKernelCommandLine;
  if (!arguments.config.empty()) file = arguments.config;
  if (!arguments.cmdline.empty()) file = arguments.cmdline;
  TRY(text, io::readFile(file, kMaxConfigBytes));
  auto options = installed ? optionsFromFile(text) : optionsFromKernel(text);
  if (options && !arguments.state.empty()) options->state_folder = arguments.state;
  return options;
}

/// The installed system is asked politely; the RAM OS has nobody to ask.
void restartMachine(wire::Mode mode) {
  ::sync();
  if (mode == wire::Mode::Disk) {
    io::Command command;
    command.program = "systemctl";
    command.args = {"reboot"};
    if (auto asked = io::runChecked(command); asked) return;
  }
  if (::reboot(RB_AUTOBOOT) != 0)
    logWarning("agent", "the machine could not be restarted: {}", std::strerror(errno));
}

/// The RAM OS's init knows this status: it gives way to the live image that is mounted.
[[noreturn]] void giveWay() {
  constexpr int kLiveImageIsReady = 64;
  ::_exit(kLiveImageIsReady);
}

MachineAccess sensesOf(wire::Mode mode, TaskTools tools, std::shared_ptr<HealthSense> health,
                       AgentClock& clock) {
  MachineAccess senses;
  senses.hardware = [tools] { return inspect(tools); };
  senses.probes = [tools](std::set<std::string> watched) {
    watched.insert(kAlwaysProbed.begin(), kAlwaysProbed.end());
    return readProbes(tools, std::move(watched));
  };
  if (mode == wire::Mode::Disk) senses.health = [health] { return health->look(); };
  senses.reboot = [mode] { restartMachine(mode); };
  senses.give_way = giveWay;
  senses.clients = [&clock](io::TlsTrust trust) {
    return heedSlowness(io::makeHttpClient(std::move(trust)), clock);
  };
  return senses;
}

int serve(AgentOptions options) {
  asio::io_context context(1);
  AgentClock clock;
  Workers workers(kWorkerThreads);
  auto processes = io::slowTools(io::makeProcessRunner(), clock);
  TaskTools tools{options.root, options.mac, *processes, workers, clock};
  tools.disk_content = diskContent();
  tools.identity = [options]() -> Result<io::TlsIdentity> {
    TRY(identity, loadIdentity(options));
    return identity.tls;
  };
  tools.reach_controller = [options, &clock]() -> Async<void> {
    io::TlsTrust trust;
    CO_TRY(root, io::readFile(options.ca_pem_file, kMaxConfigBytes));
    trust.ca_pem = std::move(root);
    auto client = heedSlowness(io::makeHttpClient(std::move(trust)), clock);
    auto urls = options.urls;
    if (urls.empty()) urls.push_back(options.url);
    Result<void> last;
    for (const auto& url : urls) {
      io::HttpRequest request;
      request.url = url;
      request.timeout = kReachLimit;
      const auto answered = co_await client->send(std::move(request));  // whatever its status
      if (answered) co_return Result<void>();
      last = fail(answered.error());
    }
    co_return last;
  };
  Agent* self = nullptr;  // the handler that installs a system asks for its certificate by the
                          // agent's own session
  auto health = std::make_shared<HealthSense>(tools, options.state_folder);
  auto handlers = makeHandlers(options.mode, tools,
                               [health](const auto& gpus) { health->gpusWereReset(gpus); });
  if (options.mode == wire::Mode::Ram) {
    const Certify certify = [&self](std::string csr_pem) {
      return self->certify(std::move(csr_pem));
    };
    handlers[wire::TaskKind::WriteImage] = imageHandler(tools, certify);
    handlers[wire::TaskKind::StartImage] = liveHandler(tools, certify);
    handlers[wire::TaskKind::EraseDisks] = eraseHandler(tools);
  }
  auto agent = Agent::create(options, std::move(handlers),
                             sensesOf(options.mode, tools, health, clock), clock);
  if (!agent) {
    logWarning("agent", "{}", agent.error().str());
    return 1;
  }
  self = agent->get();
  asio::signal_set signals(context, SIGTERM, SIGINT);
  signals.async_wait([self](const boost::system::error_code& error, int) {
    if (!error) self->stop();
  });
  int status = 0;
  asio::co_spawn(context, self->run(), [&](std::exception_ptr problem) {
    signals.cancel();
    if (problem) status = 1;
  });
  context.run();
  ::_exit(status);  // work that was left behind on a thread must not keep the agent
}

int run(int argc, char** argv) {
  auto arguments = parse(argc, argv);
  if (!arguments) {
    std::cerr << "usage: muster-agent [--config FILE | --cmdline FILE] [--state FOLDER]\n"
                 "       muster-agent fit [--drain] [--prolog]\n"
                 "       muster-agent tool nvml-driver|gpus|checks|rdma-pair\n"
                 "       muster-agent --version\n";
    return 2;
  }
  if (arguments->version) {
    std::cout << "muster-agent " << kAgentVersion << ", glibc " << gnu_get_libc_version() << "\n";
    return 0;
  }
  if (arguments->fit) return runFit(arguments->fit_command);
  if (!arguments->tool.empty()) return runToolCommand(arguments->tool);
  startLog({}, LogLevel::Info);
  auto options = optionsFrom(*arguments);
  if (!options) {
    logWarning("agent", "{}", options.error().str());
    return 1;
  }
  logInfo("agent", "muster-agent {} in {} mode, controller {}", kAgentVersion,
          toString(options->mode), options->url.origin());
  return serve(std::move(*options));
}

}  // namespace

int main(int argc, char** argv) {
  return guardedMain("muster-agent", [&] { return run(argc, argv); });
}
