// SPDX-License-Identifier: Apache-2.0
// muster-fleet: a simulated fleet for measuring muster without metal.
//
//   muster-fleet nodes --nodes 1000 > nodes.csv        rows for an inventory
//   muster-fleet serve --nodes 1000 --boot-url http://127.0.0.1:8080 --password-env PW [--real]
#include "base/main_guard.h"
#include "lab/fleet/fleet.h"

#include "base/io/process.h"

#include <CLI/CLI.hpp>
#include <boost/asio/signal_set.hpp>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iostream>

namespace muster::lab::fleet {
namespace {

constexpr std::size_t kWorkers = 1;
constexpr std::size_t kDescriptorsPerNode = 8, kOtherDescriptors = 256;

struct Options {
  int nodes = 100;
  int first = 1;
  std::string boot_url, password_env = "MUSTER_FLEET_PASSWORD", tasks_file;
  bool real = false;
  int redfish_ms = -1, boot_s = -1, task_ms = -1;
  double redfish_busy = 0, boot_lost = 0, task_fails = 0;
  unsigned long seed = 1;

  Conditions conditions() const {
    Conditions out = real ? Conditions::real() : Conditions{};
    if (redfish_ms >= 0)
      out.redfish = {std::chrono::milliseconds(redfish_ms / 5),
                     std::chrono::milliseconds(redfish_ms)};
    if (boot_s >= 0)
      out.boot = {std::chrono::seconds(boot_s) * 9 / 10, std::chrono::seconds(boot_s)};
    if (task_ms >= 0)
      out.task = {std::chrono::milliseconds(task_ms) * 9 / 10, std::chrono::milliseconds(task_ms)};
    if (redfish_busy > 0) out.redfish_busy = redfish_busy;
    out.boot_lost = boot_lost;
    out.task_fails = task_fails;
    out.seed = seed;
    return out;
  }
};

Result<void> serve(const Options& options) {
  const char* password = std::getenv(options.password_env.c_str());
  if (!password)
    return fail(
        ErrorCode::InvalidInput,
        fmt::format("the BMCs' password must be in the environment as {}", options.password_env));
  // A listener and a few connections a BMC, two an agent.
  io::raiseDescriptorLimit(kDescriptorsPerNode * static_cast<std::size_t>(options.nodes) +
                           kOtherDescriptors);
  SystemClock clock;
  asio::io_context io;
  Workers workers(kWorkers);  // gone first: what they still do answers to the loop
  World world{io.get_executor(), clock,
              workers,           options.conditions(),
              options.boot_url,  vbmc::Account::make(kUsername, password)};
  std::ofstream tasks;
  if (!options.tasks_file.empty()) {
    tasks.open(options.tasks_file, std::ios::app);
    world.tell = [&tasks](const std::string& node, const wire::AgentTask& task,
                          wire::TaskPhase phase) {
      tasks << node << ' ' << toString(task.kind) << ' ' << task.id << ' ' << toString(phase)
            << std::endl;
    };
    world.tell_power = [&tasks](const std::string& node, std::uint64_t number, bool on) {
      tasks << node << " power " << number << ' ' << (on ? "on" : "off") << std::endl;
    };
  }
  TRY(fleet, Fleet::make(std::move(world), options.nodes, options.first));
  asio::signal_set ends(io, SIGTERM, SIGINT);
  ends.async_wait([&io](const boost::system::error_code&, int) { io.stop(); });
  std::cout << fleet->size() << " BMCs answer, from " << specOf(options.first).bmc_address << ":"
            << kBmcPort << " on" << std::endl;
  io.run();
  return {};
}

void printNodes(int nodes, int first) {
  std::cout << "name,mac,bmc,serial\n";
  for (int number = first; number < first + nodes; ++number) {
    const auto spec = specOf(number);
    std::cout << spec.name << ',' << spec.mac << ",https://" << spec.bmc_address << ':'
              << spec.bmc_port << ',' << spec.serial << '\n';
  }
}

}  // namespace
}  // namespace muster::lab::fleet

namespace muster::lab::fleet {

int run(int argc, char** argv) {
  CLI::App app("A simulated fleet: Redfish BMCs and agents with the real protocols");
  app.require_subcommand(1);
  Options options;
  auto* serving = app.add_subcommand("serve", "Serve the BMCs and run the agents until SIGTERM");
  auto* listing = app.add_subcommand("nodes", "Print the nodes as rows of an inventory (CSV)");
  for (auto* command : {serving, listing}) {
    command->add_option("--nodes", options.nodes, "How many")->check(CLI::Range(1, kMaxNodes));
    command
        ->add_option("--first", options.first,
                     "The number of the first: several processes may share a fleet")
        ->check(CLI::Range(1, kMaxNodes));
  }
  serving
      ->add_option(
          "--boot-url", options.boot_url,
          "Where the controller serves /boot/ipxe (http://HOST:PORT; several between commas)")
      ->required();
  serving->add_option("--password-env", options.password_env,
                      "Variable that holds the BMCs' password");
  serving->add_option(
      "--tasks-file", options.tasks_file,
      "Append a line for each task that an agent takes up, and ends: node, kind, id, phase");
  serving->add_flag("--real", options.real,
                    "Latencies as metal has them: Redfish 100-500 ms, boot 120 s");
  serving->add_option("--redfish-ms", options.redfish_ms,
                      "The slowest answer of a BMC; the fastest is a fifth of it");
  serving->add_option("--boot-s", options.boot_s, "The slowest boot");
  serving->add_option("--task-ms", options.task_ms, "The slowest task of an agent");
  serving
      ->add_option("--redfish-busy", options.redfish_busy,
                   "Share of requests that are answered 503")
      ->check(CLI::Range(0.0, 1.0));
  serving->add_option("--boot-lost", options.boot_lost, "Share of boots after which nobody calls")
      ->check(CLI::Range(0.0, 1.0));
  serving->add_option("--task-fails", options.task_fails, "Share of agent tasks that fail")
      ->check(CLI::Range(0.0, 1.0));
  serving->add_option("--seed", options.seed, "Of everything that is drawn");
  CLI11_PARSE(app, argc, argv);
  startLog({}, LogLevel::Warning);
  if (listing->parsed()) {
    printNodes(options.nodes, options.first);
    return 0;
  }
  auto done = serve(options);
  if (done) return 0;
  std::cerr << "muster-fleet: " << done.error().str() << "\n";
  return 1;
}

}  // namespace muster::lab::fleet

int main(int argc, char** argv) {
  return muster::guardedMain("muster-fleet", [&] { return muster::lab::fleet::run(argc, argv); });
}
