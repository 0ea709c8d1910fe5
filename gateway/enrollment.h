// SPDX-License-Identifier: Apache-2.0
// Enrollment: a machine in RAM OS asks for its certificate with the id of the arming on its kernel
// command line.
//
// The id is public: anybody may read boot files. What shows that the caller is the node is in
// enrollment_proof.h. The id ties the request to one arming, and an arming is good for one key. The
// store keeps per node, under "agent.enrolment.NODE", JSON {state: issued|used|void, hash, expires,
// csr, key, lease}. `hash` is SHA-256 over node, MAC and id. The change issued → used is one
// exchangeValue: of two machines one is first. A second key that comes with a proof too means that
// one of the two is not the node, and nobody can say which: the arming is void, the first key is
// not listened to any more, and the node must be armed anew. The same certificate request shown
// again (the answer was lost on the way) is answered again: only the holder of that key gains by
// it. That change is on the disk before the answer goes out, and with it the RAM OS's key is the
// node's only one (node_keys.h). A new id is not waited for: of a controller that dies before it is
// written, the restart is done anew.
#pragma once

#include "base/clock.h"
#include "base/ids.h"
#include "base/io/crypto.h"
#include "base/result.h"
#include "gateway/attestor.h"
#include "gateway/enrollment_proof.h"
#include "gateway/node_keys.h"
#include "inventory/model/fwd.h"
#include "lifecycle/store/journal.h"
#include "signer/authority.h"
#include "wire/messages.h"

#include <set>
#include <string>

namespace muster::gateway {

class Enrollment {
 public:
  Enrollment(const inventory::Cluster& cluster, const signer::Authority& ca,
             lifecycle::Store& store, Clock& clock, const NetworkEvidence& evidence);
  Enrollment(const Enrollment&) = delete;
  /// Writes what no loop has written any more.
  ~Enrollment();
  /// Whoever calls works on this loop: from now on writes need not be waited for.
  void attach(const asio::any_io_executor& control);

  /// Answers the id of this arming. Errors: NotFound (node), Conflict (the MAC is not the node's),
  /// the store's as far as it has answered, those of NetworkEvidence
  Result<std::string> openEnrollment(const NodeName& node, const Mac& mac);
  /// Errors: InvalidInput (request), Denied with the reason (also left as a finding on the node)
  Async<wire::EnrollResponse> enroll(wire::EnrollRequest request, std::string remote_address);
  /// Whether the node with this MAC must prove itself by its TPM: `enroll` would refuse it.
  bool mustAttest(const std::string& mac) const;
  /// The two steps of a proof (attestation.h). Errors: as enroll
  Result<wire::AttestChallenge> challenge(const wire::AttestRequest& request,
                                          const std::string& remote_address);
  Async<wire::EnrollResponse> enrollAttested(wire::AttestedRequest request,
                                             std::string remote_address);
  /// May an agent with this key call in this mode? `ram_calls`: the node's RAM OS is heard.
  /// Errors: Denied (the key is of an earlier installation of the node: also a finding), Conflict
  /// (its RAM OS runs), the store's
  Async<void> admit(NodeName node, std::string key_id, wire::Mode mode, bool ram_calls);
  /// A certificate for the system being installed on this node (its RAM OS asks), or the agent's
  /// next one. Keys that it ends are refused before it is answered. Errors: as admit, InvalidInput
  Async<wire::EnrollResponse> certify(NodeName node, std::string key_id, std::string csr_pem);
  /// The same for the holder of an expired certificate: only a declared node, from its own address,
  /// with the key that its installed agent called with last, or the one after.
  Async<wire::EnrollResponse> certifyLate(NodeName node, std::string key_id, std::string csr_pem,
                                          std::string remote_address);
  /// The RAM OS's own next one.
  Async<wire::EnrollResponse> renewRam(NodeName node, std::string key_id, std::string csr_pem);
  /// The disk with the installed system is about to be written over: its key is refused from now
  /// on.
  Async<void> endInstalled(NodeName node, std::string order);
  /// The first of these orders that ended it touched no disk: the key is listened to again. Errors:
  /// those of the store; the agent says it again
  Async<void> restoreInstalled(NodeName node, std::vector<std::string> orders);

  const inventory::Node* find(const NodeName& node) const;

 private:
  struct Record;
  /// Where muster hands out the addresses, a node calls from its own.
  bool isExpectedAddress(const inventory::Node& node, const std::string& remote_address) const;
  /// The node with this MAC, calling from where it may.
  Result<const inventory::Node*> callerOf(const std::string& mac,
                                          const std::string& remote_address);
  /// The node's record, when this is the id of its present arming and may still be used.
  Result<Record> armedRecord(const inventory::Node& node, const std::string& id);
  /// What the network shows, else a person's word. Errors: the store's, those of NetworkEvidence
  Result<NetworkProof> proofOf(const inventory::Node& node, const Record& record,
                               const wire::EnrollRequest& request,
                               const std::string& remote_address);
  Async<wire::EnrollResponse> redeem(const inventory::Node& node, wire::EnrollRequest request,
                                     std::optional<wire::AttestedRequest> attested,
                                     std::string remote_address);
  /// Another key than this record's has come with a proof too: neither is listened to.
  Async<wire::EnrollResponse> voidArming(const inventory::Node& node, Record record);
  /// Written soon, in the order of these calls; at once where no loop runs yet.
  Result<void> persist(const std::string& key, const std::string& value, const std::string& what);
  /// What is being written counts already.
  Result<std::optional<std::string>> persisted(const std::string& key);
  /// The store's answer: the reason, when the change was refused.
  Async<std::optional<Error>> changeStored(NodeName node,
                                           std::function<Result<bool>(NodeKeys&)> change);
  using Change = std::function<Result<bool>(NodeKeys&, const std::string& fresh_key_id)>;
  Async<wire::EnrollResponse> issue(NodeName node, std::string csr_pem, std::chrono::hours lifetime,
                                    Change change);
  struct Issued {
    wire::EnrollResponse answer;
    std::string key_id;
  };
  Async<Issued> sign(NodeName node, std::string csr_pem, std::chrono::hours lifetime);
  std::unexpected<Error> refuse(const inventory::Node& node, const std::string& why,
                                const std::string& what_to_do);
  std::unexpected<Error> refuse(const inventory::Node& node, const std::string& why);
  /// Nothing was used up: the same request is answered when the signer is back.
  void leaveWaiting(const inventory::Node& node, const Error& why);

  const signer::Authority ca_;
  lifecycle::Store& store_;
  Clock& clock_;
  const inventory::Cluster& cluster_;
  const NetworkEvidence& evidence_;
  Attestor attestor_;
  std::unique_ptr<lifecycle::Journal> journal_;
  bool attached_ = false;
  std::map<std::string, std::string> pending_writes_;
  bool leases_addresses_ = false;
  std::map<NodeName, const inventory::Node*> by_name_;
  std::map<Mac, const inventory::Node*> by_mac_;
  std::chrono::steady_clock::time_point bypass_store_until_{};  ///< the store did not answer
  std::map<NodeName, std::pair<std::string, wire::Mode>>
      admitted_;  ///< key and system that called last: they go on while the store is away
  std::set<std::pair<NodeName, std::string>>
      reported_;  ///< findings already left for the present arming
};

/// What a person says who has compared the fingerprint (requestFingerprint) with the one on the
/// node's console: the key may enroll while the node is armed. Errors: InvalidInput (no
/// fingerprint), the store's
Result<void> approveKey(lifecycle::Store& store, const NodeName& node,
                        const std::string& fingerprint);

}  // namespace muster::gateway
