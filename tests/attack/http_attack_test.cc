// SPDX-License-Identifier: Apache-2.0
// HTTP of somebody who means harm, against both listeners.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/attack/honest_client.h"
#include "tests/attack/known_open.h"
#include "tests/attack/raw_connection.h"

namespace muster::attack {
namespace {

using Steady = std::chrono::steady_clock;

std::string seen(const RawConnection::Heard& heard) {
  return fmt::format("status {}, {}", heard.status, heard.closed ? "closed" : "open");
}

/// An attack that is known to succeed makes others wait: their figure would say nothing of the
/// rest.
class Unmeasured {
 public:
  explicit Unmeasured(std::string_view attack) { honest().pause(isKnownOpen(attack)); }
  Unmeasured(const Unmeasured&) = delete;
  ~Unmeasured() { honest().pause(false); }
};

// ---- malformed requests

struct Malformed {
  const char* name;
  std::string bytes;
  int status;  ///< 0: closed without an answer is right too
};

TEST(AttackHttp, malformedRequestsAreRefused) {
  const std::string host = "Host: muster\r\n";
  const std::vector<Malformed> all = {
      {"no HTTP at all", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 and more\r\n\r\n", 400},
      {"HTTP/2 without asking", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400},
      {"a version of nobody", "GET /boot/ipxe HTTP/9.9\r\n" + host + "\r\n", 400},
      {"NUL in a header", std::string("GET /boot/ipxe HTTP/1.1\r\nX: a\0b\r\n\r\n", 39), 400},
      {"a field without a name", "GET /boot/ipxe HTTP/1.1\r\n: x\r\n\r\n", 400},
      {"a folded name", "GET /boot/ipxe HTTP/1.1\r\nA b: x\r\n\r\n", 400},
      {"70 KiB of header",
       "GET /boot/ipxe HTTP/1.1\r\nX: " + std::string(70 << 10, 'x') + "\r\n\r\n", 431},
      {"5,000 fields",
       "GET /boot/ipxe HTTP/1.1\r\n" +
           [] {
             std::string all;
             for (int i = 0; i < 5'000; ++i) all += fmt::format("X{}: yyyyyyyy\r\n", i);
             return all;
           }() +
           "\r\n",
       431},
      {"two lengths",
       "POST /boot/ipxe HTTP/1.1\r\n" + host + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
       400},
      {"a negative length", "POST /boot/ipxe HTTP/1.1\r\n" + host + "Content-Length: -1\r\n\r\n",
       400},
      {"a length beyond 64 bits",
       "POST /boot/ipxe HTTP/1.1\r\n" + host + "Content-Length: 99999999999999999999\r\n\r\n", 400},
      {"a chunk that is no number, where nothing is read",
       "POST /boot/ipxe HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\nzz\r\n", 405},
      {"a chunk beyond 64 bits, where nothing is read",
       "POST /boot/ipxe HTTP/1.1\r\n" + host +
           "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
       405},
      {"a path that climbs", "GET /images/../../etc/passwd HTTP/1.1\r\n" + host + "\r\n", 400},
      {"a coded path that climbs",
       "GET /images/%2e%2e/%2e%2e/etc/passwd HTTP/1.1\r\n" + host + "\r\n", 400},
      {"a path twice coded",
       "GET /images/%252e%252e%252fetc%252fpasswd/pack HTTP/1.1\r\n" + host + "\r\n", 404},
      {"NUL in the path", "GET /file%00.txt HTTP/1.1\r\n" + host + "\r\n", 400},
      {"a path that is none", "GET boot HTTP/1.1\r\n" + host + "\r\n", 400},
      {"agents' routes over plain HTTP", post("/agent/v1/enrol", "{}"), 404},
      {"a method of nobody", "BREW /boot/ipxe HTTP/1.1\r\n" + host + "\r\n", 405},
  };
  for (const auto& attack : all) {
    SCOPED_TRACE(attack.name);
    const auto heard = askRaw(site().address(), kPlainPort, attack.bytes);
    EXPECT_TRUE(heard.status == attack.status || (heard.closed && heard.status == 0))
        << seen(heard);
    EXPECT_EQ(heard.bytes.find("root:"), std::string::npos) << "a file of the controller";
  }
  EXPECT_TRUE(site().alive());
}

TEST(AttackHttp, aRequestHiddenInAnotherIsNotAnswered) {
  const std::string hidden = "GET /boot/ipxe HTTP/1.1\r\nHost: muster\r\n\r\n";
  const auto heard = askRaw(site().address(), kPlainPort,
                            "POST /boot/ipxe HTTP/1.1\r\nHost: muster\r\nContent-Length: " +
                                std::to_string(5 + hidden.size()) +
                                "\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden);
  EXPECT_EQ(heard.bytes.find("#!ipxe"), std::string::npos) << heard.bytes;
}

TEST(AttackHttp, plainHttpOnTheTlsPortAndTheOtherWayRound) {
  const auto plain = askRaw(site().address(), kTlsPort, "GET /agent/v1/poll HTTP/1.1\r\n\r\n");
  EXPECT_EQ(plain.status, 0);
  EXPECT_TRUE(plain.closed);
  RawConnection tls(site().address(), kPlainPort);
  EXPECT_FALSE(tls.startTls());
}

TEST(AttackHttp, imagesOfNobodyCostNothing) {
  constexpr auto kBound = 10s;
  const Unmeasured open("http.images-of-nobody");
  const auto begun = Steady::now();
  for (int i = 0; i < 100 && Steady::now() - begun < kBound; ++i) {
    for (const auto& target : {fmt::format("/ramos/nothing-{}", i),
                               fmt::format("/images/{}/pack", std::string(64, 'a'))}) {
      const auto heard = askRaw(site().address(), kPlainPort,
                                "GET " + target + " HTTP/1.1\r\nHost: muster\r\n\r\n", kBound);
      EXPECT_EQ(heard.status, 404) << target;
    }
  }
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Steady::now() - begun);
  expectRefused("http.images-of-nobody", took < kBound,
                fmt::format("200 requests in {} ms", took.count()));
}

TEST(AttackHttp, aThousandRequestsInOnePieceAreAnsweredInTurn) {
  std::string all;
  for (int i = 0; i < 1'000; ++i) all += "GET /boot/ipxe HTTP/1.1\r\nHost: muster\r\n\r\n";
  RawConnection connection(site().address(), kPlainPort);
  connection.say(all);
  connection.endSending();
  const auto heard = connection.hear(20s, false);
  EXPECT_TRUE(heard.closed);
  EXPECT_EQ(heard.status, 200);
}

TEST(AttackHttp, whoAsksForMuchAndReadsNothingTakesNoMemory) {
  const auto before = site().residentBytes();
  std::vector<RawConnection> readers;
  for (int i = 0; i < 64; ++i) {
    readers.emplace_back(site().address(), kPlainPort, fmt::format("127.0.8.{}", i / 8 + 1));
    readers.back().say("GET /file HTTP/1.1\r\n\r\n");
  }
  for (auto& reader : readers) (void)reader.hear(2s);
  EXPECT_LT(site().residentBytes(), before + (64u << 20));
}

// ---- bodies

TEST(AttackHttp, aLargeBodyOfAUnknownSenderIsRefusedBeforeItIsRead) {
  RawConnection connection(site().address(), kTlsPort);
  ASSERT_TRUE(connection.startTls());
  connection.say(
      "POST /agent/v1/enrol HTTP/1.1\r\nHost: muster\r\nContent-Length: 15000000\r\n\r\n{");
  const auto heard = connection.hear(2s);
  expectRefused("http.large-body-before-enrolment", heard.status == 413 || heard.closed,
                seen(heard));
}

TEST(AttackHttp, halfBodiesOfUnknownSendersTakeNoMemory) {
  constexpr std::size_t kEach = 7u << 20, kBound = 48u << 20;
  const std::string piece(kEach, '[');
  const Unmeasured open("http.half-bodies-memory");
  const auto before = site().residentBytes();
  std::size_t most = before;
  {
    std::vector<RawConnection> halves;
    for (int i = 0; i < 16; ++i) {
      RawConnection connection(site().address(), kTlsPort, fmt::format("127.0.9.{}", i + 1));
      if (!connection.startTls()) continue;
      connection.say(
          fmt::format("POST /agent/v1/enrol HTTP/1.1\r\nHost: muster\r\nContent-Length: {}\r\n\r\n",
                      kEach * 2));
      connection.say(piece, 2s);
      halves.push_back(std::move(connection));
      most = std::max(most, site().residentBytes());
    }
  }
  expectRefused("http.half-bodies-memory", most < before + kBound,
                fmt::format("{} MiB more", (most - before) >> 20));
}

TEST(AttackHttp, jsonThatIsOnlyDepthIsRefusedAtOnce) {
  for (const auto* const open : {"[", "{\"a\":"}) {
    std::string deep;
    while (deep.size() < 60'000) deep += open;
    const auto begun = Steady::now();
    for (const auto* const target : {"/agent/v1/enrol", "/agent/v1/attest", "/agent/v1/attested"}) {
      const auto heard = askTls(site().address(), post(target, deep));
      EXPECT_TRUE(heard.status / 100 == 4 || (heard.closed && heard.status == 0))
          << target << ": " << seen(heard);
    }
    EXPECT_LT(Steady::now() - begun, 5s);
  }
  EXPECT_TRUE(site().alive());
}

TEST(AttackHttp, anAgentsOwnDepthDoesNotEndTheController) {
  std::string deep;
  for (int i = 0; i < 20'000; ++i) deep += "[";
  for (int i = 0; i < 20'000; ++i) deep += "]";
  const auto poll = fmt::format(
      R"({{"mode":"ram","boot_id":"b","agent_version":"0","probes":{{}},"reports":[{{"id":"i","phase":"done","text":"","result":"{}"}}],"session":"","sequence":1,"hardware":"{}","health":"{}"}})",
      deep, deep, deep);
  const TlsOffer own{honest().identity().certificate_pem, honest().identity().key_pem.reveal()};
  const auto heard = askTls(site().address(), post("/agent/v1/poll", poll), own);
  EXPECT_GT(heard.status, 0) << seen(heard);
  EXPECT_TRUE(site().alive());
}

// ---- slow and many

/// One byte a while, for as long as this: what a total deadline must end.
constexpr auto kSlowBound = 40s;
constexpr auto kSlowPause = 500ms;

TEST(AttackHttp, aByteNowAndThenDoesNotHoldAConnectionForEver) {
  RawConnection header(site().address(), kPlainPort, "127.0.10.1"),
      body(site().address(), kTlsPort, "127.0.10.2"),
      shake(site().address(), kTlsPort, "127.0.10.3");
  ASSERT_TRUE(body.startTls());
  header.say("GET /boot/ipxe HTTP/1.1\r\nX: ");
  body.say("POST /agent/v1/enrol HTTP/1.1\r\nHost: muster\r\nContent-Length: 2000\r\n\r\n");
  shake.say(std::string_view("\x16\x03\x01", 3));
  bool header_ended = false, body_ended = false, shake_ended = false;
  const auto until = Steady::now() + kSlowBound;
  while (Steady::now() < until && !(header_ended && body_ended && shake_ended)) {
    header_ended = header_ended || header.say("x") == 0 || header.hear(10ms).closed;
    body_ended = body_ended || body.say("x") == 0 || body.hear(10ms).closed;
    shake_ended = shake_ended || shake.hear(10ms).closed;
    std::this_thread::sleep_for(kSlowPause);  // the attack's own rate
  }
  expectRefused("http.slow-header", header_ended, fmt::format("within {} s", kSlowBound.count()));
  expectRefused("http.slow-body", body_ended, fmt::format("within {} s", kSlowBound.count()));
  EXPECT_TRUE(shake_ended) << "a handshake that never goes on";
}

TEST(AttackHttp, connectionsOfOneAddressDoNotKeepOthersFromBooting) {
  constexpr int kMany = 4'200;
  const Unmeasured open("http.one-address-many-connections");
  std::vector<RawConnection> idle;
  for (int i = 0; i < kMany; ++i) {
    idle.emplace_back(site().address(), kPlainPort, "127.0.11.1");
    if (!idle.back().up()) break;
  }
  RawConnection other(site().address(), kPlainPort, "127.0.11.2");
  other.say("GET /boot/ipxe HTTP/1.1\r\nHost: muster\r\n\r\n");
  const auto heard = other.hear(3s);
  const auto count = idle.size();
  idle.clear();
  for (int tries = 0;
       tries < 50 &&
       askRaw(site().address(), kPlainPort, "GET /boot/ipxe HTTP/1.1\r\n\r\n").status != 200;
       ++tries)
    std::this_thread::sleep_for(100ms);
  expectRefused(
      "http.one-address-many-connections", heard.status == 200,
      fmt::format("{} connections of one address; another one's request: {}", count, seen(heard)));
}

}  // namespace
}  // namespace muster::attack
