// SPDX-License-Identifier: Apache-2.0
// Compiled once; its only purpose is to own the precompiled header that every other target reuses.
