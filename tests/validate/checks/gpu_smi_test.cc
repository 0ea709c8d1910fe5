// SPDX-License-Identifier: Apache-2.0
// nvidia-smi -q -x: modes, processes, SRAM errors, the memory's temperature. The form is that of
// public captures (drivers 535 to 580 of H100 and RTX systems; names of elements from drivers 470
// on); values are ours.
#include "tests/validate/fake_host.h"
#include "validate/checks/smi_xml.h"

#include <gmock/gmock.h>

namespace muster::validate {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using wire::CheckStatus;

constexpr std::string_view kGpu = R"(
	<gpu id="00000000:0{}:00.0">
		<product_name>NVIDIA H100 80GB HBM3</product_name>
		<persistence_mode>Enabled</persistence_mode>
		<mig_mode>
			<current_mig>Disabled</current_mig>
			<pending_mig>Disabled</pending_mig>
		</mig_mode>
		<serial>165042300{}</serial>
		<uuid>GPU-00000000-0000-0000-0000-00000000000{}</uuid>
		<gpu_recovery_action>None</gpu_recovery_action>
		<fb_memory_usage>
			<total>81559 MiB</total>
			<reserved>551 MiB</reserved>
			<used>1 MiB</used>
			<free>81008 MiB</free>
		</fb_memory_usage>
		<compute_mode>Default</compute_mode>
		<ecc_mode>
			<current_ecc>Enabled</current_ecc>
			<pending_ecc>Enabled</pending_ecc>
		</ecc_mode>
		<ecc_errors>
			<volatile>
				<sram_correctable>0</sram_correctable>
				<sram_uncorrectable_parity>0</sram_uncorrectable_parity>
				<sram_uncorrectable_secded>0</sram_uncorrectable_secded>
				<dram_correctable>0</dram_correctable>
				<dram_uncorrectable>0</dram_uncorrectable>
			</volatile>
			<aggregate>
				<sram_correctable>0</sram_correctable>
				<sram_uncorrectable_parity>0</sram_uncorrectable_parity>
				<sram_uncorrectable_secded>0</sram_uncorrectable_secded>
				<sram_threshold_exceeded>No</sram_threshold_exceeded>
			</aggregate>
			<channel_repair_pending>No</channel_repair_pending>
			<tpc_repair_pending>No</tpc_repair_pending>
		</ecc_errors>
		<remapped_rows>
			<remapped_row_corr>0</remapped_row_corr>
			<remapped_row_unc>0</remapped_row_unc>
			<remapped_row_pending>No</remapped_row_pending>
			<remapped_row_failure>No</remapped_row_failure>
		</remapped_rows>
		<gpu_reset_status>
			<reset_required>No</reset_required>
			<drain_and_reset_recommended>No</drain_and_reset_recommended>
		</gpu_reset_status>
		<temperature>
			<gpu_temp>32 C</gpu_temp>
			<memory_temp>41 C</memory_temp>
			<gpu_temp_max_mem_threshold>95 C</gpu_temp_max_mem_threshold>
		</temperature>
		<processes>
		</processes>
		<accounted_processes>
		</accounted_processes>
	</gpu>)";

class GpuSmi : public FakeHost {
 protected:
  GpuSmi() { answers(); }
  /// Two GPUs; in the second one `from` is replaced.
  void answers(const std::string& from = "", const std::string& to = "") {
    std::string text = R"(<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
<nvidia_smi_log>
	<timestamp>Mon Nov 23 10:00:00 2026</timestamp>
	<driver_version>570.124.06</driver_version>
	<attached_gpus>2</attached_gpus>)";
    for (const char* digit : {"1", "2"}) {
      std::string gpu(kGpu);
      for (std::size_t at; (at = gpu.find("{}")) != std::string::npos;) gpu.replace(at, 2, digit);
      if (*digit == '2' && !from.empty()) {
        const auto at = gpu.find(from);
        ASSERT_NE(at, std::string::npos) << from;
        gpu.replace(at, from.size(), to);
      }
      text += gpu;
    }
    outputs_["nvidia-smi"] = {0, text + "\n</nvidia_smi_log>\n", ""};
  }
  /// The check fails for the second GPU, and says why.
  void failsWith(std::string_view id, const std::string& from, const std::string& to,
                 const std::string& because, json params = json::object()) {
    answers(from, to);
    const auto verdict = check(id, params);
    EXPECT_EQ(verdict.status, CheckStatus::Fail) << id << " " << to;
    EXPECT_THAT(verdict.text, HasSubstr("GPU 1 (00000000:02:00.0, serial 1650423002): "));
    EXPECT_THAT(verdict.text, HasSubstr(because));
    EXPECT_EQ(verdict.text.find("GPU 0"), std::string::npos) << verdict.text;
  }
};

constexpr std::array kIds{"gpu.memory-temperature", "gpu.processes", "gpu.settings",
                          "gpu.sram-ecc"};

TEST_F(GpuSmi, aHealthyNodePasses) {
  for (const char* id : kIds) {
    const auto verdict = check(id, {{"gpus", 2}});
    EXPECT_EQ(verdict.status, CheckStatus::Pass) << id << ": " << verdict.text;
  }
}

TEST_F(GpuSmi, withoutAnAnswerThereIsNoPass) {
  for (const char* id : kIds) {
    answers();
    EXPECT_EQ(check(id, {{"gpus", 8}}).status, CheckStatus::NoData) << "2 of 8";
    auto cut = outputs_["nvidia-smi"].out;
    for (const std::size_t length : {0ul, 40ul, cut.size() / 2, cut.size() - 5}) {
      outputs_["nvidia-smi"].out = cut.substr(0, length);
      EXPECT_EQ(check(id).status, CheckStatus::NoData) << length;
    }
    answers();
    outputs_["nvidia-smi"].code = 15;
    EXPECT_EQ(check(id).status, CheckStatus::NoData) << "a GPU has fallen off the bus";
    outputs_["nvidia-smi"] = {9, "NVIDIA-SMI has failed because it couldn't communicate", ""};
    EXPECT_EQ(check(id).status, CheckStatus::NoData);
    answers();
    auto& out = outputs_["nvidia-smi"].out;
    out.replace(out.find("<attached_gpus>2"), 16, "<attached_gpus>3");
    EXPECT_EQ(check(id).status, CheckStatus::NoData) << "it says three and shows two";
    outputs_.erase("nvidia-smi");
    EXPECT_EQ(check(id).status, CheckStatus::NoData) << "not installed";
  }
}

/// One that is shown twice stands in the place of one that is gone.
TEST_F(GpuSmi, aGpuThatIsShownTwiceIsNoPass) {
  for (const char* id : kIds)
    for (const auto& [from, to] : {std::pair{"id=\"00000000:02:00.0\"", "id=\"00000000:01:00.0\""},
                                   std::pair{"<uuid>GPU-00000000-0000-0000-0000-000000000002",
                                             "<uuid>GPU-00000000-0000-0000-0000-000000000001"}}) {
      answers(from, to);
      const auto verdict = check(id);
      EXPECT_EQ(verdict.status, CheckStatus::NoData) << id << ": " << verdict.text;
      EXPECT_THAT(verdict.text, HasSubstr("twice"));
    }
}

TEST_F(GpuSmi, modesAreAsTheyMustBe) {
  failsWith("gpu.settings", "<persistence_mode>Enabled", "<persistence_mode>Disabled",
            "persistence mode is Disabled");
  failsWith("gpu.settings", "<compute_mode>Default", "<compute_mode>Exclusive_Process",
            "compute mode is Exclusive_Process");
  failsWith("gpu.settings", "<current_mig>Disabled", "<current_mig>Enabled", "MIG is Enabled");
  failsWith("gpu.settings", "<pending_mig>Disabled", "<pending_mig>Enabled",
            "MIG becomes Enabled at the next reset");
  failsWith("gpu.settings", "<current_ecc>Enabled", "<current_ecc>Disabled", "ECC is Disabled");
  failsWith("gpu.settings", "<pending_ecc>Enabled", "<pending_ecc>Disabled",
            "ECC becomes Disabled");
  failsWith("gpu.settings", "<persistence_mode>Enabled</persistence_mode>", "",
            "persistence mode is not shown");
  answers();
  EXPECT_EQ(check("gpu.settings", {{"mig", "Enabled"}}).status, CheckStatus::Fail);
  EXPECT_EQ(check("gpu.settings", {{"compute_mode", "Prohibited"}}).status, CheckStatus::Fail);
}

TEST_F(GpuSmi, processesThatWereLeftBehindAreNamed) {
  const std::string left =
      "<processes><process_info><gpu_instance_id>N/A</gpu_instance_id><pid>8850</pid>"
      "<type>C</type><process_name>/opt/a&amp;b/python train.py</process_name>"
      "<used_memory>5189 MiB</used_memory></process_info>";
  failsWith("gpu.processes", "<processes>", left, "process 8850 (python, type C) uses 5189 MiB");
  EXPECT_EQ(check("gpu.processes", {{"allow", "Xorg,python"}}).status, CheckStatus::Pass);
  failsWith("gpu.processes", "<processes>", left, "8850", {{"allow", "pyth,on"}});
  failsWith("gpu.processes", "<used>1 MiB", "<used>40000 MiB", "no process has them");
  failsWith("gpu.processes", "<used>1 MiB", "<used>N/A", "is not shown");
  failsWith("gpu.processes", "<used>1 MiB", "<used>2 GiB", "is not shown");
  failsWith("gpu.processes", "<used>1 MiB", "<used>-1 MiB", "is not shown");
  failsWith("gpu.processes", "<processes>",
            "<processes><process_info><pid>7</pid><type>C</type><process_name>[Not Found]"
            "</process_name><used_memory>9 MiB</used_memory></process_info>",
            "process 7 ([Not Found], type C)");
  answers("<used>1 MiB", "<used>2000 MiB");
  EXPECT_THAT(check("gpu.processes").text, HasSubstr("no more than 2048 MiB in use"));
  failsWith("gpu.processes", "<processes>\n\t\t</processes>", "<processes>N/A</processes>",
            "its processes are N/A");
  failsWith("gpu.processes", "<processes>\n\t\t</processes>", "", "its processes are not shown");
}

TEST_F(GpuSmi, sramErrorsAndPendingRepairsFail) {
  failsWith("gpu.sram-ecc", "<sram_uncorrectable_parity>0", "<sram_uncorrectable_parity>1",
            "1 uncorrected SRAM errors (parity)");
  failsWith("gpu.sram-ecc", "<sram_uncorrectable_secded>0", "<sram_uncorrectable_secded>2",
            "SEC-DED");
  failsWith("gpu.sram-ecc", "<sram_threshold_exceeded>No", "<sram_threshold_exceeded>Yes",
            "SRAM threshold exceeded is Yes");
  failsWith("gpu.sram-ecc", "<sram_correctable>0", "<sram_correctable>1001", "at most 1000");
  failsWith("gpu.sram-ecc", "<dram_correctable>0", "<dram_correctable>11", "at most 10",
            {{"max_corrected", 10}});
  failsWith("gpu.sram-ecc", "<dram_uncorrectable>0", "<dram_uncorrectable>1",
            "1 uncorrected DRAM errors, at most 0");
  failsWith("gpu.sram-ecc", "<sram_correctable>0", "<sram_correctable>N/A", "are N/A");
  failsWith("gpu.sram-ecc", "<tpc_repair_pending>No", "<tpc_repair_pending>Yes",
            "tpc_repair_pending is Yes");
  failsWith("gpu.sram-ecc", "<gpu_recovery_action>None", "<gpu_recovery_action>Reset",
            "asks for: Reset");
  failsWith("gpu.sram-ecc", "<sram_correctable>0", "<sram_correctable>-1", "are -1");
  failsWith("gpu.sram-ecc", "<remapped_row_pending>No", "<remapped_row_pending>Yes",
            "remapped_row_pending is Yes");
  failsWith("gpu.sram-ecc", "<remapped_row_failure>No", "<remapped_row_failure>Yes",
            "remapped_row_failure is Yes");
  // GPUs before row remapping (a V100's words).
  for (const char* pending : {"pending_retirement", "pending_blacklist"})
    failsWith("gpu.sram-ecc", "<remapped_rows>",
              fmt::format("<retired_pages><{0}>Yes</{0}></retired_pages><remapped_rows>", pending),
              fmt::format("{} is Yes", pending));
  // As drivers up to 560 ask for it.
  failsWith("gpu.sram-ecc", "<reset_required>No", "<reset_required>Yes", "reset_required");
  failsWith("gpu.sram-ecc", "<drain_and_reset_recommended>No", "<drain_and_reset_recommended>Yes",
            "drain_and_reset_recommended");
  answers("<reset_required>No", "<reset_required>Requested functionality has been deprecated");
  EXPECT_EQ(check("gpu.sram-ecc").status, CheckStatus::Pass) << "drivers from 570 on";
}

/// The threshold decides about a GPU's life; whoever reads learns of what is below it.
TEST_F(GpuSmi, sramErrorsOfEarlierLoadsAreSaid) {
  const std::string aggregate =
      "<aggregate>\n\t\t\t\t<sram_correctable>0</sram_correctable>\n\t\t\t\t"
      "<sram_uncorrectable_parity>";
  answers(aggregate + "0", aggregate + "3");
  const auto verdict = check("gpu.sram-ecc");
  EXPECT_EQ(verdict.status, CheckStatus::Pass) << verdict.text;
  EXPECT_THAT(verdict.text, HasSubstr("GPU 1 (00000000:02:00.0, serial 1650423002): 3 uncorrected "
                                      "SRAM errors in its life, below its threshold"));
}

/// Before Ampere: one number and no threshold, as drivers write it for a Turing GPU.
TEST_F(GpuSmi, readsTheCombinedCountOfOlderGpus) {
  const auto older = [this](const char* count) {
    answers();
    auto& out = outputs_["nvidia-smi"].out;
    for (const char* gone : {"<sram_uncorrectable_secded>0</sram_uncorrectable_secded>",
                             "<sram_threshold_exceeded>No</sram_threshold_exceeded>"})
      for (std::size_t at; (at = out.find(gone)) != std::string::npos;)
        out.erase(at, std::string_view(gone).size());
    const std::string from = "<sram_uncorrectable_parity>0</sram_uncorrectable_parity>";
    for (std::size_t at; (at = out.find(from)) != std::string::npos;)
      out.replace(at, from.size(),
                  fmt::format("<sram_uncorrectable>{}</sram_uncorrectable>", count));
  };
  older("0");
  EXPECT_EQ(check("gpu.sram-ecc").status, CheckStatus::Pass) << check("gpu.sram-ecc").text;
  older("1");
  EXPECT_EQ(check("gpu.sram-ecc").status, CheckStatus::Fail);
}

TEST_F(GpuSmi, hotMemoryFails) {
  failsWith("gpu.memory-temperature", "<memory_temp>41 C", "<memory_temp>91 C",
            "the memory has 91 C, at most 90");
  failsWith("gpu.memory-temperature", "<memory_temp>41 C", "<memory_temp>N/A",
            "temperature is N/A");
  failsWith("gpu.memory-temperature", "<memory_temp>41 C", "<memory_temp>71 C", "at most 70",
            {{"max_c", 70}});
  failsWith("gpu.memory-temperature", "<gpu_temp_max_mem_threshold>95 C",
            "<gpu_temp_max_mem_threshold>45 C", "at most 40");
}

TEST_F(GpuSmi, gddrMemoryTellsNoTemperature) {
  answers();
  auto& out = outputs_["nvidia-smi"].out;
  const auto all = [&out](std::string_view from, std::string_view to) {
    for (std::size_t at = 0; (at = out.find(from, at)) != std::string::npos; at += to.size())
      out.replace(at, from.size(), to);
  };
  all("<memory_temp>41 C", "<memory_temp>N/A");
  EXPECT_EQ(check("gpu.memory-temperature").status, CheckStatus::Fail) << "an H100 has HBM";
  all("NVIDIA H100 80GB HBM3", "NVIDIA L40S");
  const auto verdict = check("gpu.memory-temperature");
  EXPECT_EQ(verdict.status, CheckStatus::Pass) << verdict.text;
  EXPECT_THAT(verdict.text, HasSubstr("no temperature is told"));
  all("NVIDIA L40S", "NVIDIA A10G");
  EXPECT_EQ(check("gpu.memory-temperature").status, CheckStatus::Pass) << "A10 of a cloud";
  all("NVIDIA A10G", "NVIDIA A30");
  EXPECT_EQ(check("gpu.memory-temperature").status, CheckStatus::Fail) << "it has HBM2";
}

TEST(SmiXml, whatIsNotWellFormedIsRefused) {
  for (const char* text :
       {"", "text", "<a>", "<a></b>", "<a><b></a></b>", "<a/><b/>", "<a></a>text", "<", "<a",
        "<>x</>", "<!-- <a></a>", "<?xml", "</a>", "<a b=\"</a>"})
    EXPECT_FALSE(parseSmiXml(text)) << text;
  std::string deep, wide = "<a>";
  for (int i = 0; i < 100'000; ++i) deep += "<a>";
  EXPECT_FALSE(parseSmiXml(deep));
  for (int i = 0; i < 600'000; ++i) wide += "<b/>";
  EXPECT_FALSE(parseSmiXml(wide + "</a>"));
  const auto good = parseSmiXml(
      "Warning: infoROM is corrupted\n<a id=\"x\"> <b>1 &lt; 2</b><!-- c --><b/></a>\n");
  ASSERT_TRUE(good) << good.error().str();
  EXPECT_EQ(good->id, "x");
  EXPECT_EQ(good->textAt("b"), "1 < 2");
  EXPECT_EQ(good->all("b").size(), 2u);
  EXPECT_EQ(good->find("b/c"), nullptr);
}

}  // namespace
}  // namespace muster::validate
