# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The suites: what is measured, against whom, and what is drawn of it."""
