// SPDX-License-Identifier: Apache-2.0
// The routes as nodes and unknown senders call them.
#include "provision/peers/peer_service.h"
#include "provision/images/packed_image.h"

#include "base/io/files.h"
#include "inventory/model/cluster.h"
#include "provision/images/image_store.h"
#include "provision/peers/metainfo.h"
#include "tests/provision/clusters.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <thread>

namespace muster::provision {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

Async<io::ServerResponse> call(io::Handler handle, io::ServerRequest request) {
  co_return co_await handle(std::move(request));
}

class PeerServiceTest : public ::testing::Test {
 protected:
  PeerServiceTest() {
    EXPECT_TRUE(io::writeFileAtomic(folder / "pack", std::string(3 * kLeastPieceBytes, 'x')));
    image = {"bookworm", std::string(64, 'a'), folder / "pack", folder / "index", 1};
    restart();
  }
  void restart() { service = makePeerService(cluster, clock, {"http://10.20.0.1:8080", "secret"}); }

  wire::PeerParams offer(std::size_t node = 0) {
    auto offered = service->offer(cluster.nodes[node], image);
    for (const auto end = std::chrono::steady_clock::now() + 60s;
         !offered && std::chrono::steady_clock::now() < end;
         offered = service->offer(cluster.nodes[node], image))
      std::this_thread::sleep_for(1ms);  // hashed by a thread
    EXPECT_TRUE(offered);
    return offered.value_or(wire::PeerParams{});
  }

  io::ServerResponse ask(const std::string& url, const std::string& from,
                         const std::string& method = "GET", const std::string& body = {}) {
    io::ServerRequest request;
    request.method = method;
    request.target = url.substr(std::string("http://10.20.0.1:8080").size());
    request.remote_address = from;
    request.body = body;
    auto answered = test::runAsync(call(service->routes().front().handle, std::move(request)));
    EXPECT_TRUE(answered);
    return answered.value_or(io::ServerResponse{});
  }
  static std::string bodyOf(const io::ServerResponse& response) {
    return std::get<std::string>(response.body);
  }
  std::string announceOf(const wire::PeerParams& offered) {
    const auto info = readMetainfo(
        *io::readFile(folder.path() / ("peers-" + image.digest.substr(0, 16) + ".torrent")));
    EXPECT_TRUE(info);
    return offered.announce_url + "?info_hash=" + io::percentEncode(info->info_hash) +
           "&peer_id=" + std::string(20, 'p') + "&port=6881&left=7";
  }

  test::TempFolder folder;
  inventory::Cluster cluster = twoNodes();
  FakeClock clock;
  PackedImage image;
  std::unique_ptr<PeerService> service;
};

TEST_F(PeerServiceTest, admittedNodesHearOfEachOther) {
  const auto one = offer(0), two = offer(1);
  EXPECT_EQ(bodyOf(ask(announceOf(one), "10.20.1.1")),
            "d8:completei0e10:incompletei1e8:intervali10e12:min intervali2e5:peers0:e");
  EXPECT_THAT(bodyOf(ask(announceOf(two), "10.20.1.2")),
              HasSubstr(std::string("5:peers6:\x0a\x14\x01\x01\x1a\xe1", 15)));
}

TEST_F(PeerServiceTest, theMetainfoIsWhatTheTaskSays) {
  const auto offered = offer();
  const auto metainfo = bodyOf(ask(offered.metainfo_url, "10.20.1.1"));
  EXPECT_EQ(offered.metainfo_sha256, io::sha256Hex(metainfo));
  EXPECT_EQ(offered.pack_bytes, 3 * kLeastPieceBytes);
}

TEST_F(PeerServiceTest, whatCouldNotBeSharedOnceIsTriedAgain) {
  std::filesystem::rename(folder / "pack", folder / "away");
  EXPECT_FALSE(service->offer(cluster.nodes[0], image));
  for (int look = 0; look < 200; ++look) {  // a thread finds that there is no pack
    EXPECT_FALSE(service->offer(cluster.nodes[0], image));
    std::this_thread::sleep_for(1ms);
  }
  std::filesystem::rename(folder / "away", folder / "pack");
  clock.advance(std::chrono::minutes(10));
  offer();
}

TEST_F(PeerServiceTest, unknownSendersAreRefused) {
  const auto offered = offer();
  const auto announce = announceOf(offered);
  EXPECT_EQ(ask(announce, "10.20.1.2").status, 403) << "another node with this node's word";
  EXPECT_EQ(ask(announce, "not an address").status, 403);
  for (const char* target : {"/peers/", "/peers/x/announce?port=1", "/peers/../metainfo",
                             "/peers/0123456789012345678901234567890123456789/metainfo"})
    EXPECT_EQ(ask(std::string("http://10.20.0.1:8080") + target, "10.20.1.1").status, 403)
        << target;
  EXPECT_EQ(ask(offered.share_url + "?count=1", "10.20.1.2", "POST").status, 403);
  EXPECT_EQ(ask(offered.metainfo_url, "10.20.9.9").status, 403);
}

TEST_F(PeerServiceTest, onlyWhileTheNodeIsImaged) {
  const auto announce = announceOf(offer());
  EXPECT_EQ(ask(announce, "10.20.1.1").status, 200);
  clock.advance(kAdmittedFor - 1s);
  EXPECT_EQ(ask(announce, "10.20.1.1").status, 200);
  clock.advance(1s);
  EXPECT_EQ(ask(announce, "10.20.1.1").status, 403);
  offer();
  EXPECT_EQ(ask(announce, "10.20.1.1").status, 200);
  service->dismiss(cluster.nodes[0].name);
  EXPECT_EQ(ask(announce, "10.20.1.1").status, 403);
}

TEST_F(PeerServiceTest, aDismissedNodeIsNamedToNobody) {
  ask(announceOf(offer(0)), "10.20.1.1");
  const auto two = offer(1);
  service->dismiss(cluster.nodes[0].name);
  EXPECT_THAT(bodyOf(ask(announceOf(two), "10.20.1.2")), HasSubstr("5:peers0:"));
}

TEST_F(PeerServiceTest, wordsAreGoodAgainAfterARestart) {
  const auto before = offer();
  restart();
  EXPECT_EQ(ask(before.metainfo_url, "10.20.1.1").status, 403) << "nobody is imaged yet";
  EXPECT_EQ(offer(), before);
  EXPECT_EQ(ask(before.metainfo_url, "10.20.1.1").status, 200);
}

TEST_F(PeerServiceTest, wordsDifferByNodeImageAndController) {
  const auto mine = offer(0).announce_url;
  EXPECT_NE(mine, offer(1).announce_url);
  service = makePeerService(cluster, clock, {"http://10.20.0.1:8080", "another secret"});
  EXPECT_NE(mine, offer(0).announce_url);
  image.digest[0] = 'b';
  const auto other = offer(0);
  EXPECT_NE(mine, other.announce_url);
}

TEST_F(PeerServiceTest, anAnnounceForAnotherTorrentOrWithoutSenseIsRefused) {
  const auto url = offer().announce_url;
  const auto other = ask(url + "?info_hash=" + std::string(20, 'x') +
                             "&peer_id=" + std::string(20, 'p') + "&port=6881&left=7",
                         "10.20.1.1");
  EXPECT_EQ(other.status, 400);
  EXPECT_THAT(bodyOf(other),
              testing::AllOf(HasSubstr("14:failure reason"), HasSubstr("another image")));
  EXPECT_EQ(ask(url + "?port=hello", "10.20.1.1").status, 400);
}

TEST_F(PeerServiceTest, sharesAreGivenOnceAmongAllNodes) {
  const auto one = offer(0).share_url, two = offer(1).share_url;
  EXPECT_EQ(bodyOf(ask(one + "?count=2", "10.20.1.1", "POST")), R"({"count":2,"first":0})");
  EXPECT_EQ(bodyOf(ask(two + "?count=2", "10.20.1.2", "POST")), R"({"count":1,"first":2})");
  EXPECT_EQ(bodyOf(ask(one + "?count=2", "10.20.1.1", "POST")), "{}");
  for (const char* count :
       {"", "?count=", "?count=0", "?count=x", "?count=-1", "?count=99999999999999"})
    EXPECT_EQ(ask(one + count, "10.20.1.1", "POST").status, 400) << count;
  EXPECT_EQ(ask(one + "?count=1", "10.20.1.1", "GET").status, 404);
}

}  // namespace
}  // namespace muster::provision
