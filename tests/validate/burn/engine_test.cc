// SPDX-License-Identifier: Apache-2.0
// The engine's evaluation, over a device whose every answer is scripted: whatever is no number,
// missing or late does not pass.
#include "tests/run_async.h"
#include "validate/burn/cpu/cpu_device.h"
#include "validate/burn/golden.h"
#include "validate/burn/self_test.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>

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
};

class ScriptedGemm final : public GemmWork {
 public:
  ScriptedGemm(const Script& script, const GemmPlan& plan) : script_(script), plan_(plan) {}
  Result<void> setGolden(std::vector<std::uint64_t> golden) override {
    return golden.empty() ? fail(ErrorCode::Internal, "no golden") : Result<void>();
  }
  Result<GemmRound> multiply(std::uint64_t, bool) override { return script_.round; }
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
  Identity identity() const override { return {"fake", script_.model, "S1", "here", 2}; }
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
  script.round.first = {{7, 0, 3, 1, {}}};
  const auto stage = one(script, kInteger);
  EXPECT_EQ(stage.outcome, Outcome::Fail);
  EXPECT_NE(stage.findings.front().find("unit 7: tile 0"), std::string::npos)
      << stage.findings.front();
}

TEST(Engine, theWrongElementOfATileIsNamed) {
  Script script;
  const GemmPlan plan{Dtype::Fp32, Operands::Integer, kTile, Options{}.seed};
  const auto exact = exactTile(plan, 0);
  BadTile bad{0, 0, 0, 0, std::vector<double>(exact.begin(), exact.end())};
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
