// SPDX-License-Identifier: Apache-2.0
// Leases and neighbours as dnsmasq and the kernel write them. The lines are of dnsmasq 2.90 and
// Linux 6.1.
#include "gateway/network_evidence.h"

#include "base/ip_address.h"

#include "base/io/files.h"
#include "tests/run_async.h"

namespace muster::agent {
namespace {

const Mac kMac = *Mac::parse("52:54:00:00:00:01");

class NetworkEvidenceTest : public ::testing::Test {
 protected:
  void write(const char* name, const std::string& text) {
    ASSERT_TRUE(io::writeFileAtomic(folder / name, text));
  }
  test::TempFolder folder;
  std::unique_ptr<gateway::NetworkEvidence> evidence =
      gateway::makeNetworkEvidence(folder / "leases", folder / "arp");
};

TEST_F(NetworkEvidenceTest, leasesAreFoundByMac) {
  const auto none = evidence->leaseOf(kMac);
  ASSERT_TRUE(none) << "before the first lease there is no file";
  EXPECT_FALSE(*none);
  write("leases",
        "1764000000 52:54:00:00:00:02 10.20.1.2 gpu002 01:52:54:00:00:00:02\n"
        "duid 00:01\n"
        "1764003600 52:54:00:00:00:01 10.20.1.1 gpu001 *\n");
  const auto lease = evidence->leaseOf(kMac);
  ASSERT_TRUE(lease && *lease);
  EXPECT_EQ((*lease)->address.str(), "10.20.1.1");
  EXPECT_EQ((*lease)->expires, "1764003600");
  EXPECT_FALSE(*evidence->leaseOf(*Mac::parse("52:54:00:00:00:03")));
}

TEST_F(NetworkEvidenceTest, neighboursAreComparedAndQuestionsWithoutAnAnswerAreNone) {
  const auto at = *Ipv4::parse("10.20.1.1");
  EXPECT_EQ(evidence->neighbour(at, kMac).error().code(), ErrorCode::Unavailable);
  const std::string head =
      "IP address       HW type     Flags       HW address            Mask     Device\n";
  write("arp",
        head + "10.20.1.1        0x1         0x2         52:54:00:00:00:01     *        br0\n");
  EXPECT_EQ(*evidence->neighbour(at, kMac), gateway::NeighbourMatch::Same);
  EXPECT_EQ(*evidence->neighbour(*Ipv4::parse("10.20.1.11"), kMac),
            gateway::NeighbourMatch::Absent);
  write("arp",
        head + "10.20.1.1        0x1         0x2         52:54:00:00:00:66     *        br0\n");
  EXPECT_EQ(*evidence->neighbour(at, kMac), gateway::NeighbourMatch::Other);
  write("arp",
        head + "10.20.1.1        0x1         0x0         52:54:00:00:00:01     *        br0\n");
  EXPECT_EQ(*evidence->neighbour(at, kMac), gateway::NeighbourMatch::Absent);
}

}  // namespace
}  // namespace muster::agent
