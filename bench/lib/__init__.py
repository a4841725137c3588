# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Common parts of the suites: measurement, graphs, peers, results in the documents."""
