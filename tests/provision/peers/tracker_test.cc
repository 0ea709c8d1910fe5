// SPDX-License-Identifier: Apache-2.0
#include "provision/peers/tracker.h"

#include "base/ip_address.h"

#include "base/io/http.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <set>

namespace muster::provision {
namespace {

using namespace std::chrono_literals;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const std::string kHash(20, '\x80'), kPeerId = "-MU0001-abcdefghijkl";

std::string targetOf(const std::string& hash = kHash,
                     const std::string& rest = "&port=6881&left=10") {
  return "/peers/word/announce?info_hash=" + io::percentEncode(hash) +
         "&peer_id=" + io::percentEncode(kPeerId) + rest;
}

TEST(Announce, isRead) {
  std::string every_byte;  // what percent-encoding has to carry
  for (int i = 0; i < 20; ++i) every_byte += static_cast<char>(i * 13);
  const auto read = parseAnnounce(targetOf(
      every_byte,
      "&port=6881&uploaded=0&downloaded=0&left=123456789012&event=started&compact=1&numwant=7"));
  ASSERT_TRUE(read) << read.error().str();
  EXPECT_EQ(read->info_hash, every_byte);
  EXPECT_EQ(read->peer_id, kPeerId);
  EXPECT_EQ(read->port, 6881);
  EXPECT_EQ(read->left_bytes, 123456789012u);
  EXPECT_EQ(read->event, Announce::Event::Started);
  EXPECT_EQ(read->wanted, 7u);
}

TEST(Announce, badInputIsRefusedWithTheKeyThatIsWrong) {
  const auto refusal = [](const std::string& target) {
    const auto read = parseAnnounce(target);
    EXPECT_FALSE(read) << target;
    EXPECT_TRUE(read || read.error().code() == ErrorCode::InvalidInput);
    return read ? std::string() : read.error().str();
  };
  EXPECT_THAT(refusal("/a"), HasSubstr("info_hash"));
  EXPECT_THAT(refusal(targetOf(std::string(19, 'x'))), HasSubstr("info_hash"));
  EXPECT_THAT(refusal(targetOf(std::string(21, 'x'))), HasSubstr("info_hash"));
  EXPECT_THAT(refusal("/a?info_hash=" + io::percentEncode(kHash) + "&port=1&left=1"),
              HasSubstr("peer_id"));
  for (const char* port : {"", "&port=", "&port=0", "&port=65536", "&port=-1", "&port=12x",
                           "&port=99999999999999999999999"})
    EXPECT_THAT(refusal(targetOf(kHash, std::string(port) + "&left=1")), HasSubstr("port"));
  for (const char* left : {"", "&left=", "&left=-5", "&left=a"})
    EXPECT_THAT(refusal(targetOf(kHash, std::string("&port=1") + left)), HasSubstr("left"));
  EXPECT_THAT(refusal(targetOf(kHash, "&port=1&left=1&event=exploded")), HasSubstr("event"));
  EXPECT_THAT(refusal(targetOf(kHash, "&port=1&left=1&numwant=-1")), HasSubstr("numwant"));
  EXPECT_THAT(refusal(targetOf() + "&x=" + std::string(5000, 'x')), HasSubstr("too long"));
}

class TrackerTest : public ::testing::Test {
 protected:
  static Announce said(std::uint64_t left = 1, Announce::Event event = Announce::Event::None) {
    Announce announce;
    announce.info_hash = kHash;
    announce.peer_id = kPeerId;
    announce.port = 6881;
    announce.left_bytes = left;
    announce.event = event;
    return announce;
  }
  /// Racks r0, r1, …; two racks a pod.
  std::vector<PeerAddress> announce(int rack, int unit, const Announce& announce = said()) {
    return tracker.announce(NodeName(fmt::format("gpu{}-{}", rack, unit)),
                            {fmt::format("r{}", rack), fmt::format("p{}", rack / 2)},
                            Ipv4(static_cast<std::uint32_t>(10 << 24 | rack << 8 | unit)), announce,
                            now);
  }
  static int rackOf(const PeerAddress& peer) {
    return static_cast<int>(peer.address.value() >> 8 & 0xff);
  }
  /// How many are of the same rack, of the other rack of the pod, of elsewhere.
  static std::vector<int> rings(const std::vector<PeerAddress>& peers, int rack) {
    std::vector<int> counted(3);
    for (const auto& peer : peers)
      ++counted[rackOf(peer) == rack ? 0 : rackOf(peer) / 2 == rack / 2 ? 1 : 2];
    return counted;
  }

  Tracker tracker{1};
  Tracker::Time now{1h};
};

TEST_F(TrackerTest, namesTheRackFirstThenThePodThenFewOfElsewhere) {
  for (int rack = 0; rack < 6; ++rack)
    for (int unit = 0; unit < 40; ++unit) announce(rack, unit);
  for (int rack = 0; rack < 6; ++rack) {
    const auto told = announce(rack, 0);
    EXPECT_EQ(rings(told, rack), (std::vector<int>{kRackPeers, kPodPeers, kFarPeers}));
    EXPECT_THAT(std::vector(told.begin(), told.begin() + kRackPeers),
                Each(::testing::ResultOf(rackOf, rack)))
        << "the nearest come first";
  }
}

TEST_F(TrackerTest, tellsOfMoreFromAfarWhereFewAreNear) {
  for (int rack = 0; rack < 10; ++rack) announce(2 * rack, 1);  // one a pod
  EXPECT_THAT(announce(0, 1), SizeIs(kEnoughPeers));
}

TEST_F(TrackerTest, racksHearOfEachOtherInManyWays) {
  for (int unit = 0; unit < 40; ++unit) announce(0, unit), announce(4, unit);
  std::set<std::uint32_t> across;
  for (int unit = 0; unit < 40; ++unit)
    for (const auto& peer : announce(0, unit))
      if (rackOf(peer) == 4) across.insert(peer.address.value());
  EXPECT_GT(across.size(), 15u) << "not the same two for all";
}

TEST_F(TrackerTest, aNodeWithoutAPlaceIsNearNobody) {
  for (int unit = 0; unit < 40; ++unit) announce(0, unit);
  for (int i = 0; i < 20; ++i)
    tracker.announce(NodeName(fmt::format("lost{}", i)), {},
                     Ipv4(static_cast<std::uint32_t>(i + 1)), said(), now);
  EXPECT_THAT(tracker.announce(NodeName("lost0"), {}, Ipv4(1), said(), now), SizeIs(kEnoughPeers));
}

TEST_F(TrackerTest, nobodyHearsOfItselfOrOfWhoLeft) {
  announce(0, 1);
  EXPECT_THAT(announce(0, 1), IsEmpty());
  EXPECT_THAT(announce(0, 2), SizeIs(1));
  EXPECT_THAT(announce(0, 1, said(1, Announce::Event::Stopped)), IsEmpty());
  EXPECT_THAT(announce(0, 2), IsEmpty());
}

TEST_F(TrackerTest, aRestartedNodeIsOnePeer) {
  announce(0, 1);
  auto moved = said();
  moved.port = 7000;
  announce(0, 1, moved);
  const auto told = announce(0, 2);
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(told[0].port, 7000);
}

TEST_F(TrackerTest, silentPeersAreForgotten) {
  announce(0, 1);
  now += kSilentPeerAfter;
  EXPECT_THAT(announce(0, 2), SizeIs(1));
  now += 1s;
  EXPECT_THAT(announce(0, 3), ::testing::ElementsAre(PeerAddress{Ipv4(10 << 24 | 2), 6881}));
}

TEST_F(TrackerTest, whoHasEverythingIsNotSentToOthersThatDo) {
  announce(0, 1, said(0));
  EXPECT_THAT(announce(0, 2, said(0)), IsEmpty());
  EXPECT_THAT(announce(0, 3, said(5)), SizeIs(2));
  EXPECT_EQ(tracker.count(kHash, now), (std::pair<std::size_t, std::size_t>(2, 1)));
}

TEST_F(TrackerTest, swarmsAreApartAndANodeIsInOne) {
  announce(0, 1);
  auto other = said();
  other.info_hash = std::string(20, 'z');
  EXPECT_THAT(announce(0, 2, other), IsEmpty());
  announce(0, 1, other);
  EXPECT_THAT(announce(0, 3), IsEmpty());
}

TEST(AnnounceAnswer, isBencodedWithCompactPeers) {
  EXPECT_EQ(
      announceAnswer({{*Ipv4::parse("10.1.2.3"), 6881}, {*Ipv4::parse("255.0.0.1"), 1}}, {3, 4}),
      std::string("d8:completei3e10:incompletei4e8:intervali10e12:min "
                  "intervali2e5:peers12:\x0a\x01\x02\x03\x1a\xe1\xff\x00\x00\x01\x00\x01"
                  "e",
                  85));
  EXPECT_EQ(announceRefusal("no"), "d14:failure reason2:noe");
}

}  // namespace
}  // namespace muster::provision
