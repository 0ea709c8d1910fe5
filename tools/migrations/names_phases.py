#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Identifiers of validate/, provision/, pool/ and fabric/ by the glossary. Code alone: no literal, no comment."""
import os
import re
import subprocess

from source_text import SOURCE, read, replace_in_code, tracked, write

OWN = ("validate/", "provision/", "pool/", "fabric/", "tests/validate/", "tests/provision/", "tests/pool/", "tests/fabric/")
USERS = OWN + ("app/", "cli/", "agent/", "wire/")

# (folders, pattern, replacement); a pattern is one or more whole words.
RULES = [
    (USERS, r"learnFrom", "peerBaselinesFrom"),
    (OWN, r"kLearntCheck", "kPeerBaselineCheck"),
    (OWN, r"judgeByLearnt", "evaluateByPeers"),
    (OWN, r"byLearnt", "peerResults"),
    (OWN, r"learntWords", "peerBaselineText"),
    (OWN, r"learnBaseline", "baselineFrom"),
    (OWN, r"LearntLook", "PeerBaselines"),
    (("validate/",), r"learnt_", "peer_baselines_"),
    (("app/",), r"learntOf", "peerBaselinesOf"),
    (("validate/", "tests/validate/", "cli/commands/cert.cc", "app/validation/certificates.cc"), r"(?<=[\w)])(\.|->)learnt", r"\1peer_baseline"),
    (("validate/validate.h",), r"learnt(?=;)", "peer_baseline"),
    (("validate/certificates.cc",), r"learnt(?= = parsed| !=|->)", "peer_baseline"),
    (("validate/", "tests/validate/"), r"learnt", "baselines"),
    (USERS, r"takeOverCertificates", "migrateCertificates"),
    (("validate/",), r"wasTakenOver", "wasMigrated"),
    (("validate/",), r"takeOver", "migrateFile"),
    (("tests/validate/",), r"takeOver", "migrate"),
    (USERS, r"basisOf", "validationScopeHash"),
    (("validate/validation_scope.cc",), r"basis", "scope"),
    (("validate/", "tests/validate/", "cli/commands/cert.cc", "app/validation/certificates.cc"), r"basis", "scope_hash"),
    (USERS, r"RackStepsTest", "SynchronizedLoadTest"),
    (USERS, r"RackSteps", "SynchronizedLoad"),
    (USERS, r"rackSteps", "synchronizedLoad"),
    (USERS, r"rack_steps_", "synchronized_load_"),
    (("validate/phase.cc",), r"steps_", "synchronized_load_"),
    (("validate/phase.cc", "validate/validate.h"), r"steps", "synchronized_load"),
    (("validate/phase.cc",), r"together", "synchronized"),
    (("validate/phase.cc", "validate/synchronized_load.", "tests/validate/synchronized_load_test.cc"), r"isAsked", "isRequested"),
    (("validate/phase.cc", "validate/synchronized_load.", "tests/validate/synchronized_load_test.cc"), r"begun", "started"),
    (("validate/phase.cc", "validate/synchronized_load.", "tests/validate/synchronized_load_test.cc"), r"kGather", "kGatherTimeout"),
    (("validate/synchronized_load.",), r"kLook", "kRetryAfter"),
    (("cli/commands/validate_run.cc", "app/validation/validate_run.cc"), r"askTogether", "requestSynchronizedLoad"),
    (("validate/synchronized_load.", "tests/validate/synchronized_load_test.cc", "app/validation/validate_run.cc"), r"(?<=[.:])ask(?=\()", "request"),
    (("validate/synchronized_load.h",), r"ask(?=\()", "request"),
    (OWN, r"brokenTest", "checkError"),
    (("validate/isolate/", "tests/validate/", "cli/commands/validate.cc", "app/validation/isolation.cc"), r"Campaign", "IsolationRun"),
    (("validate/isolate/", "tests/validate/", "cli/commands/validate.cc", "app/validation/isolation.cc"), r"runCampaign", "runIsolation"),
    (("validate/isolate/isolation_run.",), r"campaign", "run"),
    (("tests/validate/",), r"campaign", "isolationRun"),
    (("provision/", "tests/provision/"), r"Misfit", "Mismatch"),
    (("provision/", "tests/provision/"), r"misfits", "mismatches"),
    (("provision/", "tests/provision/"), r"misfit", "mismatch"),
    (("provision/", "tests/provision/"), r"misfitIsAFindingWithEvidence", "mismatchIsAFindingWithEvidence"),
    (("provision/", "tests/provision/"), r"Bearers", "IdentityIndex"),
    (("provision/", "tests/provision/"), r"bearers", "identity_index"),
    (("provision/", "tests/provision/"), r"bearers_", "identity_index_"),
    (("provision/", "tests/provision/"), r"bearersIn", "nodesWith"),
    (OWN, r"checkSystemKnobs", "checkSystemTuning"),
    (OWN, r"judgeKnobs", "evaluateTuning"),
    (OWN, r"KnobRow", "TuningRow"),
    (OWN, r"kKnobs", "kTuning"),
    (OWN, r"knobsAreJudgedWhereTheyAre", "tuningIsEvaluatedWhereItIsReadable"),
    (OWN, r"look_at_pool", "pool_state"),
    (OWN, r"look_at_pool_", "pool_state_"),
    (("app/", "cli/", "tests/validate/"), r"lookAtPool", "poolState"),
    (OWN, r"PoolLook", "PoolStateReader"),
    (OWN, r"pool_looks_", "pool_state_reads_"),
    (OWN, r"kPoolLooks", "kMaxPoolStateReads"),
    (OWN, r"GpuLook", "GpuSnapshot"),
    (OWN, r"lookAtGpus", "readGpus"),
    (USERS, r"judge([A-Z]\w*)", r"evaluate\1"),
    (OWN, r"isJudged", "isEvaluated"),
    (OWN, r"judged", "evaluated"),
    (OWN, r"Judged", "Evaluated"),
    (OWN, r"judges", "evaluates"),
    (OWN, r"judge", "evaluate"),
]
FILES = [
    ("validate/checks/disk_judges", "validate/checks/disk_evaluation"),
    ("validate/checks/system_judges", "validate/checks/system_evaluation"),
    ("validate/checks/gpu_look", "validate/checks/gpu_snapshot"),
]


def move_files():
    for old, new in FILES:
        for end in (".cc", ".h"):
            if os.path.exists(old + end):
                subprocess.run(["git", "mv", old + end, new + end], check=True)
    for name in tracked("*.cc", "*.h", "*CMakeLists.txt"):
        before = text = read(name)
        for old, new in FILES:
            text = text.replace(old + ".h", new + ".h")
            if name == "validate/CMakeLists.txt":
                text = text.replace(old.removeprefix("validate/") + ".cc", new.removeprefix("validate/") + ".cc")
        if text != before:
            write(name, text)


def main():
    move_files()
    for name in tracked(*("*" + end for end in SOURCE)):
        rules = [(re.compile(rf"(?<!\w)(?:{pattern})(?!\w)" if pattern[0] != "(" or pattern[1] != "?" else rf"{pattern}(?!\w)"), new)
                 for folders, pattern, new in RULES if name.startswith(folders)]
        if not rules:
            continue

        def change(piece):
            for pattern, new in rules:
                piece = pattern.sub(new, piece)
            return piece

        before = read(name)
        after = replace_in_code(before, change)
        if after != before:
            write(name, after)


main()
