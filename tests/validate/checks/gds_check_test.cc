// SPDX-License-Identifier: Apache-2.0
// gdscheck -p. Each sample has the form of a public output, whose release and place are named.
#include "tests/validate/fake_host.h"
#include "validate/checks/gds_text.h"

#include <gmock/gmock.h>

namespace muster::validate {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using wire::CheckStatus;

std::string heading(const std::string& name) {
  const std::string rule(name.size(), '=');
  return " " + rule + "\n " + name + "\n " + rule + "\n";
}

struct Sample {
  const char* source;
  std::string head =
      " GDS release version: 1.13.0.11\n nvidia_fs version:  2.17 libcufile version: "
      "2.12\n Platform: x86_64\n";
  std::string drivers =
      " NVMe P2PDMA        : Unsupported\n NVMe               : Supported\n NVMeOF             : "
      "Unsupported\n NFS                : Supported\n WekaFS             : Unsupported\n Userspace "
      "RDMA     : Unsupported\n --Mellanox PeerDirect : Enabled\n --rdma library        : Not "
      "Loaded "
      "(libcufile_rdma.so)\n --rdma_device_status  : Up: 0 Down: 0\n";
  std::string settings =
      " properties.use_pci_p2pdma : false\n properties.use_compat_mode : true\n "
      "properties.force_compat_mode : false\n properties.posix_pool_slab_size_kb : 4 1024 16384 \n "
      "fs.lustre.posix_gds_min_kb: 0\n";
  std::string model = "NVIDIA H100 80GB HBM3 bar:1 bar size (MiB):131072", state = "Disabled";
  int gpus = 8;
  std::string platform =
      " IOMMU: disabled\n Nvidia Driver Info Status: Supported(Nvidia Open Driver Installed)\n "
      "Cuda "
      "Driver Version Installed:  12080\n Platform: R8868 G13, Arch: x86_64(Linux "
      "5.15.0-105-generic)\n Platform verification succeeded\n";

  std::string text() const {
    std::string out = head + heading("ENVIRONMENT:") + heading("DRIVER CONFIGURATION:") + drivers +
                      heading("CUFILE CONFIGURATION:") + settings + heading("GPU INFO:");
    for (int i = 0; i < gpus; ++i)
      out += fmt::format(" GPU index {} {} supports GDS{}\n", i, model,
                         state.empty() ? "" : ", IOMMU State: " + state);
    return out + heading("PLATFORM INFO:") + platform;
  }
};

class Gds : public FakeHost {
 protected:
  Verdict seen(const std::string& text, nlohmann::json params = {{"gpus", 8}}, int code = 0) {
    outputs_["/usr/local/cuda/gds/tools/gdscheck"] = {code, text, ""};
    return check("gpu.gds", params);
  }
};

TEST_F(Gds, wordsThatNobodyKnowsProveNothing) {
  const auto with = [this](const std::string& word) {
    Sample sample{.source = "1.13, with another word"};
    const std::string known = "NVMe               : Supported";
    sample.drivers.replace(sample.drivers.find(known), known.size(),
                           "NVMe               : " + word);
    return seen(sample.text());
  };
  EXPECT_EQ(with("Supported").status, CheckStatus::Pass);
  for (const char* word : {"Not Supported", "not supported", "Supported?", "Supported: no",
                           "nvfs not loaded", "Disabled, nvfs", "unsupported, nvfs", ""})
    EXPECT_NE(with(word).status, CheckStatus::Pass) << word;
  EXPECT_EQ(with("Supported?").status, CheckStatus::NoData);
  EXPECT_THAT(with("Supported?").text, HasSubstr("NVMe: \"Supported?\""));
}

TEST_F(Gds, aGpuThatIsNotSaidToBeAbleIsNone) {
  const auto with = [this](const std::string& words) {
    auto text = Sample{.source = "1.13, with other words of a GPU"}.text();
    const std::string known = "supports GDS";
    text.replace(text.find(known), known.size(), words);
    return seen(text).status;
  };
  EXPECT_EQ(with("supports GDS"), CheckStatus::Pass);
  for (const char* words : {"does not support GDS", "does not supports GDS", "not supports GDS",
                            "supports GDS: no", "supports GDS (compat only)", "supports"})
    EXPECT_NE(with(words), CheckStatus::Pass) << words;
}

TEST_F(Gds, whoNamesNoDriverTestsNone) {
  for (const char* drivers : {"", ",", " , "})
    EXPECT_EQ(seen(Sample{.source = "1.13"}.text(), {{"gpus", 8}, {"drivers", drivers}}).status,
              CheckStatus::NoData)
        << drivers;
}

TEST_F(Gds, publicOutputsAreRead) {
  const std::vector<std::tuple<Sample, const char*, bool>> samples{
      {{.source = "1.13 on eight H100, log file not writable"}, "NVMe", true},
      {{.source = "the same, NFS over RDMA"}, "NVMe, NFS", true},
      {{.source = "the same"}, "WekaFS", false},
      {{.source = "1.15 in a virtual machine with L40S: the kernel's own P2P, no nvidia_fs",
        .head = " GDS release version: 1.15.0.42\n libcufile version: 2.12\n Platform: x86_64\n",
        .drivers =
            " NVMe P2PDMA        : Supported\n NVMe               : Unsupported\n ScaTeFS     "
            "       : Unsupported\n",
        .model = "NVIDIA L40S bar:1 bar size (MiB):65536"},
       "NVMe P2PDMA",
       true},
      {{.source = "the same: it is a way of NVMe",
        .drivers = " NVMe P2PDMA        : Supported\n NVMe               : Unsupported\n"},
       "NVMe",
       true},
      {{.source = "1.14: neither", .drivers = " NVMe P2PDMA : Unsupported\n NVMe : Unsupported\n"},
       "NVMe",
       false},
      {{.source = "1.16 on a Grace node", .drivers = "NVMe : c2c, nvfs, compat\n"}, "NVMe", true},
      {{.source = "1.16 in NVIDIA's installation guide: ways, no spaces",
        .head =
            "GDS release version: 1.16.0.49\nnvidia_fs version: 2.27 nvidia_fs minimum version: "
            "2.12\nPlatform: x86_64\n",
        .drivers =
            "NVMe : nvfs, compat\nNVMeOF : compat\nFSx Lustre : Supported\nIBM Spectrum Scale "
            ": dmabuf, compat\nUserspace RDMA : Supported\n--DmaBuf support : Enabled\n"},
       "NVMe,IBM Spectrum Scale",
       true},
      {{.source = "1.16: only through the processor's memory", .drivers = "NVMe : compat\n"},
       "NVMe",
       false},
      {{.source = "1.16 with use_pci_p2pdma", .drivers = "NVMe : p2pdma, compat\n"}, "NVMe", true},
      {{.source = "1.0 of CUDA 11.4: no IOMMU on the GPUs' lines",
        .head = " GDS release version: 1.0.0.78\n nvidia_fs version:  2.7 libcufile version: 2.4\n",
        .state = ""},
       "NVMe",
       true},
      {{.source = "1.14 on GH200 without nvidia_fs: GPUs able, no storage",
        .drivers = " NVMe               : Unsupported\n NFS                : Unsupported\n",
        .state = "Pass-through or Enabled"},
       "NVMe",
       false},
  };
  for (const auto& [sample, drivers, passes] : samples) {
    SCOPED_TRACE(fmt::format("{}, {}", sample.source, drivers));
    const auto verdict = seen(
        "warn: error opening log file: Permission denied, logging will be "
        "disabled\n" +
            sample.text(),
        {{"gpus", 8}, {"drivers", drivers}});
    EXPECT_EQ(verdict.status, passes ? CheckStatus::Pass : CheckStatus::Fail) << verdict.text;
  }
}

TEST_F(Gds, whyNotIsNamed) {
  EXPECT_THAT(seen(Sample{.source = "", .drivers = "NVMe : compat\n"}.text()).text,
              HasSubstr("NVMe: compat, data go through the processor's memory"));
  EXPECT_THAT(seen(Sample{.source = ""}.text(), {{"gpus", 8}, {"drivers", "Lustre"}}).text,
              HasSubstr("knows no driver Lustre"));
  EXPECT_THAT(seen(Sample{.source = "", .gpus = 7}.text()).text,
              HasSubstr("7 of 8 GPUs are shown"));
  auto one_cannot = Sample{.source = ""}.text();
  one_cannot.replace(one_cannot.find("supports GDS", one_cannot.find("index 3")), 12,
                     "does not support GDS");
  EXPECT_THAT(seen(one_cannot).text, HasSubstr("GPU 3 does not support GDS"));
  Sample forced{.source = ""};
  forced.settings = " properties.force_compat_mode : true\n";
  EXPECT_THAT(seen(forced.text()).text, HasSubstr("force_compat_mode is true"));
  const Sample broken{.source = "a module whose symbols do not fit",
                      .platform = " IOMMU: disabled\n Platform verification error :\n"};
  EXPECT_EQ(seen(broken.text()).status, CheckStatus::Fail);
  EXPECT_THAT(seen(broken.text()).text, HasSubstr("Platform verification error"));
  EXPECT_EQ(seen(Sample{.source = ""}.text(), {{"gpus", 8}}, 1).status, CheckStatus::Fail);
}

TEST_F(Gds, anIommuIsNamedInThePass) {
  const Sample sample{.source = "1.12 on four RTX A6000",
                      .platform =
                          " IOMMU: Pass-through or enabled\n WARN: GDS is not guaranteed to "
                          "work functionally or in a performant way with iommu=on/pt\n "
                          "Platform verification succeeded\n"};
  const auto verdict = seen(sample.text());
  EXPECT_EQ(verdict.status, CheckStatus::Pass);
  EXPECT_THAT(verdict.text, HasSubstr("IOMMU Pass-through or enabled"));
}

TEST_F(Gds, whatIsNotWholeIsNoPass) {
  const auto whole = Sample{.source = ""}.text();
  const auto end = whole.rfind("succeeded") + 9;
  for (std::size_t bytes = 0; bytes < end; bytes += 13)
    EXPECT_NE(seen(whole.substr(0, bytes)).status, CheckStatus::Pass) << bytes;
  EXPECT_EQ(seen(whole + whole).status, CheckStatus::NoData) << "two outputs";
  EXPECT_EQ(seen(Sample{.source = "", .gpus = 0}.text()).status, CheckStatus::Fail);
  EXPECT_EQ(seen("").status, CheckStatus::NoData);
  EXPECT_EQ(seen("/usr/bin/env: 'python3': No such file or directory\n").status,
            CheckStatus::NoData);
  outputs_.clear();
  EXPECT_EQ(check("gpu.gds", {{"gpus", 8}}).status, CheckStatus::Error) << "not installed";
}

TEST_F(Gds, anotherPlaceAndDriversThatMayHaveSpaces) {
  outputs_["/opt/gds/gdscheck.py"] = {0, Sample{.source = ""}.text(), ""};
  EXPECT_EQ(check("gpu.gds", {{"gpus", 8}, {"program", "/opt/gds/gdscheck.py"}}).status,
            CheckStatus::Pass);
  EXPECT_FALSE(GdsPlatform::isDirect({}));
  EXPECT_FALSE(GdsPlatform::isDirect({"compat"}));
  EXPECT_TRUE(GdsPlatform::isDirect({"compat", "nvfs"}));
}

}  // namespace
}  // namespace muster::validate
