# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The suites: what is measured, against which peers, and what is drawn of it."""
