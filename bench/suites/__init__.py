# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The suites: each defines measurements, the peers of each, and plots."""
