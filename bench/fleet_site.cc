// SPDX-License-Identifier: Apache-2.0
#include "bench/fleet_site.h"

#include "base/ip_address.h"

#include "base/io/files.h"
#include "inventory/model/cluster.h"
#include "inventory/model/credentials.h"
#include "inventory/model/drivers.h"
#include "inventory/model/firmware.h"
#include "inventory/model/gates.h"
#include "inventory/model/images.h"
#include "inventory/model/networks.h"
#include "inventory/model/profile.h"
#include "lab/vbmc/firmware_file.h"

#include <boost/asio/co_spawn.hpp>

#include <iostream>

namespace muster::bench {
namespace {

constexpr int kMaxRounds = 4;
constexpr std::size_t kFirmwareBytes = 64u << 10;  ///< the protocol is measured, not the network
constexpr int kDrivers = 6, kGates = 7;

}  // namespace

int numberFrom(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::atoi(text) : otherwise;
}

inventory::Cluster clusterOf(int nodes, const std::filesystem::path& folder) {
  inventory::Cluster cluster;
  cluster.name = "fleet";
  cluster.digest = "fleet";
  inventory::Network network;
  network.name = "provisioning";
  network.cidr = *Cidr::parse("127.0.0.0/8");
  network.controller = *Ipv4::parse("127.0.0.1");
  network.dhcp_mode = inventory::DhcpMode::None;
  cluster.networks.push_back(network);
  inventory::Credential credential{"bmc", fleet::kUsername, {}};
  credential.password.env = "MUSTER_FLEET_PASSWORD";
  cluster.credentials["bmc"] = credential;
  cluster.images["bookworm"].name = "bookworm";
  inventory::Profile profile;
  profile.name = "sim";
  profile.image = "bookworm";
  profile.firmware = "2026.1";
  for (int i = 0; i < kDrivers; ++i) {
    inventory::Driver driver;
    driver.name = fmt::format("driver{}", i);
    driver.packages = {driver.name};
    driver.verify = {{"package." + driver.name, "44.*"}};
    cluster.drivers[driver.name] = driver;
    profile.drivers.push_back(driver.name);
  }
  for (int i = 0; i < kGates; ++i) {
    const auto name = fmt::format("gate{}", i);
    cluster.gates[name] = {name, inventory::GateLevel::Quick, {"host"}, false};
    profile.gates.push_back(name);
  }
  auto& baseline = cluster.firmware["2026.1"];
  baseline.name = "2026.1";
  for (const auto& [component, version] : {std::pair{"BMC", "2.1.0"}, {"BIOS", "1.5.0"}}) {
    const auto image = lab::vbmc::makeFirmware(component, version, kFirmwareBytes);
    const auto file = folder / (std::string(component) + ".fw");
    if (!io::writeFileAtomic(file, image)) std::abort();
    baseline.components.push_back({component, version, file, io::sha256Hex(image)});
    baseline.order.emplace_back(component);
  }
  cluster.profiles["sim"] = profile;
  for (int number = 1; number <= nodes; ++number) {
    const auto spec = fleet::specOf(number);
    inventory::Node node;
    node.name = NodeName(spec.name);
    node.profile = "sim";
    node.mac = *Mac::parse(spec.mac);
    node.serial = spec.serial;
    node.bmc.url = fmt::format("https://{}:{}", spec.bmc_address, spec.bmc_port);
    cluster.nodes.push_back(node);
  }
  return cluster;
}

void Children::start(int first, int nodes, const std::string& boot_url, bool real) {
  const auto program =
      (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "muster-fleet").string();
  std::vector<std::string> words{
      program,      "serve", "--first", std::to_string(first), "--nodes", std::to_string(nodes),
      "--boot-url", boot_url};
  if (real) words.emplace_back("--real");
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  int ends[2];
  if (::pipe(ends) != 0) std::abort();
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_addclose(&actions, ends[0]);
  pid_t pid = 0;
  if (::posix_spawn(&pid, program.c_str(), &actions, nullptr, arguments.data(), environ) != 0)
    std::abort();
  ::posix_spawn_file_actions_destroy(&actions);
  pids_.push_back(pid);
  ::close(ends[1]);
  char said = 0;
  if (::read(ends[0], &said, 1) != 1) std::abort();  // it says so when it answers
  ::close(ends[0]);
}

/// Rounds of observe, plan and apply until nothing is left. Answers how many actions were done.
Async<int> applyAll(Engine& engine, Site& site, const inventory::Cluster& cluster) {
  int done = 0;
  for (int round = 0; round < kMaxRounds; ++round) {
    CO_TRY(facts, co_await engine.observe({}));
    CO_TRY(policy, policyOf(site.store(), {}));
    CO_TRY(plan, makePlan(cluster, facts, policy, site.phases));
    if (plan.empty()) co_return done;
    CO_TRY(report, co_await engine.apply(std::move(plan)));
    done += report.done;
    for (std::size_t i = 0; i < std::min<std::size_t>(3, report.problems.size()); ++i)
      std::cerr << report.problems[i] << "\n";
  }
  co_return done;
}

int runApply(Engine& engine, Site& site, const inventory::Cluster& cluster) {
  int done = 0;
  site.io.restart();
  asio::co_spawn(site.io, applyAll(engine, site, cluster),
                 [&](std::exception_ptr, Result<int> ended) {
                   if (ended) done = *ended;
                   site.io.stop();
                 });
  site.io.run();
  return done;
}

}  // namespace muster::bench
