// SPDX-License-Identifier: Apache-2.0
// Tables in the forms that public outputs of nccl-tests and rccl-tests have; the source of each
// form is named beside it. Whole captures are read where MUSTER_TOOL_CAPTURES names a folder of
// them.
#include "validate/collective/nccl_tests_text.h"

#include "base/io/files.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

namespace muster::collective {
namespace {

using ::testing::HasSubstr;

const std::string kDevices =
    "#  Rank  0 Group  0 Pid   9878 on   n1 device  0 [0000:11:00] GPU\n"
    "#  Rank  1 Group  0 Pid   9878 on   n1 device  1 [0000:2f:00] GPU\n";
const std::string kFooter = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 12.5 \n#\n";
const std::string kHeading =
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time "
    " "
    " algbw   busbw #wrong\n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us) "
    " "
    "(GB/s)  (GB/s)\n";
const std::string kLarge =
    "  1073741824     268435456     float     sum      -1    22661   47.38   47.38      0    22658 "
    "  "
    "47.39   47.39      0\n";

std::string labelled(const std::string& text, const std::string& label) {
  std::string out;
  std::string_view rest = text;
  while (!rest.empty()) {
    const auto end = rest.find('\n');
    out += label + std::string(rest.substr(0, end)) + "\n";
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  return out;
}

struct Sample {
  const char* source;  ///< of the form
  std::string text;
  double busbw;         ///< read; 0: refused
  const char* because;  ///< refused: a part of the reason
  bool checked = true;
};

std::vector<Sample> samples() {
  const auto whole = kDevices + kHeading + kLarge + kFooter;
  return {
      {"stas00/ml-engineering, network/benchmarks", whole, 47.38, ""},
      {"`-b 8` of any release; aws-samples/awsome-distributed-training, aws-batch",
       kDevices + kHeading +
           "           8             2     float     sum      -1    164.3    0.00    0.00      0   "
           " "
           "163.3    0.00    0.00      0\n" +
           kLarge + kFooter,
       47.38, ""},
      {"alltoall_perf, sizes that round to none; NVIDIA/nccl issues",
       "# Collective test starting: alltoall_perf\n" + kDevices + kHeading +
           "           0             0     float    none      -1    24.28    0.00    0.00      0   "
           " "
           "18.51    0.00    0.00    N/A\n"
           " 17179869184     536870912     float    none      -1    41593  413.05  361.41      0   "
           " "
           "41618  412.80  361.20    N/A\n" +
           kFooter,
       361.41, ""},
      {"all_reduce_perf -c 0; microsoft/superbenchmark tests/data",
       kDevices +
           "#       size         count    type   redop    root     time   algbw   busbw  error     "
           "time   algbw   busbw  error\n"
           "  8589934592    2147483648   float     sum       0    37613  228.38  228.38    N/A    "
           "37539  228.83  228.83    N/A\n" +
           kFooter,
       228.38, "", false},
      {"2.9's deviation in place of a count; NVIDIA/nccl issue 583",
       kDevices +
           "#       size         count    type   redop     time   algbw   busbw  error     time   "
           "algbw   busbw  error\n"
           "  1073741824     268435456   float     sum    22661   47.38   47.38  2e-07    22658   "
           "47.39   47.39  5e-07\n" +
           kFooter,
       47.38, ""},
      {"all_gather of 2.10, whose heading has neither redop nor root; superbenchmark tests/data",
       kDevices +
           "#       size         count    type             time   algbw   busbw  error     time   "
           "algbw   busbw  error\n"
           "  1073741824      33554432   float           4335.5  247.66  216.71  0e+00   4274.2  "
           "251.22  219.81  0e+00\n" +
           kFooter,
       216.71, ""},
      {"a blank redop under a heading that has it; rccl-tests",
       kDevices + kHeading +
           "  1073741824      33554432   float              -1   4335.5  247.66  216.71      0   "
           "4274.2  251.22  219.81      0\n" +
           kFooter,
       216.71, ""},
      {"a blank redop under a heading without root; microsoft/superbenchmark, nccl_alltoall.log",
       kDevices +
           "#       size         count    type   redop     time   algbw   busbw  error     time   "
           "algbw   busbw  error\n"
           "           0             0   float             1.63    0.00    0.00    N/A     1.38    "
           "0.00    0.00    N/A\n"
           "  1073741824      33554432   float           4335.5  247.66  216.71  0e+00   4274.2  "
           "251.22  219.81    N/A\n" +
           kFooter,
       216.71, ""},
      {"14 columns; DCGM 4.6, testing/python3/mocks/all_reduce_perf",
       kDevices +
           "#       size         count      type   redop    root     time   algbw   busbw  #wrong  "
           " "
           "  time   algbw   busbw  #wrong  #iters\n"
           "  1073741824     268435456     float     sum      -1    22661   47.38   47.38       0  "
           " "
           " 22658   47.39   47.39       0      20\n" +
           kFooter,
       47.38, ""},
      {"-S 1: date and time behind each row; src/util.cu of 2.17",
       kDevices +
           "#       size         count      type   redop    root     time   algbw   busbw  #wrong  "
           " "
           "  time   algbw   busbw  #wrong           timestamp\n"
           "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)          "
           " "
           "  (us)  (GB/s)  (GB/s)         %Y-%m-%d %H:%M:%S\n"
           "  1073741824     268435456     float     sum      -1    22661   47.38   47.38       0  "
           " "
           " 22658   47.39   47.39       0  2026-07-09 16:03:21\n" +
           kFooter,
       47.38, ""},
      {"per-iteration columns; src/util.cu of 2.20",
       kDevices +
           "#       size         count      type   redop    root     time   algbw   busbw  #wrong  "
           " "
           "i_min    i_max    i_p99    i_cv%     time   algbw   busbw  #wrong    i_min    i_max    "
           "i_p99    i_cv%\n"
           "  1073741824     268435456     float     sum      -1    22661   47.38   47.38       0  "
           "22600.1  22710.3  22709.9     0.12    22658   47.39   47.39       0  22601.0  22712.2  "
           "22711.0     0.11\n" +
           kFooter,
       47.38, ""},
      {"mpirun --tag-output; aws-ia/terraform-aws-eks-blueprints",
       labelled("NCCL version 2.12.7+cuda11.4\n" + whole, "[1,0]<stdout>:") +
           "[1,1]<stdout>:n2:21:21 [0] NCCL INFO comm 0x7f9c rank 1 nranks 2 - Destroy COMPLETE\n"
           "[1,1]<stderr>:Test NCCL failure that another program talks about\n",
       47.38, ""},
      {"PRRTE's tags: Open MPI 5", labelled(whole, "[prterun-n1-900@1,0]<stdout>: "), 47.38, ""},
      {"srun --label; aws-samples/awsome-distributed-training, slurm", labelled(whole, "0: "),
       47.38, ""},
      {"kubectl logs --prefix", labelled(whole, "[pod/nccl-launcher/nccl] "), 47.38, ""},
      {"markdown took the number signs; NVIDIA/nccl-tests issue 249",
       " Rank  0 Group  0 Pid 127 on worker-0 device  0 [0x00] NVIDIA A10G\n"
       " Rank  1 Group  0 Pid 127 on worker-0 device  1 [0x01] NVIDIA A10G\n"
       "       size         count      type   redop    root     time   algbw   busbw #wrong     "
       "time   algbw   busbw #wrong\n" +
           kLarge + " Out of bounds values : 0 OK\n Avg bus bandwidth    : 47.38\n",
       47.38, ""},
      {"lines of NCCL_DEBUG=INFO between the rows; NVIDIA/nccl-tests issue 182",
       kDevices + kHeading +
           "n1:2832:2832 [1] NCCL INFO comm 0x55c6 rank 0 nranks 2 cudaDev 0 busId 3000\n" +
           kLarge + "n1:2832:2832 [1] NCCL INFO Destroy COMPLETE\n" + kFooter,
       47.38, ""},
      {"one GPU alone; NVIDIA/nccl-tests issues 249 and 294",
       kDevices + kHeading +
           "    33554432       8388608     float     sum      -1    25.74  1303.8    0.00      0   "
           "  "
           "0.37   89754    0.00      0\n# Out of bounds values : 0 OK\n# Avg bus bandwidth    : "
           "0\n",
       0, "one rank alone has no bus"},
      {"built without MPI: every rank by itself; NVIDIA/nccl-tests issue 107",
       kDevices + kHeading + kDevices + kHeading + kLarge + kLarge + kFooter + kFooter, 0,
       "two tables"},
      {"no rank 0's alone; the same under srun --label",
       labelled(kDevices + kHeading + kLarge, "0: ") + labelled(kHeading + kLarge + kFooter, "1: "),
       0, "two tables"},
      {"-C 1: times of the CPU; src/util.cu",
       kDevices +
           "#       size         count      type   redop    root  cputime   algbw   busbw #wrong  "
           "cputime   algbw   busbw #wrong\n" +
           kLarge + kFooter,
       0, "of the CPU"},
      {"a failure in its own words; src/common.h",
       kDevices + kHeading + kLarge +
           "n1: Test NCCL failure common.cu:1005 'unhandled system error (run with NCCL_DEBUG=INFO "
           "for details) / '\n .. n1 pid 2222: Test failure common.cu:891\n",
       0, "unhandled system error"},
      {"too many GPUs asked for; src/common.cu",
       "Invalid number of GPUs: 8 requested but only 4 were found.\nPlease check the number of "
       "processes and GPUs per process.\n",
       0, "only 4 were found"},
      {"the footer cut off", kDevices + kHeading + kLarge, 0, "footer is missing"},
      {"an older table in gigabits",
       kDevices +
           "#  size count type redop root time algbw busbw #wrong "
           "time algbw busbw #wrong\n# (B) (elements) (us) (Gb/s) "
           "(Gb/s) (us) (Gb/s) (Gb/s)\n" +
           kLarge + kFooter,
       0, "not in GB/s"},
      {"a row that lacks a column",
       kDevices + kHeading + kLarge +
           "  2147483648     536870912     float     sum      -1    "
           "45244   47.46      0    45276   47.43   47.43      0\n" +
           kFooter,
       0, "another shape"},
      {"numbers that a person made up",
       kDevices + kHeading +
           "      524288        131072     float    none      -1   "
           " 455.2   1150.0  1150.0    N/A    455.2  1150.0  "
           "1150.0    N/A\n" +
           kFooter,
       0, "another unit"},
      {"a bus bandwidth that no operation has",
       kDevices + kHeading +
           "  1073741824     268435456     float     sum   "
           "   -1    22661   47.38  473.80      0    22658 "
           "  47.39   47.39      0\n" +
           kFooter,
       0, "cannot come of"},
  };
}

TEST(NcclTestsText, readsOrRefusesForItsReason) {
  for (const auto& sample : samples()) {
    SCOPED_TRACE(sample.source);
    const auto test = parseNcclTests(sample.text);
    if (sample.busbw == 0) {
      ASSERT_FALSE(test);
      EXPECT_THAT(test.error().str(), HasSubstr(sample.because));
      continue;
    }
    ASSERT_TRUE(test) << test.error().str();
    EXPECT_DOUBLE_EQ(test->bestBusbw(), sample.busbw);
    EXPECT_EQ(test->gpus(), 2u);
    EXPECT_EQ(test->checked, sample.checked);
    EXPECT_EQ(test->wrongValues(), 0);
  }
}

TEST(NcclTestsText, whatOneProgramNeverChecksAnotherMust) {
  const auto text =
      kDevices + kHeading +
      "  1073741824      33554432     float    none      -1   4335.5  247.66  216.71   "
      "   0   4274.2  251.22  219.81    N/A\n" +
      kFooter;
  EXPECT_TRUE(parseNcclTests(text, "alltoall_perf")->checked);
  EXPECT_TRUE(parseNcclTests(text, "sendrecv_perf")->checked);
  EXPECT_FALSE(parseNcclTests(text, "all_gather_perf")->checked);
  EXPECT_FALSE(
      parseNcclTests("# Collective test starting: all_gather_perf\n" + text, "alltoall_perf")
          ->checked)
      << "what the output says counts";
  EXPECT_DOUBLE_EQ(parseNcclTests(text, "alltoall_perf")->bestBusbw(), 216.71);
}

TEST(NcclTestsText, wrongValuesCountWhereverTheyAre) {
  for (const char* count : {"1", "1e+06", "0.5"}) {
    auto text = kDevices + kHeading + kLarge + kFooter;
    text.replace(text.find("47.38      0"), 12, fmt::format("47.38  {}", count));
    const auto test = parseNcclTests(text);
    ASSERT_TRUE(test) << test.error().str();
    EXPECT_GE(test->wrongValues(), 1) << count;
  }
  auto nan = kDevices + kHeading + kLarge + kFooter;
  nan.replace(nan.find("47.38      0"), 12, "47.38    nan");
  EXPECT_FALSE(parseNcclTests(nan)->checked);
}

/// A rate that is hundreds of times what its size and time give was believed where that is little.
TEST(NcclTestsText, aRateMustComeOfItsSizeAndTime) {
  const auto row = [](const char* bytes, const char* count) {
    return kDevices + kHeading +
           fmt::format(
               "  {}     {}     float     sum      -1   4000.0  268.44  268.44      0   "
               "4000.0  268.44  268.44      0\n",
               bytes, count) +
           kFooter;
  };
  EXPECT_TRUE(parseNcclTests(row("1073741824", "268435456")));
  for (const auto& [bytes, count] :
       {std::pair("1048576", "262144"), std::pair("8", "2"), std::pair("65536", "16384")}) {
    const auto test = parseNcclTests(row(bytes, count));
    ASSERT_FALSE(test) << bytes;
    EXPECT_THAT(test.error().str(), HasSubstr("another unit?"));
  }
}

TEST(NcclTestsText, whatSaysThatItValidatesNothingIsUnchecked) {
  const auto with = [](const char* validation) {
    return parseNcclTests(
               "# nThread 1 nGpus 2 minBytes 8 maxBytes 1073741824 step: 2(factor) "
               "warmup iters: 1 iters: 20 agg iters: 1 validation: " +
               std::string(validation) + " graph: 0\n" + kDevices + kHeading + kLarge + kFooter)
        ->checked;
  };
  EXPECT_TRUE(with("1"));
  EXPECT_FALSE(with("0")) << "-c 0";
}

TEST(NcclTestsText, twoRanksOnOneGpuAreOne) {
  const auto one =
      "#  Rank  0 Group  0 Pid 1 on lab device  0 [0000:02:00] NVIDIA GeForce RTX 5090\n"
      "#  Rank  1 Group  0 Pid 2 on lab device  0 [0000:02:00] NVIDIA GeForce RTX 5090\n" +
      kHeading + kLarge + kFooter;
  EXPECT_EQ(parseNcclTests(one)->gpus(), 1u);
  EXPECT_EQ(parseNcclTests(one)->devices.size(), 2u);
}

TEST(NcclTestsText, damagedTextNeverThrows) {
  const auto text = labelled(kDevices + kHeading + kLarge + kFooter, "[1,0]<stdout>:");
  for (std::size_t at = 0; at < text.size(); ++at) {
    auto damaged = text;
    damaged[at] = static_cast<char>(at % 2 ? '\xff' : '\0');
    (void)parseNcclTests(damaged);
    (void)parseNcclTests(text.substr(at));
    (void)parseNcclTests(text.substr(0, at));
  }
}

/// `$MUSTER_TOOL_CAPTURES/nccl-tests/read/*` must be read, `.../refused/*` must not.
TEST(NcclTestsText, readsWholeCaptures) {
  const char* root = std::getenv("MUSTER_TOOL_CAPTURES");
  if (!root) GTEST_SKIP() << "MUSTER_TOOL_CAPTURES names no folder of outputs";
  int seen = 0;
  for (const char* how : {"read", "refused"})
    for (const auto& file :
         std::filesystem::directory_iterator(std::filesystem::path(root) / "nccl-tests" / how)) {
      const auto text = io::readFile(file.path(), 4u << 20);
      ASSERT_TRUE(text) << text.error().str();
      const auto test = parseNcclTests(*text);
      EXPECT_EQ(test.has_value(), std::string_view(how) == "read")
          << file.path() << ": " << (test ? "was read" : test.error().str());
      ++seen;
    }
  EXPECT_GT(seen, 0);
}

}  // namespace
}  // namespace muster::collective
