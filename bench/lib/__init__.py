# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What the suites have in common: how to measure, graphs, the peers, quotations in the documents."""
