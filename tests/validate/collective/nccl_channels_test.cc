// SPDX-License-Identifier: Apache-2.0
// Lines of NCCL_DEBUG=INFO in the forms that public logs have; each with where it was seen.
#include "validate/collective/nccl_channels.h"

#include <gmock/gmock.h>

namespace muster::collective {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(NcclChannels, readsTheWayOfEach) {
  // Shaped as NCCL 2.21 to 2.28 print it in public logs of training jobs (aihub, strata).
  const auto channels = readNcclChannels(
      "n8:207009:207009 [2] NCCL INFO Bootstrap: Using eth0:10.0.0.8<0>\n"
      "n8:207009:207009 [2] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_3:1/RoCE [RO]; OOB "
      "eth0:10.0.0.8<0>\n"
      "n8:207009:207009 [2] NCCL INFO Using network IB\n"
      "n8:207009:207009 [2] NCCL INFO Channel 12/0 : 10[2] -> 9[1] via P2P/IPC\n"
      "n8:207007:207007 [0] NCCL INFO Channel 07/0 : 8[0] -> 7[7] [send] via NET/IB/0/GDRDMA\n"
      "n8:207007:207007 [0] NCCL INFO Channel 07/0 : 7[7] -> 8[0] [receive] via NET/IB/1\n"
      "n8:207007:207007 [0] NCCL INFO Channel 02 : 3[3] -> 0[0] via SHM/direct/direct\n"
      "n8:207007:207007 [0] NCCL INFO Channel 00/0 : 2[2] -> 3[3] via P2P/CUMEM/read\n"
      "n8:207007:207007 [0] NCCL INFO Connected all rings\n");
  EXPECT_EQ(channels.direct, 3u);
  EXPECT_THAT(channels.network, ElementsAre(Pair("IB", 2)));
  EXPECT_EQ(channels.gdr, 1u);
  EXPECT_THAT(channels.devices, ElementsAre(0, 1));
  EXPECT_THAT(channels.names, ElementsAre(Pair(0, "mlx5_0"), Pair(1, "mlx5_3")));
}

TEST(NcclChannels, readsOtherReleasesAndPrefixes) {
  // 2.4.8 (a public page on nvidia_peer_memory); PXN and (PCI) of 2.31's net.cc; mpirun's tags.
  const auto channels = readNcclChannels(
      "NCCL INFO Ring 00 : 3 -> 10 [send] via NET/IB/0/GDRDMA\r\n"
      "[1,0]<stdout>:n1:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via "
      "NET/IB/2(3)/GDRDMA(PCI)/Shared\n"
      "0: n1:1:1 [0] NCCL INFO Channel 01/0 : 0[1a000] -> 8[1a000] [send] via NET/Socket/0\n"
      "n1:1:1 [0] NCCL INFO Channel 01 : 0[3000] -> 1[44000] via NVL/1");
  EXPECT_EQ(channels.over("IB"), 2u);
  EXPECT_EQ(channels.gdr, 2u);
  EXPECT_EQ(channels.over("Socket"), 1u);
  EXPECT_EQ(channels.direct, 1u);
  EXPECT_THAT(channels.devices, ElementsAre(0, 2));
}

TEST(NcclChannels, whatSaysNothingIsNone) {
  for (const char* text :
       {"", "\n\n", "no channel via NET/IB/0", "NCCL INFO Channel", "NCCL INFO Channel via NET/",
        "n1:1:1 [0] NCCL INFO Using network IB\n",
        "n1:1:1 [0] NCCL WARN Channel 00/0 : 0[0] -> 1[1] [send] via NET/IB/0\n"}) {
    const auto channels = readNcclChannels(text);
    EXPECT_EQ(channels.direct, 0u) << text;
    EXPECT_EQ(channels.over("IB"), 0u) << text;
    EXPECT_THAT(channels.devices, IsEmpty()) << text;
  }
  const auto odd = readNcclChannels(
      "NCCL INFO NET/IB : Using [x]a:1 [] [7 [8]noport\n"
      "NCCL INFO Channel 0 : 0 -> 1 [send] via NET/IB/x\n");
  EXPECT_EQ(odd.over("IB"), 1u);
  EXPECT_THAT(odd.devices, IsEmpty());
  EXPECT_THAT(odd.names, IsEmpty());
}

}  // namespace
}  // namespace muster::collective
