// SPDX-License-Identifier: Apache-2.0
// The agent's end of a swarm in virtual time. The engine is a script: it makes the shared progress
// and marks pieces as the real one does.
#include "agent/peers/peer_client.h"

#include "agent/peers/shared_progress.h"
#include "base/io/files.h"
#include "base/io/memory.h"
#include "provision/peers/metainfo.h"
#include "tests/fakes/fake_http.h"
#include "tests/fakes/fake_process_runner.h"
#include "tests/run_async.h"
#include "tests/virtual_loop.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <fstream>

namespace muster::agent {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::uint64_t kPiece = provision::kLeastPieceBytes;
constexpr std::uint32_t kPieces = 24;
const char* const kServer = "http://server/pack";
const char* const kMirror = "http://mirror/pack";

class PeerClientTest : public ::testing::Test {
 protected:
  PeerClientTest() {
    pack.resize(kPieces * kPiece - 100);
    for (std::size_t i = 0; i < pack.size(); ++i) pack[i] = static_cast<char>(i * 31 + i / 997);
    EXPECT_TRUE(io::writeFileAtomic(folder / "pack", pack));
    auto made = provision::makeMetainfo(folder / "pack", false);
    EXPECT_TRUE(made);
    metainfo = *made;
    http.handle = [this](io::HttpRequest request) { return serve(std::move(request)); };
    params = {"http://server/metainfo", metainfo.sha256, "http://server/announce",
              "http://server/share", pack.size()};
    options.swarm.folder = folder / "swarm";
  }

  Async<io::HttpResponse> serve(io::HttpRequest request) {
    const auto path = io::pathOf(request.url.target);
    if (path == "/metainfo")
      co_return io::HttpResponse{200, {}, metainfo_served.value_or(metainfo.bytes)};
    if (path == "/share") {
      if (shares.empty()) co_return test::FakeHttp::json(200, "{}");
      const auto share = shares.front();
      shares.erase(shares.begin());
      co_return test::FakeHttp::json(200, share);
    }
    unsigned long first = 0, last = 0;
    EXPECT_EQ(std::sscanf(request.headers["Range"].c_str(), "bytes=%lu-%lu", &first, &last), 2);
    asked.push_back({request.url.host, first});
    auto body = pack.substr(first, last - first + 1);
    if (request.url.host == lying_host) body[0] = static_cast<char>(body[0] ^ 1);
    co_return io::HttpResponse{206, {}, body};
  }

  PeerSource& source() {
    if (!source_) {
      source_ =
          std::make_unique<PeerSource>(params, std::vector<std::string>{kServer, kMirror}, options,
                                       processes, loop.clock, [this] { return newClient(); });
      client_ = source_->client();
    }
    return *source_;
  }
  std::string get(std::uint64_t offset, std::uint64_t length) {
    source();
    io::HttpRequest request;
    request.url = *io::Url::parse(kServer);
    request.headers["Range"] = fmt::format("bytes={}-{}", offset, offset + length - 1);
    const auto response = loop.run(client_->send(std::move(request)));
    EXPECT_TRUE(response);
    return response ? response->body : std::string();
  }
  bool right(std::uint64_t offset, std::uint64_t length) {
    return get(offset, length) == pack.substr(offset, length);
  }

  std::unique_ptr<io::HttpClient> newClient() {
    io::TlsTrust trust;
    trust.accept_first = true;  // the fake network has one certificate for everything
    return http.client(std::move(trust));
  }

  // ---- the engine
  void makeProgress() {
    std::ofstream(options.swarm.folder / kStoreFile, std::ios::binary)
        << std::string(pack.size(), '\0');
    std::string bytes(progressBytes(kPieces), '\0');
    auto* head = new (bytes.data()) SharedProgress{};
    head->piece_bytes = kPiece;
    head->pieces = kPieces;
    std::memcpy(head->magic, kProgressMagic, sizeof kProgressMagic);
    std::ofstream(options.swarm.folder / kProgressFile, std::ios::binary) << bytes;
  }
  void mark(std::uint32_t piece, unsigned char value) {
    std::fstream file(options.swarm.folder / kProgressFile,
                      std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(sizeof(SharedProgress) + piece))
        .put(static_cast<char>(value));
    ++have;
    file.seekp(static_cast<std::streamoff>(offsetof(SharedProgress, have)))
        .write(reinterpret_cast<const char*>(&have), sizeof have);
  }
  unsigned char markOf(std::uint32_t piece) {
    return static_cast<unsigned char>(
        (*io::readFile(options.swarm.folder / kProgressFile))[sizeof(SharedProgress) + piece]);
  }
  void bring(std::uint32_t piece) {
    std::fstream file(options.swarm.folder / kStoreFile,
                      std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(piece * kPiece)) << pack.substr(piece * kPiece, kPiece);
    file.close();
    mark(piece, kHave);
  }
  /// Each piece some time after the one before; takes what is offered.
  Task<void> engine(std::vector<std::uint32_t> pieces, std::chrono::milliseconds every) {
    while (processes.daemons.empty()) {
      co_await rest(1ms);
    }
    makeProgress();
    for (const auto piece : pieces) {
      co_await rest(every);
      bring(piece);
    }
  }
  Task<bool> pass(std::chrono::milliseconds time) { return loop.clock.waitFor(time); }
  Task<void> dyingEngine() {
    co_await engine(std::vector<std::uint32_t>(1), 1ms);
    co_await rest(1s);
    processes.daemons[0]->running = false;
  }
  Task<void> rest(std::chrono::milliseconds time) { co_await loop.clock.waitFor(time); }

  test::TempFolder folder;
  test::VirtualLoop loop;
  test::FakeHttp http;
  test::FakeProcessRunner processes;
  std::string pack;
  provision::Metainfo metainfo;
  std::optional<std::string> metainfo_served;
  std::string lying_host;
  std::vector<std::string> shares;
  std::vector<std::pair<std::string, std::uint64_t>> asked;  ///< of the servers: host, offset
  wire::PeerParams params;
  PeerOptions options;
  std::uint32_t have = 0;
  std::unique_ptr<PeerSource> source_;
  std::unique_ptr<io::HttpClient> client_;
};

TEST_F(PeerClientTest, aRangeComesFromTheSwarmOnceItsPiecesAreThere) {
  loop.spawn(engine({3, 1, 2}, 1s));
  EXPECT_TRUE(right(kPiece + 5, 2 * kPiece));
  EXPECT_THAT(asked, IsEmpty());
  EXPECT_EQ(source().report().served_bytes, 2 * kPiece);
  EXPECT_THAT(processes.daemons, SizeIs(1));
  EXPECT_THAT(processes.daemons[0]->command.args,
              testing::IsSupersetOf({"--announce", "http://server/announce"}));
}

TEST_F(PeerClientTest, withoutAnEngineItIsHttp) {
  processes.refuse_start = Error(ErrorCode::NotFound, "no muster-peer here");
  EXPECT_TRUE(right(0, 1000));
  EXPECT_TRUE(right(1000, 1000));
  EXPECT_THAT(asked, SizeIs(2));
  EXPECT_FALSE(source().report().joined);
  EXPECT_THAT(source().report().why_not, HasSubstr("no muster-peer here"));
}

TEST_F(PeerClientTest, aMetainfoThatTheTaskDidNotNameIsNotBelieved) {
  metainfo_served = metainfo.bytes + "x";
  EXPECT_TRUE(right(0, 1000));
  EXPECT_THAT(processes.daemons, IsEmpty());
  EXPECT_THAT(source().report().why_not, HasSubstr("not what the task said"));
}

TEST_F(PeerClientTest, aSwarmThatBringsNothingIsNotWaitedForAndIsTakenAgainWhenItDoes) {
  loop.spawn(engine({0, 1, 2, 3}, options.patience + 3s));
  const auto begun = loop.clock.steady();
  EXPECT_TRUE(right(0, 100));
  EXPECT_THAT(asked, SizeIs(1));
  EXPECT_LT(loop.clock.steady() - begun, options.patience + 1s);
  EXPECT_TRUE(right(kPiece, 100)) << "at once: nothing has come since";
  EXPECT_THAT(asked, SizeIs(2));
  loop.run(pass(options.patience + 10s));
  EXPECT_TRUE(right(2 * kPiece, 100));
  EXPECT_EQ(source().report().asked_servers_bytes, 200u);
  EXPECT_EQ(source().report().served_bytes, 100u);
}

TEST_F(PeerClientTest, aDeadEngineIsLeftAtOnce) {
  loop.spawn(dyingEngine());
  EXPECT_TRUE(right(0, 100));
  EXPECT_TRUE(right(kPiece, 100));
  EXPECT_THAT(asked, SizeIs(1));
  EXPECT_EQ(source().swarm(), nullptr);
  EXPECT_THAT(source().report().why_not, HasSubstr("ended"));
  EXPECT_FALSE(std::filesystem::exists(options.swarm.folder)) << "its memory is given back";
}

TEST_F(PeerClientTest, whatIsAskedForAgainComesFromAServer) {
  loop.spawn(engine({0, 1, 2}, 1ms));
  EXPECT_TRUE(right(0, 2 * kPiece));
  EXPECT_TRUE(right(kPiece, kPiece)) << "the writer found it wrong";
  EXPECT_THAT(asked, SizeIs(1));
  EXPECT_THAT(source().report().why_not, HasSubstr("not right"));
}

TEST_F(PeerClientTest, whileItWaitsItFetchesItsShareForTheOthers) {
  shares = {R"({"first":5,"count":1})", R"({"first":23,"count":1})"};
  loop.spawn(engine({0}, 2s));
  EXPECT_TRUE(right(0, 100));
  EXPECT_EQ(markOf(5), kOffered);
  EXPECT_EQ(markOf(23), kOffered);
  const auto store = *io::readFile(options.swarm.folder / kStoreFile);
  EXPECT_EQ(store.substr(5 * kPiece, kPiece), pack.substr(5 * kPiece, kPiece));
  EXPECT_EQ(store.substr(23 * kPiece), pack.substr(23 * kPiece)) << "the last is shorter";
  EXPECT_EQ(source().report().shared_bytes, 2 * kPiece - 100);
  EXPECT_EQ(source().report().asked_servers_bytes, 0u);
}

TEST_F(PeerClientTest, aServerThatLiesIsNotAskedForSharesAgain) {
  lying_host = "mirror";
  for (int i = 5; i < 11; ++i) shares.push_back(fmt::format(R"({{"first":{},"count":1}})", i));
  loop.spawn(engine({0}, 3s));
  EXPECT_TRUE(right(0, 100));
  EXPECT_EQ(std::ranges::count(asked, std::string("mirror"),
                               &std::pair<std::string, std::uint64_t>::first),
            1);
  EXPECT_THAT(source().report().corrupt_mirrors,
              testing::ElementsAre(HasSubstr("http://mirror:80/pack")));
  EXPECT_EQ(source().report().shared_bytes, 5 * kPiece);
}

TEST_F(PeerClientTest, sharesThatMakeNoSenseAreIgnored) {
  shares = {"",
            "[]",
            "{\"first\":-1,\"count\":1}",
            "{\"first\":24,\"count\":1}",
            "{\"first\":0,\"count\":0}",
            "{\"first\":4294967295,\"count\":4294967295}",
            "not json"};
  loop.spawn(engine({0}, 3s));
  EXPECT_TRUE(right(0, 100));
  EXPECT_THAT(asked, IsEmpty());
}

TEST_F(PeerClientTest, onlyWhatTheDiskLacksIsWanted) {
  wire::PackIndex index;
  index.chunks.resize(6);
  for (std::size_t i = 0; i < 6; ++i) index.chunks[i] = {4 * i * kPiece, 4 * kPiece, "", false};
  source().scanned(index, {1, 0, 1, 0, 0, 0});
  loop.spawn(engine({4}, 1s));
  EXPECT_TRUE(right(4 * kPiece, 100));
  const auto wanted = *io::readFile(options.swarm.folder / "wanted");
  std::string expected(kPieces, '\1');
  for (const std::size_t piece : {0, 1, 2, 3, 8, 9, 10, 11}) expected[piece] = '\0';
  EXPECT_EQ(wanted, expected);
  EXPECT_EQ(source().swarm()->unneeded(), std::string("\xf8\xf0\x00", 3))
      << "no share of those, nor of the one that is here";
}

TEST_F(PeerClientTest, forALittleNobodyIsAskedToShare) {
  wire::PackIndex index;
  index.chunks = {{0, 1000, "", false}, {1000, kPiece, "", false}};
  source().scanned(index, {0, 1});
  EXPECT_TRUE(right(0, 1000));
  EXPECT_THAT(processes.daemons, IsEmpty());
}

TEST_F(PeerClientTest, everythingElseGoesToTheServers) {
  source();
  io::HttpRequest request;
  request.url = *io::Url::parse("http://server/metainfo");
  const auto response = loop.run(client_->send(std::move(request)));
  ASSERT_TRUE(response);
  EXPECT_EQ(response->body, metainfo.bytes);
  EXPECT_THAT(processes.daemons, IsEmpty());
}

TEST(RoomFor, isHalfOfTheFreeMemory) {
  EXPECT_TRUE(roomFor(4, 8));
  EXPECT_FALSE(roomFor(5, 9));
  EXPECT_FALSE(roomFor(1, 0)) << "a machine that does not tell";
  EXPECT_GT(io::availableMemoryBytes(), 0u);
}

}  // namespace
}  // namespace muster::agent
