// SPDX-License-Identifier: Apache-2.0
// What a command of the program itself takes, from its start to its end, with the inventory, the
// store and the output: `muster plan` of a site of which nothing is known. The planner alone is in
// plan_scale_bench.cc.
#include "bench/bench.h"

#include "base/io/files.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

namespace {

using namespace muster;
namespace fs = std::filesystem;

constexpr int kNodes = 100'000;
constexpr int kRuns = 3;
constexpr double kMostSeconds = 6, kMostGigabytes = 1.5;

constexpr std::string_view kHead = R"(cluster: {name: hall}
networks:
  provisioning: {cidr: 10.0.0.0/8, dhcp: {mode: none}}
credentials:
  bmc: {username: admin, password: {env: MUSTER_BENCH_PASSWORD}}
images:
  noble: {build: {suite: bookworm, packages: [linux-image-amd64]}}
drivers:
  rdma: {packages: [rdma-core], verify: {package.rdma-core: "44.*"}}
gates:
  burn-in: {level: quick, groups: [host]}
profiles:
  gpu: {expect: {gpus: 8}, image: noble, drivers: [rdma], gates: [burn-in]}
nodes:
  - {names: "gpu[000001-100000]", profile: gpu, from: nodes.csv}
)";

/// One row a machine, as sites of this size keep them.
void writeSite(const fs::path& folder) {
  std::ofstream(folder / "cluster.yaml") << kHead;
  std::ofstream csv(folder / "nodes.csv");
  csv << "name,rack,unit,mac,address,bmc,serial\n";
  for (int i = 0; i < kNodes; ++i) {
    const int high = i / 250, low = i % 250 + 1;
    csv << fmt::format(
        "gpu{:06},r{:05},{},52:54:00:{:02x}:{:02x}:{:02x},10.{}.{}.{},https://10.{}.{}.{},"
        "S{:010}\n",
        i + 1, i / 8, i % 8 * 5 + 1, i >> 16, i >> 8 & 255, i & 255, 32 + high / 250, high % 250,
        low, 64 + high / 250, high % 250, low, i);
  }
}

struct Taken {
  int status = -1;
  double seconds = 0, gigabytes = 0;
};

/// The program, its output to a file, with what the kernel says that it has taken.
Taken runProgram(const fs::path& folder, std::vector<std::string> words) {
  const auto program = fs::canonical("/proc/self/exe").parent_path() / "muster";
  words.insert(words.begin(), program.string());
  const auto begin = std::chrono::steady_clock::now();
  const pid_t pid = ::fork();
  if (pid == 0) {
    const auto set = [](const char* name, const fs::path& value) {
      ::setenv(name, value.c_str(), 1);
    };
    set("MUSTER_INVENTORY", folder / "cluster.yaml");
    set("MUSTER_STATE", folder / "state");
    set("MUSTER_CACHE", folder / "cache");
    set("MUSTER_LAB", folder / "no-lab");
    set("MUSTER_BENCH_PASSWORD", "secret");
    const int out = ::open((folder / "out").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(out, STDERR_FILENO);
    std::vector<char*> argv;
    for (auto& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    ::execv(argv.front(), argv.data());
    ::_exit(127);
  }
  Taken out;
  rusage usage{};
  ::wait4(pid, &out.status, 0, &usage);
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  out.gigabytes = static_cast<double>(usage.ru_maxrss) * 1024 / 1e9;
  return out;
}

Taken mustRun(const fs::path& folder, const std::vector<std::string>& words) {
  const auto taken = runProgram(folder, words);
  if (taken.status != 0) {
    fmt::print(stderr, "bench: muster {} ended with {}: {}\n", words.back(), taken.status,
               io::readFile(folder / "out").value_or("").substr(0, 2'000));
    std::exit(2);
  }
  return taken;
}

}  // namespace

int main() {
  auto pattern = (fs::temp_directory_path() / "muster-bench-XXXXXX").string();
  const fs::path folder = ::mkdtemp(pattern.data());
  bench::Report report("program");
  writeSite(folder);
  (void)mustRun(folder, {"--direct", "wipe", "gpu000001", "--reason", "makes the store"});
  Taken best{0, 1e9, 1e9};
  for (int i = 0; i < kRuns; ++i) {
    const auto taken = mustRun(folder, {"--direct", "plan", "--no-refresh"});
    best.seconds = std::min(best.seconds, taken.seconds);
    best.gigabytes = std::min(best.gigabytes, taken.gigabytes);
  }
  const auto said = io::readFile(folder / "out").value_or("");
  if (!said.contains("gpu[000001-100000]")) {
    fmt::print(stderr, "bench: the plan is not about all nodes: {}\n", said.substr(0, 2'000));
    return 2;
  }
  report.record({"plan_100000_unknown", best.seconds, "s", kMostSeconds});
  report.record({"plan_100000_unknown_memory", best.gigabytes, "GB", kMostGigabytes});
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  return report.exitCode();
}
