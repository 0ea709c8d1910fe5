// SPDX-License-Identifier: Apache-2.0
#include "validate/burn/engine.h"

#include "validate/burn/call_watch.h"
#include "validate/burn/stages.h"

#include <barrier>
#include <condition_variable>
#include <new>
#include <system_error>
#include <thread>

namespace muster::burn {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kSampleEvery{1};
constexpr std::chrono::milliseconds kBeforePulses{
    1'000};  ///< for devices to prepare their products
constexpr const char* kHungGpu =
    "the kernel hangs or the device is lost; look for an XID in the kernel's log, reset the device";
constexpr const char* kHungHost =
    "a core hangs, or this process gets too little time of the processors; look for machine checks "
    "and stalled processors in the kernel's log, and for what else runs here";

/// The sensors of one device, looked at by its own thread at the edges of stages and by the sampler
/// in between.
class Probe {
 public:
  Probe(Device& device, Clock::time_point start) : device_(device), start_(start) {}

  void look() {
    std::lock_guard lock(mutex_);
    auto seen = device_.sample();
    seen.at_seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    samples_.push_back(seen);
  }
  std::vector<Telemetry> since(std::size_t first) {
    std::lock_guard lock(mutex_);
    return {samples_.begin() + static_cast<std::ptrdiff_t>(first), samples_.end()};
  }
  std::size_t count() {
    std::lock_guard lock(mutex_);
    return samples_.size();
  }
  /// Without waiting for a look that hangs.
  std::vector<Telemetry> known() {
    std::unique_lock lock(mutex_, std::try_to_lock);
    return lock ? samples_ : std::vector<Telemetry>();
  }
  Power power(Clock::time_point from) {
    look();
    const double at = std::chrono::duration<double>(from - start_).count();
    Power power;
    double sum = 0;
    int count = 0;
    for (const auto& seen : since(0)) {
      if (seen.limit_watts) power.limit_watts = seen.limit_watts;
      if (seen.at_seconds > at && seen.watts) sum += *seen.watts, ++count;
    }
    if (count) power.mean_watts = sum / count;
    return power;
  }

 private:
  Device& device_;
  const Clock::time_point start_;
  std::mutex mutex_;
  std::vector<Telemetry> samples_;
};

/// A thread that looks at every probe once a second, until it is destroyed.
class Sampler {
 public:
  explicit Sampler(std::vector<std::unique_ptr<Probe>>& probes)
      : thread_([this, &probes](std::stop_token stop) {
          std::unique_lock lock(mutex_);
          while (!wake_.wait_for(lock, stop, kSampleEvery, [] { return false; }) &&
                 !stop.stop_requested())
            for (auto& probe : probes) probe->look();
        }) {}

 private:
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread thread_;
};

void evaluate(StageReport& stage, const Options& options, const std::vector<Telemetry>& seen) {
  for (auto& finding : evaluateSensors(seen, options.sensors)) stage.fails(std::move(finding));
  for (const auto& [key, floor] : options.floors) {
    const auto value = stage.values.find(key);
    if (value == stage.values.end())
      continue;  // another stage's; whether any stage gave it is asked at the end
    if (!(value->second >= floor))
      stage.fails(fmt::format("{} is {:.6g}, expected at least {:.6g}", key, value->second, floor));
  }
}

/// A floor for a value that no stage measured was not tested.
void evaluateMissing(DeviceReport& device, const Options& options) {
  for (const auto& [key, floor] : options.floors) {
    bool found = false;
    for (const auto& stage : device.stages) found = found || stage.values.contains(key);
    if (found || device.stages.empty()) continue;
    device.stages.back().lacks(
        Outcome::NoData,
        fmt::format("{} was not measured, though at least {:.6g} is expected", key, floor));
  }
}

template <class Get>
std::optional<std::uint64_t> growth(const std::vector<Telemetry>& seen, Get get,
                                    std::string& finding, const char* name) {
  std::optional<std::uint64_t> first, last;
  for (const auto& sample : seen)
    if (const auto& value = get(sample)) {
      if (last && *value < *last)
        finding = fmt::format("{} decreased from {} to {}: the device or its driver was reset",
                              name, *last, *value);
      if (!first) first = value;
      last = value;
    }
  return first && finding.empty() ? std::optional(*last - *first) : std::nullopt;
}

}  // namespace

std::string Stage::name() const {
  switch (kind) {
    case StageKind::Gemm:
      return fmt::format("gemm {} {}", rowOf(dtype).name,
                         operands == Operands::Integer ? "integer" : "random");
    case StageKind::Memory:
      return "memory";
    case StageKind::Copy:
      return "copy";
    case StageKind::Power:
      return "power";
    case StageKind::Units:
      return "units";
    case StageKind::Caches:
      return "caches";
  }
  return "stage";
}

std::vector<std::string> evaluateSensors(const std::vector<Telemetry>& seen,
                                         const std::vector<std::string>& required) {
  struct Row {
    const char* group;
    const char* name;
    std::optional<std::uint64_t> Telemetry::* counter;
    std::uint64_t allowed;  ///< growth within one stage
    bool offered;  ///< by every driver: its absence is a finding where the group is required
    const char* meaning;
  };
  // Drawing up to the power limit is what a burn is for; heat, power brakes and uncorrected errors
  // are not.
  static constexpr Row kRows[] = {
      {"ecc", "ecc_uncorrected", &Telemetry::ecc_uncorrected, 0, true, "uncorrected memory errors"},
      {"throttle", "throttle_thermal_ns", &Telemetry::throttle_thermal_ns, 0, true,
       "ns throttled by heat"},
      {"throttle", "throttle_hardware_ns", &Telemetry::throttle_hardware_ns, 0, false,
       "ns throttled by the board"},
  };
  constexpr std::uint64_t kBadReasons =
      0x8 | 0x40 | 0x80;  // hardware slowdown, thermal, power brake; bits may be combined
  std::vector<std::string> findings;
  for (const auto& row : kRows) {
    std::string finding;
    const auto grown = growth(
        seen, [&](const Telemetry& sample) { return sample.*row.counter; }, finding, row.name);
    const bool wanted =
        row.offered && std::find(required.begin(), required.end(), row.group) != required.end();
    if (finding.empty() && grown && *grown > row.allowed)
      finding = fmt::format("{} {} in this stage", *grown, row.meaning);
    if (finding.empty() && !grown && wanted)
      finding = fmt::format("no {}: whether there were {} is not known", row.name, row.meaning);
    if (!finding.empty()) findings.push_back(std::move(finding));
  }
  std::uint64_t reasons = 0;
  bool watts = false, told = false;
  for (const auto& sample : seen)
    reasons |= sample.throttle_reasons.value_or(0), watts = watts || sample.watts,
                                                    told = told || sample.throttle_reasons;
  if (reasons & kBadReasons)
    findings.push_back(
        fmt::format("throttled by the hardware, reasons {:#x}", reasons & kBadReasons));
  if (!told && std::find(required.begin(), required.end(), "throttle") != required.end())
    findings.emplace_back("no throttle reasons: whether the hardware throttled it is not known");
  if (!watts && std::find(required.begin(), required.end(), "watts") != required.end())
    findings.emplace_back("no power reading");
  return findings;
}

void compareReferences(Report& report) {
  std::map<std::pair<std::string, std::string>, std::map<std::string, std::vector<StageReport*>>>
      seen;  // by model and stage, by reference
  for (auto& device : report.devices)
    for (auto& stage : device.stages)
      if (!stage.reference.empty())
        seen[{device.identity.model, stage.name}][stage.reference].push_back(&stage);
  for (auto& [what, by_reference] : seen) {
    if (by_reference.size() < 2) continue;
    std::size_t most = 0, all = 0;
    for (const auto& [reference, stages] : by_reference)
      most = std::max(most, stages.size()), all += stages.size();
    for (auto& [reference, stages] : by_reference)
      for (auto* stage : stages)
        if (2 * most <= all)
          stage->fails(fmt::format(
              "{} devices of this model do not agree on {}: at least one of them is wrong", all,
              what.second));
        else if (stages.size() < most)
          stage->fails(fmt::format("{} of {} devices of this model agree on another result of {}",
                                   most, all, what.second));
  }
}

std::vector<Stage> productStages(Dtype dtype, std::chrono::milliseconds each) {
  std::vector<Stage> stages{{StageKind::Gemm, dtype, Operands::Integer, each}};
  if (rowOf(dtype).unit_roundoff > 0)
    stages.push_back({StageKind::Gemm, dtype, Operands::Random, each});
  return stages;
}

std::vector<Stage> usualStages(const Device& device, std::chrono::milliseconds each) {
  std::vector<Stage> stages;
  for (const auto dtype : device.dtypes())
    if (!device.isByName(dtype))
      for (auto& stage : productStages(dtype, each)) stages.push_back(stage);
  for (const auto kind : {StageKind::Memory, StageKind::Copy, StageKind::Units})
    stages.push_back({kind, Dtype::Fp32, Operands::Integer, each});
  if (!device.unitCaches().empty())
    stages.push_back({StageKind::Caches, Dtype::Fp32, Operands::Integer, each});
  return stages;
}

namespace {

/// One run: a thread a device, and what each has said so far.
class Run {
 public:
  Run(const Devices& devices, const Options& options)
      : options_(options),
        pulses_(start_),
        together_(static_cast<std::ptrdiff_t>(devices.size()), AtOnce{this}) {
    report_.seed = options.seed;
    report_.devices.resize(devices.size());
    running_.resize(devices.size());
    for (std::size_t i = 0; i < devices.size(); ++i) {
      devices_.push_back(watched(*devices[i], i, calls_, options.hang_limit));
      probes_.push_back(std::make_unique<Probe>(*devices_[i], start_));
    }
  }

  Report run() {
    {
      std::jthread watchdog;
      if (options_.on_hang)
        watchdog = std::jthread([this](std::stop_token stop) { watch(std::move(stop)); });
      Sampler sampler(probes_);
      std::vector<std::jthread> threads;
      try {
        for (std::size_t i = 0; i < devices_.size(); ++i)
          threads.emplace_back([this, i] { runDevice(i); });
      } catch (...) {  // the others would wait for those that never began
        for (auto i = threads.size(); i < devices_.size(); ++i) together_.arrive_and_drop();
        throw;
      }
    }
    for (std::size_t i = 0; i < devices_.size(); ++i)
      report_.devices[i].telemetry = probes_[i]->since(0);
    compareReferences(report_);
    return std::move(report_);
  }

 private:
  struct AtOnce {
    Run* run;
    void operator()() noexcept { run->pulses_ = Clock::now() + kBeforePulses; }
  };

  void runDevice(std::size_t i) {
    {
      auto identity = devices_[i]->identity();
      std::lock_guard lock(mutex_);
      report_.devices[i].identity = std::move(identity);
    }
    for (const auto& stage : options_.stages) {
      together_.arrive_and_wait();  // stages begin together, and so do pulses
      {
        std::lock_guard lock(mutex_);
        running_[i] = stage.name();
      }
      const auto first = probes_[i]->count();
      probes_[i]->look();
      auto done = runStageWithin(i, stage);
      probes_[i]->look();
      evaluate(done, options_, probes_[i]->since(first));
      std::lock_guard lock(mutex_);
      report_.devices[i].stages.push_back(std::move(done));
      running_[i].clear();
    }
    std::lock_guard lock(mutex_);
    evaluateMissing(report_.devices[i], options_);
  }

  /// What the host lacks while a stage runs is told as that, for the stage.
  StageReport runStageWithin(std::size_t i, const Stage& stage) {
    StageReport broken;
    broken.name = stage.name();
    broken.seed = options_.seed;
    try {
      return runStage(i, stage);
    } catch (const std::bad_alloc&) {
      broken.lacks(Outcome::Error, "not enough memory of the host for this stage");
    } catch (const std::system_error& error) {
      broken.lacks(Outcome::Error,
                   fmt::format("no thread could be started: {}; is there a limit of memory or of "
                               "processes?",
                               error.what()));
    }
    return broken;
  }

  StageReport runStage(std::size_t i, const Stage& stage) {
    auto& device = *devices_[i];
    switch (stage.kind) {
      case StageKind::Gemm:
        return runGemm(device, options_, stage, expectations_);
      case StageKind::Memory:
        return runMemory(device, options_, stage);
      case StageKind::Copy:
        return runCopies(device, options_, stage);
      case StageKind::Units:
        return runUnits(device, options_, stage);
      case StageKind::Caches:
        return runCaches(device, options_, stage);
      case StageKind::Power:
        break;
    }
    return runPower(device, options_, stage, expectations_, pulses_,
                    [this, i](Clock::time_point since) { return probes_[i]->power(since); });
  }

  /// Until a call hangs or the run is over.
  void watch(std::stop_token stop) {
    const auto every = std::min<std::chrono::milliseconds>(kSampleEvery, options_.hang_limit / 4);
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock lock(mutex);
    while (!wake.wait_for(lock, stop, every, [] { return false; }) && !stop.stop_requested())
      if (const auto call = calls_.overdue(Clock::now())) {
        options_.on_hang(hung(*call));
        return;
      }
  }

  /// What is known when a call of one device does not return: the others wait for it.
  Report hung(const PendingCall& call) {
    std::lock_guard lock(mutex_);
    auto report = report_;
    const auto& culprit = report.devices[call.device].identity;
    const auto name =
        fmt::format("{} (serial {})",
                    culprit.place.empty() ? fmt::format("device {}", call.device) : culprit.place,
                    culprit.serial.empty() ? "unknown" : culprit.serial);
    for (std::size_t i = 0; i < report.devices.size(); ++i) {
      auto& device = report.devices[i];
      device.telemetry = probes_[i]->known();
      StageReport stage;
      stage.name = running_[i].empty() ? "waiting for the other devices" : running_[i];
      stage.seed = report.seed;
      if (i == call.device)
        stage.lacks(Outcome::Timeout,
                    fmt::format("{}: no answer within {} s: {}", call.what,
                                std::chrono::ceil<std::chrono::seconds>(call.bound).count(),
                                culprit.kind == "cpu" ? kHungHost : kHungGpu));
      else
        stage.lacks(Outcome::NoData, "not finished: " + name + " does not answer");
      device.stages.push_back(std::move(stage));
    }
    compareReferences(report);
    return report;
  }

  const Options& options_;
  const Clock::time_point start_ = Clock::now();
  CallWatch calls_;
  Expectations expectations_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::vector<std::unique_ptr<Probe>> probes_;
  Clock::time_point pulses_;  ///< when all devices begin to pulse
  std::barrier<AtOnce> together_;
  std::mutex mutex_;  ///< of what follows
  Report report_;
  std::vector<std::string> running_;  ///< the stage of each device, while one runs
};

}  // namespace

Report burn(const Devices& devices, const Options& options) {
  if (devices.empty()) {
    Report none;
    none.seed = options.seed;
    return none;
  }
  return Run(devices, options).run();
}

}  // namespace muster::burn
