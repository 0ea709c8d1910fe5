// SPDX-License-Identifier: Apache-2.0
// muster-collective: one node's ranks of one group. Reads a job from standard input, writes a
// report to standard output.
//
// muster-collective: exit 0: passed, 1: not passed, 2: no job, 4: the report could not be written.
// What hangs is ended after the job's limit, with a report that says so.
//
// muster-collective --probe: which transports there are, as JSON; exit 0.
//
// muster-collective --slurm: the job of a step of Slurm, one task a node; srun ends with the worst
// exit status.
#include "base/io/process.h"
#include "base/json_output.h"
#include "base/main_guard.h"
#include "validate/collective/nccl_meeting.h"
#include "validate/collective/slurm.h"
#include "validate/collective/transports.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <unistd.h>
#include <condition_variable>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <mutex>
#include <thread>

namespace muster::collective {
namespace {

enum Exit { kPassed = 0, kNotPassed = 1, kNoJob = 2, kUnwritten = 4 };

/// Neither NCCL nor a blocking call can be asked to stop waiting for a peer that never comes: the
/// process ends with its report instead.
class Watchdog {
 public:
  Watchdog(const Job& job, const Progress& progress)
      : thread_([this, job, &progress](std::stop_token stop) {
          std::unique_lock lock(mutex_);
          if (wake_.wait_for(lock, stop, job.limit + kAfter,
                             [&stop] { return stop.stop_requested(); }))
            return;
          auto late =
              progress.soFar(job.group);  // who has failed already is why the others stand still
          late.findings.push_back(
              fmt::format("not done within {} s: a rank is missing or stalled", job.limit.count()));
          std::cout << jsonText(toJson(late)) << std::endl;
          ::_exit(kNotPassed);
        }) {}

 private:
  static constexpr std::chrono::seconds kAfter{
      7};  ///< TCP ends at the limit by itself, calls the roll and says who is missing
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread thread_;
};

std::filesystem::path ownFolder() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
}

int probe() {
  nlohmann::json out{{"format", "muster-collective-probe/1"}, {"transports", {"tcp"}}, {"gpus", 0}};
  if (const auto nccl = openNccl(ownFolder())) {
    out["transports"].push_back("nccl");
    out["gpus"] = nccl->gpus, out["nccl"] = nccl->version, out["library"] = nccl->library;
  } else {
    out["no_nccl"] = nccl.error().str();
  }
  std::cout << jsonText(out) << std::endl;
  return kPassed;
}

Result<Join> joinBy(const Job& job) {
  if (job.transport == Transport::Tcp) return Join(joinTcp);
  unsetenv("NCCL_COMM_ID");          // the id comes from rank 0's process
  setenv("NCCL_CROSS_NIC", "0", 0);  // a rail's traffic stays on it, unless the site says otherwise
  if (!job.hcas.empty()) setenv("NCCL_IB_HCA", job.hcas.c_str(), 1);
  TRY(nccl, openNccl(ownFolder()));
  if (job.local_ranks > nccl.gpus)
    return fail(ErrorCode::InvalidInput, fmt::format("{} ranks are to run here, which has {} GPUs",
                                                     job.local_ranks, nccl.gpus));
  TRY(id, meetForId(job, useInterfaceOf, nccl.make_id));
  return nccl.join_by(id);
}

int run(const Job& job) {
  JobReport report{job.group, {}, {}, false};
  Progress progress;
  {
    Watchdog watchdog(job, progress);
    if (const auto join = joinBy(job))
      report = runJob(job, *join, progress);
    else
      report.findings.push_back(join.error().str());
  }
  std::cout << jsonText(toJson(report)) << std::endl;
  return report.passed ? kPassed : kNotPassed;
}

/// What is wanted of all nodes, as words of the command.
struct Words {
  bool probe = false, slurm = false;
  std::vector<std::string> operations{"all-reduce", "all-gather", "reduce-scatter", "all-to-all",
                                      "pair"};
  std::string transport = "nccl", meeting;
  int port = 41'000;
  long limit_seconds = 300;
  Job job;
};

void declare(CLI::App& app, Words& words) {
  app.add_flag("--probe", words.probe, "Say which transports there are here, as JSON");
  auto* slurm = app.add_flag(
      "--slurm", words.slurm,
      "Be one task of a step of Slurm instead of reading a job: srun --ntasks-per-node 1 …");
  for (auto* option :
       {app.add_option("--operations", words.operations,
                       "all-reduce, all-gather, reduce-scatter, all-to-all, send-recv, pair")
            ->delimiter(',')
            ->capture_default_str(),
        app.add_option("--transport", words.transport, "nccl or tcp")->capture_default_str(),
        app.add_option("--ranks-per-node", words.job.local_ranks, "Without it: GPUs; 1 of tcp")
            ->check(CLI::Range(1, 64)),
        app.add_option("--max-bytes", words.job.max_bytes, "Of the largest message")
            ->capture_default_str()
            ->check(CLI::Range(4ULL, 64ULL << 30)),
        app.add_option("--iterations", words.job.iterations, "Of each measurement")
            ->capture_default_str()
            ->check(CLI::Range(1, 100'000)),
        app.add_option("--hcas", words.job.hcas, "NCCL_IB_HCA: \"=mlx5_0\" for one rail"),
        app.add_option("--min-busbw", words.job.min_busbw_gbytes_per_s,
                       "GB/s of the largest message of every collective")
            ->check(CLI::NonNegativeNumber),
        app.add_option("--limit-seconds", words.limit_seconds, "Of all of it")
            ->capture_default_str()
            ->check(CLI::Range(1, 86'400)),
        app.add_option("--port", words.port, "Where the ranks meet on the first node")
            ->capture_default_str()
            ->check(CLI::Range(1, 65'535)),
        app.add_option(
            "--meeting", words.meeting,
            "ADDRESS:PORT of the first node, where slurmctld's word for it is not right")})
    option->needs(slurm);
}

Result<Job> jobOf(const Words& words) {
  std::map<std::string, std::string> environment;
  for (char** each = environ; *each; ++each)
    if (const std::string_view text(*each); text.find('=') != std::string_view::npos)
      environment.emplace(text.substr(0, text.find('=')), text.substr(text.find('=') + 1));
  TRY(step, slurmStepOf(environment));
  Job job = words.job;
  job.operations.clear();
  for (const auto& name : words.operations) {
    TRY(operation, parseOperation(name));
    job.operations.push_back(operation);
  }
  TRY(transport, parseTransport(words.transport));
  job.transport = transport;
  job.min_bytes = std::min(job.min_bytes, job.max_bytes);
  job.limit = std::chrono::seconds(words.limit_seconds);
  if (job.local_ranks == 0 && transport == Transport::Tcp) job.local_ranks = 1;
  if (job.local_ranks == 0) {
    TRY(nccl, openNccl(ownFolder()));
    job.local_ranks = nccl.gpus;
  }
  std::string address;
  if (words.meeting.empty()) {
    TRY(shown, io::runChecked({"scontrol", {"show", "node", "-o", step.first}}));
    TRY(found, addressOf(shown, step.first));
    address = found;
  }
  job = partOf(step, address, words.port, std::move(job));
  if (!words.meeting.empty()) job.meeting = words.meeting;
  return parseJob(jsonText(toJson(job)));  // evaluated as any other
}

int runWords(const Words& words) {
  if (words.probe) return probe();
  const auto job = words.slurm ? jobOf(words)
                               : parseJob(std::string{std::istreambuf_iterator<char>(std::cin),
                                                      std::istreambuf_iterator<char>()});
  if (job) return run(*job);
  std::cerr << "muster-collective: " << job.error().str() << "\n";
  return kNoJob;
}

}  // namespace
}  // namespace muster::collective

int main(int argc, char** argv) {
  using namespace muster::collective;
  const muster::RefusedOutput closed;
  CLI::App app{
      "Collectives between hosts or GPUs, their data checked. Without --slurm it reads a job from "
      "standard input (docs/validation.md)"};
  Words words;
  declare(app, words);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& wrong) {
    return app.exit(wrong) == 0 ? kPassed : kNoJob;
  }
  constexpr std::string_view kProgram = "muster-collective";
  const int code = muster::guardedMain(kProgram, [&] { return runWords(words); });
  return muster::codeOnceWritten(kProgram, code, std::cout, STDOUT_FILENO, kUnwritten);
}
