// SPDX-License-Identifier: Apache-2.0
// What other testers print, read fail-closed. Each case is a mistake that some tool makes: NaN
// passes, skipped passes, exit 0 on a fault, numbers of another unit, output that was cut off.
#include "validate/collective/nccl_tests.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace muster::collective {
namespace {

using nlohmann::json;

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

// Shaped as nccl-tests 2.13 prints it; the numbers are ours.
const std::string kText =
    R"(# nThread 1 nGpus 8 minBytes 536870912 maxBytes 1073741824 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0
#
# Using devices
#  Rank  0 Group  0 Pid   1000 on       host device  0 [0000:1a:00] NVIDIA H100 80GB HBM3
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
   536870912     134217728     float     sum      -1   2073.0  258.98  453.22      0   2071.5  259.17  453.55      0
  1073741824     268435456     float     sum      -1   4063.6  264.23  462.41      0   4060.2  264.46  462.80      0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 457.995
#
)";

TEST(NcclTests, readsBothPlacements) {
  const auto test = parseNcclTests(kText);
  ASSERT_TRUE(test) << test.error().str();
  ASSERT_EQ(test->rows.size(), 2u);
  EXPECT_EQ(test->rows[1].bytes, 1073741824u);
  EXPECT_DOUBLE_EQ(test->rows[1].in_place->busbw_gbytes_per_s, 462.80);
  EXPECT_DOUBLE_EQ(test->bestBusbw(), 462.41) << "the slower of both at the largest size";
  EXPECT_TRUE(test->checked);
  EXPECT_EQ(test->out_of_bounds, 0);
}

TEST(NcclTests, wrongValuesAreCounted) {
  EXPECT_EQ(parseNcclTests(replaced(kText, "462.41      0", "462.41      7"))
                ->rows[1]
                .out_of_place->wrong,
            7);
  EXPECT_EQ(parseNcclTests(replaced(kText, ": 0 OK", ": 3 FAILED"))->out_of_bounds, 3);
  EXPECT_EQ(parseNcclTests(replaced(kText, ": 0 OK", ": 0 FAILED"))->out_of_bounds, 1)
      << "the word counts too";
  auto both = replaced(kText, "462.41      0", "462.41     50");
  both = replaced(both, ": 0 OK", ": 50 FAILED");
  EXPECT_EQ(parseNcclTests(both)->wrongValues(), 50) << "fifty, told twice";
}

TEST(NcclTests, uncheckedDataIsNotChecked) {
  EXPECT_FALSE(parseNcclTests(replaced(kText, "462.41      0", "462.41    N/A"))->checked);
}

TEST(NcclTests, whatIsNoNumberIsCorrupt) {
  for (const char* bad : {"nan", "-nan", "inf", "0.00", "-1.0", "1e999", "fast"})
    EXPECT_FALSE(parseNcclTests(replaced(kText, "462.41", bad))) << bad;
  EXPECT_FALSE(parseNcclTests(replaced(kText, ": 457.995", ": nan")));
  EXPECT_FALSE(parseNcclTests(replaced(kText, ": 457.995", ": 0")));
}

TEST(NcclTests, anotherUnitIsRefused) {
  EXPECT_FALSE(
      parseNcclTests(replaced(kText, "(us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)",
                              "(us)  (Gb/s)  (Gb/s)            (us)  (Gb/s)  (Gb/s)")));
  const auto bits = parseNcclTests(replaced(kText, "4063.6  264.23", "4063.6  2113.8"));
  ASSERT_FALSE(bits);
  EXPECT_NE(bits.error().str().find("another unit"), std::string::npos) << bits.error().str();
}

TEST(NcclTests, cutOffOutputIsNoResult) {
  for (std::size_t length = 0; length < kText.find(": 457.9"); length += 7)
    EXPECT_FALSE(parseNcclTests(kText.substr(0, length))) << length;
  EXPECT_FALSE(parseNcclTests("NCCL WARN unhandled cuda error\n"));
  EXPECT_FALSE(parseNcclTests(replaced(kText, "     -1   4063.6", "   4063.6")))
      << "a row of another shape";
}

json ncclJson() {
  const json half{{"time", 4063.6}, {"alg_bw", 264.23}, {"bus_bw", 462.41}, {"nwrong", 0}};
  return {{"results",
           {{{"size", 1073741824u},
             {"count", 268435456u},
             {"out_of_place", half},
             {"in_place", half}}}},
          {"out_of_bounds", {{"count", 0}, {"okay", true}}},
          {"average_bus_bandwidth", {{"bandwidth", 462.41}, {"okay", true}}}};
}

/// As 2.17 to 2.20 write it (src/util.cu; 2.19.6 was seen to): truth as text, what was not checked
/// as null, the program in its command line, NaN as text, of each process its first GPU, and one
/// error that is empty.
json ncclJson219() {
  auto out = ncclJson();
  out["version"] = 3;
  out["args"] = {"/opt/nccl-tests/build/alltoall_perf", "-b", "8"};
  out["config"] = {{"nthreads", 2}, {"ngpus", 2}, {"devices", json::array()}};
  for (int process = 0; process < 2; ++process)
    out["config"]["devices"].push_back(
        {{"rank", process * 4},
         {"group", 0},
         {"hostname", "n1"},
         {"device", process * 4},
         {"device_hex", "0000:" + std::to_string(10 + process * 4) + ":00"}});
  out["errors"] = {""};
  out["results"][0]["in_place"]["nwrong"] = nullptr;
  out["out_of_bounds"]["okay"] = "true";
  out["average_bus_bandwidth"]["okay"] = "unchecked";
  return out;
}

TEST(NcclTests, readsTheJsonOf219) {
  const auto test = parseNcclTests(ncclJson219().dump());
  ASSERT_TRUE(test) << test.error().str();
  EXPECT_EQ(test->program, "alltoall_perf");
  EXPECT_EQ(test->gpus(), 8u);
  EXPECT_TRUE(test->checked) << "all-to-all does not check what it does in place";
  EXPECT_EQ(test->wrongValues(), 0);
  auto reduce = ncclJson219();
  reduce["args"][0] = "all_reduce_perf";
  EXPECT_FALSE(parseNcclTests(reduce.dump())->checked) << "all-reduce does";
  auto wrong = ncclJson219();
  wrong["out_of_bounds"]["okay"] = "false";
  EXPECT_EQ(parseNcclTests(wrong.dump())->wrongValues(), 1);
  auto nan = ncclJson219();
  nan["results"][0]["out_of_place"]["bus_bw"] = "nan";
  EXPECT_FALSE(parseNcclTests(nan.dump()));
  auto failed = ncclJson219();
  failed["errors"] = {"", "Test NCCL failure"};
  EXPECT_NE(parseNcclTests(failed.dump()).error().str().find("NCCL failure"), std::string::npos);
  auto cpu = ncclJson219();
  cpu["results"][0]["out_of_place"]["cpu_time"] = 3.0;
  EXPECT_NE(parseNcclTests(cpu.dump()).error().str().find("CPU"), std::string::npos);
  auto replay = ncclJson219();
  replay["results"][0]["out_of_place"] = nullptr;
  EXPECT_FALSE(parseNcclTests(replay.dump())->checked) << "nothing was checked at all";
  auto one = ncclJson219();
  one["config"]["devices"].erase(1);
  EXPECT_EQ(parseNcclTests(one.dump())->gpus(), 4u);
  for (const char* key : {"config", "args", "out_of_bounds", "results", "errors"}) {
    auto other = ncclJson219();
    other[key] = 7;
    EXPECT_NO_FATAL_FAILURE((void)parseNcclTests(other.dump())) << key;
  }
}

TEST(NcclTests, readsItsJsonTheSameWay) {
  EXPECT_DOUBLE_EQ(parseNcclTests(ncclJson().dump())->bestBusbw(), 462.41);
  auto wrong = ncclJson();
  wrong["results"][0]["in_place"]["nwrong"] = 2;
  EXPECT_EQ(parseNcclTests(wrong.dump())->rows[0].in_place->wrong, 2);
  EXPECT_EQ(parseNcclTests(wrong.dump())->wrongValues(), 2);
  wrong["results"][0]["out_of_place"]["nwrong"] = "N/A";
  EXPECT_FALSE(parseNcclTests(wrong.dump())->checked);
  for (const char* key : {"results", "out_of_bounds", "average_bus_bandwidth"}) {
    auto lacking = ncclJson();
    lacking.erase(key);
    EXPECT_FALSE(parseNcclTests(lacking.dump())) << key;
  }
  auto null = ncclJson();
  null["results"][0]["out_of_place"]["bus_bw"] = nullptr;
  EXPECT_FALSE(parseNcclTests(null.dump())) << "JSON writes NaN as null";
  EXPECT_FALSE(parseNcclTests(ncclJson().dump().substr(0, 60)));
}

}  // namespace
}  // namespace muster::collective
