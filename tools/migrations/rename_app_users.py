#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""In app/ and cli/: the names that other folders have renamed, after their branch has been merged. Rerunning it changes nothing.

Usage: rename_app_users.py bmc|lifecycle|inventory …"""
import re
import sys

from source_text import read, tracked, write

NAMES = {
    "bmc": [
        (r"\bConsoleFinder\b", "ConsoleFactory"), (r"\binventoryConsoles\b", "makeConsoleFactory"), (r"\bbmc::HealthVerdict\b", "bmc::SymptomResponse"),
        (r"\breadsUntilBack\b", "waitUntilReady"), (r"\bbmc\.interrupt\(\)", "bmc.sendNmi()"), (r"\bBmcMemory\b", "BmcTrustState"),
        (r"\bbmc::campaign\(", "bmc::runBulkOperation("), (r"report->left\b", "report->not_started"), (r"\bwordsFor\b", "argumentsFor"),
        (r"\bBootShelf\b", "BootLogArchive"), (r"\blearntBy\b", "measuredBy"), (r"\bfirmware::Road road\b", "firmware::UpgradePath path"),
        (r"\bfirmware::roadOf\b", "firmware::upgradePathOf"), (r"node\.road\.learnt", "node.path.measured"), (r"node\.road\b", "node.path"),
        (r'\["mishaps"\]', '["update_faults"]'), (r'"--mishap"', '"--update-fault"'),
    ],
    "lifecycle": [
        (r"\bRestartBegins restart_begins\b", "RestartCallback on_restart"), (r"\brestart_begins\b", "on_restart"), (r"\bKeeperServices\b", "MonitorServices"),
        (r"\bagreedOnSite\b", "agreedSiteValue"), (r"\bnow\.lives\b", "now.alive"), (r"\bkSiteLease\b", "kLeaderLease"), (r"\bkSiteRenewal\b", "kLeaderRenewal"),
        (r"\bkSiteGivesUp\b", "kLeaderGivesUp"), (r"\bSiteHolder\b", "Leader"), (r"\bSiteLease\b", "LeaderLease"), (r"\brolloutsMark\b", "overlaysMark"),
        (r"\bdiscovery::Book\b", "discovery::MachineRegistry"), (r"\bdiscovery::oddities\b", "discovery::anomalies"), (r"\bdiscovery::Oddity\b", "discovery::Anomaly"),
        (r"\bdiscovery::keepFindings\b", "discovery::updateFindings"), (r"\bchangeBook\b", "updateRegistry"), (r"\bstrangerKey\b", "undeclaredBmcKey"),
        (r"\bpolicy\.settles\b", "policy.intents_to_end"), (r"\bRolloutBook\b", "RolloutRecord"), (r"\bLiveCluster\b", "EffectiveCluster"),
        (r"\bmonitor::Memory\b", "monitor::RetryState"), (r"\bmonitor::Keeper keeper\b", "monitor::Monitor monitor"), (r"\bkeeper\.run\(\)", "monitor.run()"),
        (r"\bquarantine\.hold\(", "quarantine.add("), (r"\bquarantine\.lift\(", "quarantine.remove("), (r"\bRolloutWay\b", "RolloutDirection"),
        (r"\brollout\.way\b", "rollout.direction"), (r"\bNodeState::Stuck\b", "RolloutNodeState::RollbackFailed"), (r"(?<!Rollout)\bNodeState\b", "RolloutNodeState"),
        (r"\bdropAbsorbed\b", "dropMerged"), (r"\bmonitor::keepStatus\b", "monitor::monitorStatus"), (r"\bmonitor::KeepStatus\b", "monitor::MonitorStatus"),
        (r"\blifecycle::roadWord\b", "lifecycle::nodeState"), (r"\blifecycle::siteHolder\b", "lifecycle::currentLeader"), (r"\blifecycle::standingOf\b", "lifecycle::rolloutStatusOf"),
        (r"\bstore->allowWipe\b", "store->grantWipe"), (r"\blayRollouts\b", "applyOverlays"),
    ],
    "inventory": [
        (r"\bcluster(_?)\.keep\b", r"cluster\1.monitor"), (r"credential->second\.next\b", "credential->second.rotate_to"),
        (r"regression\.when_unclear", "regression.on_inconclusive"), (r"\bWhenUnclear::GoOn\b", "OnInconclusive::Continue"), (r"\bWhenUnclear\b", "OnInconclusive"),
    ],
}

for name in tracked("app/*.cc", "app/*.h", "cli/*.cc", "cli/*.h"):
    before = after = read(name)
    for part in sys.argv[1:]:
        for old, new in NAMES[part]:
            after = re.sub(old, new, after)
    if after != before:
        write(name, after)
