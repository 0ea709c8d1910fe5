// SPDX-License-Identifier: Apache-2.0
// The engine's evaluation, over a device whose every answer is scripted: whatever is no number,
// missing or late does not pass.
#include "tests/run_async.h"
#include "validate/burn/call_watch.h"
#include "validate/burn/cpu/cpu_device.h"
#include "validate/burn/golden.h"
#include "validate/burn/self_test.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <condition_variable>
#include <mutex>

namespace muster::burn {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// What a scripted device does.
struct Script {
  GemmRound round{1, 1e-3, 0, {}};
  std::optional<Error> broken;  ///< every preparation answers it
  std::uint64_t wrong_inputs = 0;
  double side_error = 0;  ///< added to one row sum
  std::vector<std::uint64_t> reference = {1, 2, 3, 4};
  CopyRound copied{1 << 20, 1e-3, 0, 0};
  std::vector<std::string> routes = {"here to there"};
  StepResult step{1 << 20, 1e-3, 0, {}};
  std::vector<UnitResult> units = {{0, 1, 0}, {1, 1, 0}};
  std::vector<Telemetry> samples = {{}};
  std::string model = "scripted";
  std::string kind = "fake";
  std::string place = "here";
  /// In place of `round`: by the number of the call, and whether it is to verify.
  std::function<GemmRound(int, std::uint64_t, bool)> rounds = {};
  std::function<void()> before_sample = {};
};

class ScriptedGemm final : public GemmWork {
 public:
  ScriptedGemm(const Script& script, const GemmPlan& plan) : script_(script), plan_(plan) {}
  Result<void> setGolden(std::vector<std::uint64_t> golden) override {
    return golden.empty() ? fail(ErrorCode::Internal, "no golden") : Result<void>();
  }
  Result<GemmRound> multiply(std::uint64_t products, bool verify) override {
    return script_.rounds ? script_.rounds(calls_++, products, verify) : script_.round;
  }
  Result<std::vector<std::uint64_t>> tileSums() override { return script_.reference; }
  Result<SideSums> sideSums() override {
    auto sums = expectedSides(plan_);
    sums.rows[3] += script_.side_error;
    return sums;
  }
  Result<std::uint64_t> wrongInputs() override { return script_.wrong_inputs; }

 private:
  const Script& script_;
  const GemmPlan plan_;
  int calls_ = 0;
};

class ScriptedMemory final : public MemoryWork {
 public:
  explicit ScriptedMemory(const Script& script) : script_(script) {}
  std::uint64_t bytes() const override { return 1 << 20; }
  Result<StepResult> step(const MemoryStep&, std::uint64_t) override { return script_.step; }
  Result<double> copyRate() override { return 1e9; }

 private:
  const Script& script_;
};

class ScriptedDevice final : public Device {
 public:
  explicit ScriptedDevice(Script script) : script_(std::move(script)) {}
  Identity identity() const override {
    return {script_.kind, script_.model, "S1", script_.place, 2};
  }
  std::vector<Dtype> dtypes() const override { return {Dtype::Fp32}; }
  int preferredN(Dtype) const override { return kTile; }
  Result<std::unique_ptr<GemmWork>> prepareGemm(const GemmPlan& plan) override {
    if (script_.broken) return fail(*script_.broken);
    return std::make_unique<ScriptedGemm>(script_, plan);
  }
  std::uint64_t freeBytes() const override { return 1 << 30; }
  Result<std::unique_ptr<MemoryWork>> prepareMemory(std::uint64_t) override {
    if (script_.broken) return fail(*script_.broken);
    return std::make_unique<ScriptedMemory>(script_);
  }
  std::vector<std::string> routes() const override { return script_.routes; }
  Result<CopyRound> copy(const std::string&, std::uint64_t, std::uint64_t) override {
    return script_.copied;
  }
  Result<std::vector<UnitResult>> probeUnits(std::uint64_t) override { return script_.units; }
  Telemetry sample() override {
    if (script_.before_sample) script_.before_sample();
    return script_.samples[std::min(looks_++, script_.samples.size() - 1)];
  }
  void inject(std::optional<Fault>) override {}

 private:
  const Script script_;
  std::size_t looks_ = 0;
};

Report burnScripted(std::vector<Script> scripts, Options options) {
  Devices devices;
  for (auto& script : scripts)
    devices.push_back(std::make_unique<ScriptedDevice>(std::move(script)));
  return burn(devices, options);
}
StageReport one(Script script, Stage stage, Options options = {}) {
  options.stages = {stage};
  return burnScripted({std::move(script)}, options).devices.front().stages.front();
}
constexpr Stage kInteger{StageKind::Gemm, Dtype::Fp32, Operands::Integer, {}};
constexpr Stage kRandom{StageKind::Gemm, Dtype::Fp32, Operands::Random, {}};

TEST(Engine, aGoodDevicePasses) {
  for (const auto& stage : {kInteger, kRandom, Stage{StageKind::Memory}, Stage{StageKind::Copy},
                            Stage{StageKind::Units}})
    EXPECT_EQ(one({}, stage).outcome, Outcome::Pass) << stage.name();
}

TEST(Engine, noDeviceAndNoStageAreNoPass) {
  EXPECT_EQ(burnScripted({}, {}).outcome(), Outcome::NoData);
  EXPECT_EQ(burnScripted({Script{}}, {}).outcome(), Outcome::NoData);
}

TEST(Engine, aDeviceThatNeverStartedIsNoPass) {  // gpu-burn prints OK for it
  Script script;
  script.broken = Error(ErrorCode::Unavailable, "out of memory");
  EXPECT_EQ(one(script, kInteger).outcome, Outcome::Error);
  EXPECT_EQ(one(script, {StageKind::Memory}).outcome, Outcome::Error);
  Script idle;
  idle.round.products = 0;
  EXPECT_EQ(one(idle, kInteger).outcome, Outcome::NoData);
}

TEST(Engine, corruptedOperandsFailThoughAllProductsAgree) {
  Script script;
  script.wrong_inputs = 1;
  EXPECT_EQ(one(script, kInteger).outcome, Outcome::Fail);
}

TEST(Engine, sumsThatAreOffOrNoNumberFail) {
  Script script;
  for (const double error : {kNan, HUGE_VAL, 1.0, -1.0}) {
    script.side_error = error;
    EXPECT_EQ(one(script, kRandom).outcome, Outcome::Fail) << error;
  }
  script.side_error = 1e-9;
  EXPECT_EQ(one(script, kRandom).outcome, Outcome::Pass);
}

TEST(Engine, aRateThatIsNoNumberIsBelowEveryFloor) {
  Options options;
  options.floors["gemm_fp32_gflops"] = 1;
  Script script;
  script.round.seconds = kNan;
  EXPECT_EQ(one(script, kInteger, options).outcome, Outcome::Fail);
  script.round.seconds = 10;
  EXPECT_EQ(one(script, kInteger, options).outcome, Outcome::Fail) << "slow";
  script.round.seconds = 1e-6;
  EXPECT_EQ(one(script, kInteger, options).outcome, Outcome::Pass);
}

TEST(Engine, aFloorForWhatNobodyMeasuredIsNoPass) {
  Options options;
  options.floors["gemm_fp8_gflops"] = 1;
  EXPECT_EQ(one({}, kInteger, options).outcome, Outcome::NoData);
}

TEST(Engine, oneBadTileFailsAndIsNamed) {
  Script script;
  script.round.bad_tiles = 1;
  script.round.first = {{7, true, 0, 3, 1, {}}};
  const auto stage = one(script, kInteger);
  EXPECT_EQ(stage.outcome, Outcome::Fail);
  EXPECT_NE(stage.findings.front().find("unit 7: tile 0"), std::string::npos)
      << stage.findings.front();
}

TEST(Engine, theWrongElementOfATileIsNamed) {
  Script script;
  const GemmPlan plan{Dtype::Fp32, Operands::Integer, kTile, Options{}.seed};
  const auto exact = exactTile(plan, 0);
  BadTile bad{0, true, 0, 0, 0, std::vector<double>(exact.begin(), exact.end())};
  bad.values[2 * kTile + 5] += 64;
  script.round.bad_tiles = 1;
  script.round.first = {bad};
  const auto words = one(script, kInteger).findings.front();
  EXPECT_NE(words.find("1 wrong values, first at row 2 column 5: expected"), std::string::npos)
      << words;
}

TEST(Engine, memoryCopiesAndUnitsFailOnOneFault) {
  Script script;
  script.step.wrong_words = 1;
  EXPECT_EQ(one(script, {StageKind::Memory}).outcome, Outcome::Fail);
  script.copied.bad_blocks = 1;
  EXPECT_EQ(one(script, {StageKind::Copy}).outcome, Outcome::Fail);
  script.units[1].wrong = 1;
  EXPECT_EQ(one(script, {StageKind::Units}).outcome, Outcome::Fail);
}

TEST(Engine, whatWasNotTestedIsNoPass) {
  Script script;
  script.units.pop_back();
  EXPECT_EQ(one(script, {StageKind::Units}).outcome, Outcome::NoData) << "a unit is missing";
  script.units = {{0, 1, 0}, {0, 1, 0}};
  EXPECT_EQ(one(script, {StageKind::Units}).outcome, Outcome::NoData)
      << "one unit twice is not two";
  script.routes.clear();
  EXPECT_EQ(one(script, {StageKind::Copy}).outcome, Outcome::NoData);
  script.routes = {"a to b"};
  script.copied.bytes = 0;
  EXPECT_EQ(one(script, {StageKind::Copy}).outcome, Outcome::NoData);
}

TEST(Engine, anUnfinishedMemoryTestIsSlowAndSaysItsRate) {
  auto device = makeCpuDevice();
  Devices devices;
  devices.push_back(std::move(device));
  Options options;
  options.memory_bytes = 64u << 20;
  options.stages = {
      {StageKind::Memory, Dtype::Fp32, Operands::Integer, std::chrono::milliseconds(1)}};
  const auto report = burn(devices, options);
  EXPECT_EQ(report.outcome(), Outcome::Slow);
  EXPECT_GT(report.devices[0].stages[0].values.at("memory_gbytes_per_s"), 0);
  EXPECT_FALSE(report.devices[0].stages[0].values.contains("memory_round_seconds"))
      << "no round came to its end";
}

// What was wrong with a busy machine: the duration of a measurement was the deadline of the first
// round, too.
TEST(Engine, theFirstRoundOfMemoryMayOutlastItsMeasurement) {
  Devices devices;
  devices.push_back(makeCpuDevice());
  Options options;
  options.memory_bytes = 64u << 20;
  options.memory_limit = std::chrono::minutes(10);
  options.stages = {
      {StageKind::Memory, Dtype::Fp32, Operands::Integer, std::chrono::milliseconds(1)}};
  const auto report = burn(devices, options);
  ASSERT_EQ(report.outcome(), Outcome::Pass) << toText(report);
  const auto& values = report.devices[0].stages[0].values;
  EXPECT_EQ(values.at("memory_rounds"), 1) << "the measurement was over, so no second one began";
  EXPECT_GT(values.at("memory_round_seconds"), 0.001);
}

TEST(Engine, slowMemoryWithAWrongWordIsWrong) {
  Script script;
  script.step.wrong_words = 1;
  EXPECT_EQ(
      one(script, {StageKind::Memory, Dtype::Fp32, Operands::Integer, std::chrono::milliseconds(1)})
          .outcome,
      Outcome::Fail);
}

Options quickPower() {
  Options options;
  options.pulses = 0;
  return options;
}

TEST(Engine, powerNeedsAReadingAndAMean) {
  const Stage stage{StageKind::Power, Dtype::Fp32, Operands::Random, std::chrono::milliseconds(1)};
  EXPECT_EQ(one({}, stage, quickPower()).outcome, Outcome::NoData);
  Script script;
  script.samples = {{.watts = 650, .limit_watts = 700}};
  EXPECT_EQ(one(script, stage, quickPower()).outcome, Outcome::Pass);
  script.samples = {{.watts = 600, .limit_watts = 700}};
  EXPECT_EQ(one(script, stage, quickPower()).outcome, Outcome::Fail);
  script.samples = {{.watts = kNan, .limit_watts = 700}};
  EXPECT_EQ(one(script, stage, quickPower()).outcome, Outcome::Fail);
}

// What was wrong: power pulses and the steady load were not verified at all.
TEST(Engine, aWrongProductOfAPulseFailsThePowerStage) {
  const Stage stage{StageKind::Power, Dtype::Fp32, Operands::Random, {}};
  Options options;
  options.pulses = 1, options.pulse = std::chrono::milliseconds(5);
  Script script;
  script.samples = {{.watts = 650, .limit_watts = 700}};
  int unverified = 0;
  bool spoiled = false;  // the first that is verified: on a busy machine a pulse may have no other
  script.rounds = [&unverified, &spoiled](int, std::uint64_t products, bool verify) {
    unverified += !verify;
    GemmRound round{products, 1e-3, 0, {}};
    if (verify && !std::exchange(spoiled, true))
      round.bad_tiles = 1, round.first = {{4, true, 2, 9, 0, {}}};
    return round;
  };
  const auto report = one(script, stage, options);
  EXPECT_EQ(report.outcome, Outcome::Fail);
  EXPECT_NE(report.findings.front().find("product 9 on unit 4: tile 2"), std::string::npos);
  EXPECT_EQ(unverified, 1) << "the first one alone, whose sums are compared";
  EXPECT_EQ(report.values.at("verified_share"), 1);
  script.rounds = {};
  script.side_error = 1;
  EXPECT_EQ(one(script, stage, options).outcome, Outcome::Fail) << "the first product is wrong";
}

TEST(Engine, theShareOfVerifiedProductsIsWhatTheDeviceWasAskedFor) {
  for (const auto operands : {Operands::Integer, Operands::Random})
    for (const int milliseconds : {0, 1, 30}) {
      std::uint64_t verified = 0, plain = 0;
      Script script;
      script.rounds = [&](int call, std::uint64_t products, bool verify) {
        if (verify)
          verified += products;
        else if (operands == Operands::Integer || call > 0)
          plain += products;  // the sums of the first random product are compared
        return GemmRound{products, 1e-3 * static_cast<double>(products), 0, {}};
      };
      const auto stage = one(script, {StageKind::Gemm, Dtype::Fp32, operands,
                                      std::chrono::milliseconds(milliseconds)});
      EXPECT_EQ(stage.outcome, Outcome::Pass);
      ASSERT_GT(verified, 0u);
      const auto share = static_cast<double>(verified) / static_cast<double>(verified + plain);
      EXPECT_DOUBLE_EQ(stage.values.at("verified_share"), share);
      EXPECT_GE(share, 0.99);
      EXPECT_EQ(stage.values.contains("verified_rate_share"), plain > 0);
    }
}

/// Blocks until it is opened, as a call does behind which a kernel hangs.
class Gate {
 public:
  void pass() {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return open_; });
  }
  void open() {
    std::lock_guard lock(mutex_);
    open_ = true;
    wake_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  bool open_ = false;
};

TEST(Watchdog, aCallThatDoesNotReturnIsATimeoutWithTheNameOfItsDevice) {
  Gate gate;
  Script good, hangs;
  good.place = "0000:1b:00.0", hangs.place = "0000:43:00.0";
  hangs.rounds = [&gate](int call, std::uint64_t products, bool) {
    if (call == 1) gate.pass();
    return GemmRound{products, 1e-3, 0, {}};
  };
  Options options;
  options.stages = {{StageKind::Units}, kRandom, {StageKind::Memory}};
  options.hang_limit = std::chrono::milliseconds(50);
  std::vector<Report> told;
  options.on_hang = [&](const Report& report) { told.push_back(report), gate.open(); };
  const auto ended = burnScripted({good, hangs, good}, options);
  ASSERT_EQ(told.size(), 1u);
  const auto& devices = told.front().devices;
  EXPECT_EQ(told.front().outcome(), Outcome::Timeout);
  EXPECT_EQ(devices[1].outcome(), Outcome::Timeout);
  ASSERT_EQ(devices[1].stages.size(), 2u);
  EXPECT_EQ(devices[1].stages[0].outcome, Outcome::Pass) << "what was done stays";
  EXPECT_EQ(devices[1].stages[1].name, "gemm fp32 random");
  EXPECT_NE(devices[1].stages[1].findings.front().find("products: no answer within 1 s"),
            std::string::npos)
      << devices[1].stages[1].findings.front();
  for (const std::size_t other : {0u, 2u}) {
    EXPECT_EQ(devices[other].outcome(), Outcome::NoData);
    EXPECT_NE(devices[other].stages.back().findings.front().find("0000:43:00.0 (serial S1)"),
              std::string::npos);
  }
  EXPECT_NE(toText(told.front()).find("timeout"), std::string::npos);
  EXPECT_EQ(ended.outcome(), Outcome::Pass) << "here the call did return in the end";
}

TEST(Watchdog, sensorsThatHangAreNamedToo) {
  Gate gate;
  Script script;
  script.before_sample = [&gate] { gate.pass(); };
  Options options;
  options.stages = {kInteger};
  options.hang_limit = std::chrono::milliseconds(20);
  std::string said;
  options.on_hang = [&](const Report& report) {
    said = report.devices.front().stages.back().findings.front(), gate.open();
  };
  burnScripted({script}, options);
  EXPECT_EQ(said.substr(0, 19), "reading its sensors");
}

TEST(Watchdog, onlyAGpuIsToBeReset) {
  for (const std::string kind : {"cpu", "cuda", "hip"}) {
    Gate gate;
    Script script;
    script.kind = kind;
    script.before_sample = [&gate] { gate.pass(); };
    Options options;
    options.stages = {kInteger};
    options.hang_limit = std::chrono::milliseconds(20);
    std::string said;
    options.on_hang = [&](const Report& report) {
      said = report.devices.front().stages.back().findings.front(), gate.open();
    };
    burnScripted({script}, options);
    EXPECT_EQ(said.find("XID") != std::string::npos, kind != "cpu") << said;
    EXPECT_EQ(said.find("reset the device") != std::string::npos, kind != "cpu") << said;
  }
}

/// What was wrong: the program ended without a report.
TEST(Stages, whatTheHostLacksIsAnErrorOfTheStage) {
  Options options;
  options.stages = {kInteger, {StageKind::Units}};
  Script no_memory, no_thread;
  no_memory.rounds = [](int, std::uint64_t, bool) -> GemmRound { throw std::bad_alloc(); };
  no_thread.rounds = [](int, std::uint64_t, bool) -> GemmRound {
    throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
  };
  const auto report = burnScripted({no_memory, no_thread, Script{}}, options);
  for (const std::size_t device : {0u, 1u}) {
    const auto& stages = report.devices[device].stages;
    ASSERT_EQ(stages.size(), 2u);
    EXPECT_EQ(stages[0].name, "gemm fp32 integer");
    EXPECT_EQ(stages[0].outcome, Outcome::Error);
    EXPECT_EQ(stages[1].outcome, Outcome::Pass) << "the others go on";
    EXPECT_NE(stages[0].findings.front().find(device == 0 ? "not enough memory" : "no thread"),
              std::string::npos)
        << stages[0].findings.front();
  }
  EXPECT_EQ(report.devices[2].outcome(), Outcome::Pass);
}

TEST(Watchdog, oneThatWorksIsLeftAlone) {
  Options options;
  options.stages = {kInteger, kRandom, {StageKind::Memory}, {StageKind::Copy}, {StageKind::Units}};
  options.on_hang = [](const Report&) { FAIL() << "nothing hangs"; };
  EXPECT_EQ(burnScripted({Script{}, Script{}}, options).outcome(), Outcome::Pass);
}

TEST(Watchdog, aWalkOverMemoryHasTimeByItsSize) {
  class LargeMemory final : public MemoryWork {
   public:
    explicit LargeMemory(CallWatch& watch) : watch_(watch) {}
    std::uint64_t bytes() const override { return 2ULL << 40; }
    Result<StepResult> step(const MemoryStep&, std::uint64_t) override {
      const auto now = std::chrono::steady_clock::now();
      soon = watch_.overdue(now + std::chrono::minutes(30)).has_value();
      late = watch_.overdue(now + std::chrono::hours(6)).has_value();
      return StepResult{};
    }
    Result<double> copyRate() override { return 1.0; }
    bool soon = false, late = false;

   private:
    CallWatch& watch_;
  };
  class Holder final : public Device {
   public:
    explicit Holder(CallWatch& watch) : watch_(watch) {}
    Identity identity() const override { return {}; }
    std::vector<Dtype> dtypes() const override { return {}; }
    int preferredN(Dtype) const override { return kTile; }
    Result<std::unique_ptr<GemmWork>> prepareGemm(const GemmPlan&) override {
      return fail(ErrorCode::NotFound, "none");
    }
    std::uint64_t freeBytes() const override { return 0; }
    Result<std::unique_ptr<MemoryWork>> prepareMemory(std::uint64_t) override {
      auto made = std::make_unique<LargeMemory>(watch_);
      memory = made.get();
      return made;
    }
    std::vector<std::string> routes() const override { return {}; }
    Result<CopyRound> copy(const std::string&, std::uint64_t, std::uint64_t) override {
      return CopyRound{};
    }
    Result<std::vector<UnitResult>> probeUnits(std::uint64_t) override {
      return std::vector<UnitResult>();
    }
    Telemetry sample() override { return {}; }
    void inject(std::optional<Fault>) override {}
    LargeMemory* memory = nullptr;

   private:
    CallWatch& watch_;
  };
  CallWatch watch;
  Holder device(watch);
  const auto seen = watched(device, 0, watch, std::chrono::seconds(120));
  auto work = seen->prepareMemory(2ULL << 40);
  ASSERT_TRUE(work);
  ASSERT_TRUE((*work)->step({}, 0));
  EXPECT_FALSE(device.memory->soon) << "2 TiB take 36 minutes at 2 GB/s, read and written";
  EXPECT_TRUE(device.memory->late);
  EXPECT_FALSE(watch.overdue(std::chrono::steady_clock::now() + std::chrono::hours(99)))
      << "it has returned";
}

Telemetry counters(std::uint64_t thermal_ns, std::uint64_t hardware_ns, std::uint64_t ecc,
                   std::uint64_t reasons = 0x4) {
  return {.watts = 500,
          .throttle_thermal_ns = thermal_ns,
          .throttle_hardware_ns = hardware_ns,
          .throttle_reasons = reasons,
          .ecc_uncorrected = ecc};
}

TEST(Sensors, heldBackByPowerAloneIsNoFault) {
  EXPECT_TRUE(evaluateSensors({counters(9, 9, 9), counters(9, 9, 9)}, {"ecc", "throttle", "watts"})
                  .empty());
}
TEST(Sensors, growthOfACounterIsAFault) {
  EXPECT_EQ(evaluateSensors({counters(0, 0, 0), counters(1, 0, 0)}, {}).size(), 1u);
  EXPECT_EQ(evaluateSensors({counters(0, 0, 0), counters(0, 1, 1)}, {}).size(), 2u);
}
TEST(Sensors, combinedBitsAreSeen) {  // a comparison by equality misses them
  EXPECT_EQ(evaluateSensors({counters(0, 0, 0, 0x4 | 0x40)}, {}).size(), 1u);
}
TEST(Sensors, aCounterThatGoesBackIsAReset) {
  EXPECT_NE(evaluateSensors({counters(0, 0, 5), counters(0, 0, 0)}, {}).front().find("reset"),
            std::string::npos);
}
TEST(Sensors, whatIsRequiredAndMissingIsAFinding) {
  EXPECT_TRUE(evaluateSensors({{}}, {}).empty());
  EXPECT_EQ(evaluateSensors({{}}, {"ecc", "throttle", "watts"}).size(), 4u);
}

TEST(References, theMinorityIsNamed) {
  Script good, bad;
  bad.reference[0] = 99;
  Options options;
  options.stages = {kRandom};
  const auto report = burnScripted({good, bad, good}, options);
  EXPECT_EQ(report.devices[0].outcome(), Outcome::Pass);
  EXPECT_EQ(report.devices[1].outcome(), Outcome::Fail);
  EXPECT_EQ(report.devices[2].outcome(), Outcome::Pass);
}
TEST(References, twoThatDifferAreBothInDoubt) {
  Script good, bad;
  bad.reference[0] = 99;
  Options options;
  options.stages = {kRandom};
  const auto report = burnScripted({good, bad}, options);
  EXPECT_EQ(report.devices[0].outcome(), Outcome::Fail);
  EXPECT_EQ(report.devices[1].outcome(), Outcome::Fail);
  bad.model = "another";
  EXPECT_EQ(burnScripted({good, bad}, options).outcome(), Outcome::Pass)
      << "other models may round otherwise";
}

TEST(BurnReport, saysWhoAndHowToRepeat) {
  Options options;
  options.stages = {kInteger, kRandom};
  options.seed = 12345;
  const auto json = toJson(burnScripted({Script{}}, options));
  EXPECT_EQ(json["outcome"], "pass");
  const auto& device = json["devices"][0];
  EXPECT_EQ(device["serial"], "S1");
  EXPECT_EQ(device["stages"][0]["seed"], 12345);
  EXPECT_EQ(device["stages"][0]["golden"].get<std::string>().size(), 64u);
  EXPECT_EQ(device["stages"][1]["reference"].get<std::string>().size(), 64u);
  EXPECT_GE(device["telemetry"].size(), 4u);
}

TEST(SelfTestOfTheHost, catchesEveryKindOfFault) {
  test::TempFolder no_sensors;  // a machine that is throttled by heat while the test runs is no
                                // fault of the self-test
  Devices devices;
  devices.push_back(makeCpuDevice(0, no_sensors.path()));
  const auto result = selfTest(devices, 0, false);
  EXPECT_TRUE(result.good()) << result.missed();
  EXPECT_GE(result.rows.size(), 20u);
  ASSERT_TRUE(devices.front()) << "the device is given back";
}

TEST(SelfTestOfTheHost, aDeviceThatHidesFaultsIsFound) {
  Devices devices;
  devices.push_back(std::make_unique<ScriptedDevice>(Script{}));
  EXPECT_FALSE(selfTest(devices, 0, false).good());
}

}  // namespace
}  // namespace muster::burn
