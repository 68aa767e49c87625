// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package packaging has no code. It tests the files in its directory, which make
// packages of Pollard and monitor it:
//
//	build, deb, nfpm.yaml, debian   the binary, its pages, the Debian package
//	pollard.service                 the systemd unit
//	Dockerfile, compose.yaml        the container
//	kubernetes.yaml                 the same in a cluster
//	dashboard.json, alerts.yaml     for Grafana and Prometheus
//	test-deb                        installs the package in a container with systemd
package packaging
