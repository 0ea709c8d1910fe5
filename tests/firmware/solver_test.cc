// SPDX-License-Identifier: Apache-2.0
// The solver: by example, and against a search of all combinations on random baselines.
#include "firmware/solver.h"
#include "firmware/baselines.h"
#include "inventory/model/firmware.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

namespace muster::firmware {
namespace {

using inventory::FirmwareBaseline;
using inventory::FirmwareComponent;
using inventory::FirmwareConstraint;

FirmwareBaseline baselineWith(std::vector<FirmwareComponent> components,
                              std::vector<std::string> order,
                              const std::vector<std::string>& constraints) {
  FirmwareBaseline baseline;
  baseline.name = "test";
  baseline.declared_order = order.size();
  for (const auto& component : components)
    if (std::find(order.begin(), order.end(), component.name) == order.end())
      order.push_back(component.name);
  baseline.components = std::move(components);
  baseline.order = std::move(order);
  for (const auto& text : constraints) {
    auto constraint = FirmwareConstraint::parse(text);
    EXPECT_TRUE(constraint) << text;
    baseline.constraints.push_back(*constraint);
  }
  return baseline;
}

FirmwareComponent at(const std::string& name, const std::string& version) {
  return {name, version, "/f/" + name, std::string(64, 'a')};
}

/// "BMC>2 | BIOS>5,CPLD>3 ac-cycle"
std::string wordsOf(const Schedule& schedule) {
  std::string out;
  for (const auto& wave : schedule.waves) {
    if (!out.empty()) out += " | ";
    for (const auto& step : wave.steps)
      out += (&step == &wave.steps.front() ? "" : ",") + step.component->name + ">" + step.to;
    out += " " + std::string(toString(wave.activation));
  }
  return out;
}

TEST(FirmwareVersions, compareAsVendorsCountThem) {
  using inventory::compareVersions;
  EXPECT_TRUE(compareVersions("0x9", "0x14") < 0);
  EXPECT_TRUE(compareVersions("96.00.9F.00.01", "96.00.A1.00.04") < 0);
  EXPECT_TRUE(compareVersions("1.4.9", "1.4.10") < 0);
  EXPECT_TRUE(compareVersions("1.4", "1.4.1") < 0);
  EXPECT_TRUE(compareVersions("HGX-22.10-1-rc1", "HGX-22.10-1-rc12") < 0);
  EXPECT_TRUE(compareVersions("1.01.03", "1.1.3") == 0);
  EXPECT_TRUE(compareVersions("v2.0", "2.0") == 0);
  EXPECT_TRUE(compareVersions("24.09.17", "23.11.09") > 0);
}

TEST(FirmwareVersions, areATotalOrder) {
  std::mt19937 random(5);
  const std::string letters = "0129afgxz.-_ ";
  std::vector<std::string> versions;
  for (int i = 0; i < 60; ++i) {
    std::string text;
    for (int n = static_cast<int>(random() % 9); n >= 0; --n)
      text += letters[random() % letters.size()];
    versions.push_back(text);
  }
  for (const auto& a : versions)
    for (const auto& b : versions) {
      EXPECT_EQ(inventory::compareVersions(a, b) < 0, inventory::compareVersions(b, a) > 0)
          << a << " / " << b;
      for (const auto& c : versions)
        if (inventory::compareVersions(a, b) <= 0 && inventory::compareVersions(b, c) <= 0) {
          EXPECT_TRUE(inventory::compareVersions(a, c) <= 0) << a << " / " << b << " / " << c;
        }
    }
}

TEST(FirmwareConstraints, areReadAndSaidAgain) {
  auto constraint = FirmwareConstraint::parse("HGX_FW_FPGA_0 >= 3.14 needs CPLD >= 0x14");
  ASSERT_TRUE(constraint);
  EXPECT_EQ(constraint->str(), "HGX_FW_FPGA_0 >= 3.14 needs CPLD >= 0x14");
  EXPECT_EQ(FirmwareConstraint::parse("System ROM<2.0  excludes  iLO 6 = 1.5")->str(),
            "System ROM < 2.0 excludes iLO 6 = 1.5");
  for (const char* bad : {"", "A needs B", "A >= 1", "A >= needs B >= 1", "A >= 1 needs B >=",
                          "A >= 1 2 needs B >= 1", "A >= 1 wants B >= 2", ">= 1 needs B > 1"})
    EXPECT_FALSE(FirmwareConstraint::parse(bad)) << bad;
}

TEST(FirmwareSolver, aComponentThatAnotherNeedsComesFirstWhateverTheOrder) {
  const auto baseline =
      baselineWith({at("HGX_FW_FPGA_0", "3.14"), at("CPLD", "0x14")}, {"HGX_FW_FPGA_0", "CPLD"},
                   {"HGX_FW_FPGA_0 >= 3.14 needs CPLD >= 0x14"});
  EXPECT_EQ(wordsOf(solve(baseline, {{"HGX_FW_FPGA_0", "3.10"}, {"CPLD", "0x12"}})),
            "CPLD>0x14 ac-cycle | HGX_FW_FPGA_0>3.14 power-cycle");
}

/// As a Grace tray prints them: the left side matches components that count differently.
TEST(FirmwareSolver, aConstraintThatCannotBeComparedBlocksAndIsNeverSatisfied) {
  const std::vector<std::string> rule = {"HGX_FW_* >= 24.11 needs CPLD >= 0.1C"};
  const Versions running = {{"HGX_FW_BMC_0", "GB200Nvl-24.10-1"}, {"CPLD", "0.1B"}};
  auto bmc = at("HGX_FW_BMC_0", "GB200Nvl-24.12-8");
  const auto blind = baselineWith({bmc}, {}, rule);
  const auto blocked = solve(blind, running);
  EXPECT_EQ(wordsOf(blocked), "") << "the flash that the rule forbids was planned";
  ASSERT_TRUE(blocked.undoneOf("HGX_FW_BMC_0"));
  EXPECT_THAT(blocked.undoneOf("HGX_FW_BMC_0")->why,
              testing::AllOf(testing::HasSubstr("HGX_FW_BMC_0 GB200Nvl-24.10-1 cannot be compared "
                                                "with 24.11"),
                             testing::HasSubstr("declare `pattern`")));
  EXPECT_THAT(brokenConstraints(blind, running), testing::SizeIs(1));

  bmc.pattern = "GB200Nvl-([0-9.-]+)";
  const auto comparable = baselineWith({bmc}, {}, rule);
  const auto forbidden = solve(comparable, running);
  EXPECT_EQ(wordsOf(forbidden), "");
  EXPECT_THAT(forbidden.undoneOf("HGX_FW_BMC_0")->why, testing::HasSubstr("it would break"));
  auto cpld = at("CPLD", "0.1C");
  EXPECT_EQ(wordsOf(solve(baselineWith({bmc, cpld}, {}, rule), running)),
            "CPLD>0.1C ac-cycle | HGX_FW_BMC_0>GB200Nvl-24.12-8 power-cycle");
}

TEST(FirmwareSolver, anIntermediateVersionOfAnotherKindIsNotSkipped) {
  auto component = at("BIOS", "2.0");
  component.intermediate = {{"1.5", "/f/via", std::string(64, 'b')}};
  const auto baseline = baselineWith({component}, {}, {});
  const auto schedule = solve(baseline, {{"BIOS", "buildbrain-7"}});
  EXPECT_EQ(wordsOf(schedule), "");
  ASSERT_TRUE(schedule.undoneOf("BIOS"));
  EXPECT_THAT(schedule.undoneOf("BIOS")->why, testing::HasSubstr("cannot be compared"));
}

TEST(FirmwareSolver, whatFitsTogetherSharesAnActivation) {
  const auto baseline = baselineWith(
      {at("BMC", "2"), at("BIOS", "2"), at("NIC", "2"), at("CPLD", "2"), at("EROT", "2")}, {}, {});
  EXPECT_EQ(
      wordsOf(solve(baseline,
                    {{"BMC", "1"}, {"BIOS", "1"}, {"NIC", "1"}, {"CPLD", "1"}, {"EROT", "1"}})),
      "BMC>2 bmc-reset | BIOS>2,NIC>2 power-cycle | CPLD>2,EROT>2 ac-cycle");
}

TEST(FirmwareSolver, aWaveThatCouldBeHalfActivatedIsDivided) {
  // Sequentially fine, but if only NIC came up after a power cycle, the rule would be broken.
  const auto baseline = baselineWith({at("BIOS", "2"), at("NIC", "2")}, {"BIOS", "NIC"},
                                     {"NIC >= 2 needs BIOS >= 2"});
  EXPECT_EQ(wordsOf(solve(baseline, {{"BIOS", "1"}, {"NIC", "1"}})),
            "BIOS>2 power-cycle | NIC>2 power-cycle");
}

TEST(FirmwareSolver, powerSuppliesAndBmcsGoOneAtATime) {
  const auto baseline = baselineWith(
      {at("PSU_0", "2"), at("PSU_1", "2"), at("BMC_0", "2"), at("BMC_1", "2")}, {}, {});
  EXPECT_EQ(
      wordsOf(solve(baseline, {{"PSU_0", "1"}, {"PSU_1", "1"}, {"BMC_0", "1"}, {"BMC_1", "1"}})),
      "BMC_0>2 bmc-reset | BMC_1>2 bmc-reset | PSU_0>2 none | PSU_1>2 none");
}

TEST(FirmwareSolver, steppingStonesArePassedAndInterleaved) {
  auto bios = at("BIOS", "3");
  bios.intermediate = {{"2", "/f/bios2", std::string(64, 'b')}};
  const auto baseline = baselineWith({bios, at("BMC", "2")}, {"BIOS", "BMC"},
                                     {"BMC >= 2 needs BIOS >= 2", "BIOS >= 3 needs BMC >= 2"});
  EXPECT_EQ(wordsOf(solve(baseline, {{"BIOS", "1"}, {"BMC", "1"}})),
            "BIOS>2 power-cycle | BMC>2 bmc-reset | BIOS>3 power-cycle");
  EXPECT_EQ(wordsOf(solve(baseline, {{"BIOS", "2"}, {"BMC", "1"}})),
            "BMC>2 bmc-reset | BIOS>3 power-cycle");
}

TEST(FirmwareSolver, stepsOfOneActivationShareItAlsoAcrossStepsOfAnother) {
  // By preference alone: A>2 | B>2 | C>2 | A>3,… : the second step of A waits for B, and so does C.
  auto a = at("A", "3");
  a.intermediate = {{"2", "/f/a2", std::string(64, 'b')}};
  auto b = at("B", "2");
  b.activation = inventory::FirmwareActivation::AcCycle;
  const auto baseline = baselineWith(
      {a, b, at("C", "2"), at("D", "2")}, {},
      {"A >= 3 needs B >= 2", "C >= 2 needs A >= 2", "D >= 2 needs B >= 2", "B >= 2 needs A >= 2"});
  EXPECT_EQ(wordsOf(solve(baseline, {{"A", "1"}, {"B", "1"}, {"C", "1"}, {"D", "1"}})),
            "A>2 power-cycle | B>2 ac-cycle | A>3,C>2,D>2 power-cycle");
}

TEST(FirmwareSolver, theDeclaredOrderIsKeptAlsoWhereItCostsAReset) {
  auto cpld = at("CPLD", "2");
  const auto baseline =
      baselineWith({at("BIOS", "2"), cpld, at("NIC", "2")}, {"BIOS", "CPLD", "NIC"}, {});
  EXPECT_EQ(wordsOf(solve(baseline, {{"BIOS", "1"}, {"CPLD", "1"}, {"NIC", "1"}})),
            "BIOS>2 power-cycle | CPLD>2 ac-cycle | NIC>2 power-cycle");
  const auto free = baselineWith({at("BIOS", "2"), cpld, at("NIC", "2")}, {"BIOS", "CPLD"}, {});
  EXPECT_EQ(wordsOf(solve(free, {{"BIOS", "1"}, {"CPLD", "1"}, {"NIC", "1"}})),
            "BIOS>2,NIC>2 power-cycle | CPLD>2 ac-cycle");
}

/// Every component waits for the next one, the last for itself: no step is possible.
TEST(FirmwareSolver, twentyComponentsThatBlockEachOtherAreToldSo) {
  std::vector<FirmwareComponent> components;
  std::vector<std::string> constraints;
  Versions running;
  for (int i = 0; i < 20; ++i) {
    auto component = at(fmt::format("C{:02}", i), "3");
    component.intermediate = {{"2", "/f/via", std::string(64, 'b')}};
    running[component.name] = "1";
    components.push_back(component);
    constraints.push_back(fmt::format("C{:02} >= 3 needs C{:02} >= 3", i, (i + 1) % 20));
  }
  const auto baseline = baselineWith(components, {}, constraints);
  const auto schedule = solve(baseline, running);
  EXPECT_EQ(schedule.waves.size(), 1u);  // all their intermediate versions at once
  EXPECT_EQ(schedule.undone.size(), 20u);
  for (const auto& undone : schedule.undone)
    EXPECT_THAT(undone.why, testing::HasSubstr("needs")) << undone.component->name;
}

TEST(FirmwareSolver, theConstraintThatForbidsItIsNamed) {
  const auto baseline =
      baselineWith({at("HGX_FW_FPGA_0", "3.14"), {"CPLD", "0x14", {}, {}}, at("BIOS", "2")}, {},
                   {"HGX_FW_FPGA_0 >= 3.14 needs CPLD >= 0x14"});
  const auto schedule =
      solve(baseline, {{"HGX_FW_FPGA_0", "3.10"}, {"CPLD", "0x12"}, {"BIOS", "1"}});
  EXPECT_EQ(wordsOf(schedule), "BIOS>2 power-cycle");  // the rest is not held back
  ASSERT_TRUE(schedule.undoneOf("HGX_FW_FPGA_0"));
  EXPECT_THAT(schedule.undoneOf("HGX_FW_FPGA_0")->why,
              testing::HasSubstr("HGX_FW_FPGA_0 >= 3.14 needs CPLD >= 0x14"));
  EXPECT_THAT(schedule.undoneOf("HGX_FW_FPGA_0")->why, testing::HasSubstr("CPLD 0x12"));
  EXPECT_THAT(schedule.undoneOf("CPLD")->why, testing::HasSubstr("no file"));
}

TEST(FirmwareSolver, anUnknownComponentForbidsAndAnAbsentDriverDoesNot) {
  const auto needs_cpld = baselineWith({at("FPGA", "2")}, {}, {"FPGA >= 2 needs CPLD >= 1"});
  EXPECT_THAT(solve(needs_cpld, {{"FPGA", "1"}}).undoneOf("FPGA")->why,
              testing::HasSubstr("CPLD is not known"));
  const auto needs_driver =
      baselineWith({at("VBIOS", "96")}, {}, {"VBIOS >= 96 needs nvml.driver >= 570"});
  EXPECT_EQ(wordsOf(solve(needs_driver, {{"VBIOS", "95"}})), "VBIOS>96 power-cycle");
  EXPECT_THAT(
      solve(needs_driver, {{"VBIOS", "95"}, {"nvml.driver", "550.54"}}).undoneOf("VBIOS")->why,
      testing::HasSubstr("nvml.driver 550.54"));
}

TEST(FirmwareSolver, aForbiddenCombinationThatIsThereIsLeft) {
  const auto baseline =
      baselineWith({at("A", "2"), at("B", "2")}, {"A", "B"}, {"A >= 1 needs B >= 2"});
  EXPECT_EQ(wordsOf(solve(baseline, {{"A", "1"}, {"B", "1"}})), "A>2,B>2 power-cycle");
  EXPECT_EQ(brokenConstraints(baseline, {{"A", "1"}, {"B", "1"}}).size(), 1u);
}

TEST(UpgradePath, countsWhatTheNodeGoesThrough) {
  const auto baseline =
      baselineWith({at("BMC", "2"), at("BIOS", "2"), at("CPLD", "2"), at("NIC", "1")}, {}, {});
  const auto path =
      upgradePathOf(baseline, {{"BMC", "1"}, {"BIOS", "1"}, {"CPLD", "1"}, {"NIC", "1"}});
  const auto totals = totalsOf(path.schedule);
  EXPECT_EQ(totals.flashes, 3);
  EXPECT_EQ(totals.resets, 2);
  EXPECT_EQ(totals.ac_cycles, 1);
  EXPECT_EQ(totals.time.count(), 10 + 4 + 4 + 10 + 5 + 16);
  ASSERT_EQ(path.steps.size(), 4u);
  EXPECT_EQ(path.steps.front().component->name, "NIC");  // it is where it should be
}

// ---- against all combinations

struct Puzzle {
  FirmwareBaseline baseline;
  Versions running;
};

Puzzle puzzle(unsigned seed) {
  std::mt19937 random(seed);
  const int count = 2 + static_cast<int>(random() % 4);
  std::vector<FirmwareComponent> components;
  std::vector<std::string> constraints;
  Puzzle out;
  for (int i = 0; i < count; ++i) {
    auto component =
        at(std::string(1, static_cast<char>('A' + i)), std::to_string(2 + random() % 3));
    component.activation = static_cast<inventory::FirmwareActivation>(2 + random() % 3);
    const int running = 1 + static_cast<int>(random() % 2);
    for (int v = running + 1; v < std::stoi(component.version); ++v)
      if (random() % 2)
        component.intermediate.push_back({std::to_string(v), "/f/via", std::string(64, 'c')});
    if (random() % 12 == 0) component.file.clear(), component.intermediate.clear();
    out.running[component.name] = std::to_string(running);
    components.push_back(component);
  }
  for (int i = static_cast<int>(random() % 6); i > 0; --i) {
    const char left = static_cast<char>('A' + random() % count),
               right = static_cast<char>('A' + random() % count);
    if (left == right) continue;
    constexpr std::array kOps = {">=", "<=", "=", "!="};
    constexpr std::array kWords = {"needs", "needs", "excludes"};
    constraints.push_back(fmt::format("{} {} {} {} {} {} {}", left, kOps[random() % 4],
                                      1 + random() % 4, kWords[random() % 3], right,
                                      kOps[random() % 4], 1 + random() % 4));
  }
  out.baseline = baselineWith(std::move(components), {}, constraints);
  return out;
}

std::set<std::string> brokenSet(const FirmwareBaseline& baseline, const Versions& versions) {
  std::set<std::string> out;
  auto one = baseline;
  for (std::size_t i = 0; i < baseline.constraints.size(); ++i) {
    one.constraints = {baseline.constraints[i]};
    if (!brokenConstraints(one, versions).empty()) out.insert(std::to_string(i));
  }
  return out;
}
bool noNewBreach(const FirmwareBaseline& baseline, const Versions& before, const Versions& after) {
  const auto was = brokenSet(baseline, before), is = brokenSet(baseline, after);
  return std::includes(was.begin(), was.end(), is.begin(), is.end());
}

/// The most steps that any order of single steps reaches.
std::size_t mostSteps(const FirmwareBaseline& baseline, const Versions& running) {
  std::map<std::string, std::vector<std::string>> chains;
  for (const auto& component : baseline.components) {
    if (component.file.empty() || component.version == running.at(component.name)) continue;
    auto& chain = chains[component.name];
    for (const auto& intermediate : component.intermediate)
      if (intermediate.version > running.at(component.name)) chain.push_back(intermediate.version);
    chain.push_back(component.version);
  }
  std::size_t best = 0;
  std::set<std::string> seen;
  std::vector<std::pair<Versions, std::map<std::string, std::size_t>>> open = {{running, {}}};
  while (!open.empty()) {
    auto [versions, done] = open.back();
    open.pop_back();
    std::string key;
    std::size_t steps = 0;
    for (const auto& [name, chain] : chains) {
      key += std::to_string(done[name]) + ",";
      steps += done[name];
    }
    if (!seen.insert(key).second) continue;
    best = std::max(best, steps);
    for (const auto& [name, chain] : chains) {
      if (done[name] == chain.size()) continue;
      auto next = versions;
      next[name] = chain[done[name]];
      if (!noNewBreach(baseline, versions, next)) continue;
      auto next_done = done;
      ++next_done[name];
      open.emplace_back(std::move(next), std::move(next_done));
    }
  }
  return best;
}

/// The fewest activations that lead from `running` to `goal`, by looking at all waves there are.
std::size_t fewestWavesTo(const FirmwareBaseline& baseline, const Versions& running,
                          const Versions& goal) {
  std::map<std::string, std::vector<std::string>> lines;
  for (const auto& component : baseline.components) {
    auto& line = lines[component.name];
    line.push_back(running.at(component.name));
    for (const auto& intermediate : component.intermediate)
      if (intermediate.version > line.front()) line.push_back(intermediate.version);
    if (!component.file.empty() && component.version != line.back())
      line.push_back(component.version);
  }
  const auto next = [&](const Versions& now, const FirmwareComponent& component) {
    const auto& line = lines.at(component.name);
    const auto at = std::find(line.begin(), line.end(), now.at(component.name));
    return *(at + 1);
  };
  std::set<Versions> seen = {running}, level = {running};
  for (std::size_t waves = 0; !level.empty(); ++waves) {
    if (level.contains(goal)) return waves;
    std::set<Versions> reached;
    for (const auto& now : level)
      for (const auto kind : {Activation::BmcReset, Activation::PowerCycle, Activation::AcCycle}) {
        std::vector<const FirmwareComponent*> movable;
        for (const auto& component : baseline.components)
          if (activationOf(component) == kind && now.at(component.name) != goal.at(component.name))
            movable.push_back(&component);
        for (unsigned set = 1; set < 1u << movable.size(); ++set) {
          auto after = now;
          bool allowed = true;
          for (unsigned part = set; part > 0 && allowed; part = (part - 1) & set) {
            auto some = now;
            for (std::size_t i = 0; i < movable.size(); ++i)
              if (part >> i & 1) some[movable[i]->name] = next(now, *movable[i]);
            allowed = noNewBreach(baseline, now, some);
            if (part == set) after = some;
          }
          if (allowed && seen.insert(after).second) reached.insert(after);
        }
      }
    level = std::move(reached);
  }
  return 0;
}

class FirmwareSolverProperty : public testing::TestWithParam<unsigned> {};

TEST_P(FirmwareSolverProperty,
       neverPassesThroughAForbiddenCombinationAndGivesUpNothingThatCanBeReached) {
  for (unsigned seed = GetParam() * 400; seed < (GetParam() + 1) * 400; ++seed) {
    const auto [baseline, running] = puzzle(seed);
    const auto schedule = solve(baseline, running);
    Versions now = running;
    std::size_t steps = 0;
    for (const auto& wave : schedule.waves) {
      const auto before = now;
      ASSERT_LT(wave.steps.size(), 8u);
      for (unsigned subset = 1; subset < 1u << wave.steps.size(); ++subset) {
        auto some = before;
        for (std::size_t i = 0; i < wave.steps.size(); ++i)
          if (subset >> i & 1) some[wave.steps[i].component->name] = wave.steps[i].to;
        ASSERT_TRUE(noNewBreach(baseline, before, some))
            << "seed " << seed << ": " << wordsOf(schedule);
      }
      for (const auto& step : wave.steps) {
        ASSERT_EQ(now[step.component->name], step.from) << "seed " << seed;
        now[step.component->name] = step.to;
        ++steps;
      }
    }
    ASSERT_EQ(steps, mostSteps(baseline, running)) << "seed " << seed << ": " << wordsOf(schedule);
    ASSERT_EQ(schedule.waves.size(), fewestWavesTo(baseline, running, now))
        << "seed " << seed << ": " << wordsOf(schedule);
    for (const auto& component : baseline.components) {
      ASSERT_EQ(now[component.name] == component.version,
                schedule.undoneOf(component.name) == nullptr)
          << "seed " << seed;
      const auto* undone = schedule.undoneOf(component.name);
      ASSERT_FALSE(undone && undone->why.empty()) << "seed " << seed;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Seeds, FirmwareSolverProperty, testing::Range(0u, 8u));

}  // namespace
}  // namespace muster::firmware
