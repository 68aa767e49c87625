// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package caddymodule_test

import (
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
)

// gRPC goes through a shield as it does without: calls, their errors, which are
// trailers, and streams in both directions at once.
func TestGRPCBehindShield(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, checks := grpc.NewServer(), health.NewServer()
	grpc_health_v1.RegisterHealthServer(server, checks)
	reflection.Register(server)
	go server.Serve(l)
	defer server.Stop()
	s := serveSites(t, "reverse_proxy h2c://"+l.Addr().String())
	want := ""
	for i, address := range []string{s.bare, s.feeds, s.plain} {
		got := callGRPC(t, address, checks)
		if i == 0 {
			want = got
			for _, part := range []string{"check: SERVING <nil>", "unknown: NotFound", "unimplemented: Unimplemented", "watched: SERVING NOT_SERVING", "answer 2: "} {
				if !strings.Contains(got, part) {
					t.Fatalf("without a shield, no %q in\n%s", part, got)
				}
			}
		} else if got != want {
			t.Errorf("site %d: got\n%s\nwithout a shield\n%s", i, got, want)
		}
	}
}

// callGRPC makes calls of all kinds, and tells what they brought.
func callGRPC(t *testing.T, address string, checks *health.Server) string {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority("blog.test"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var said strings.Builder
	checks.SetServingStatus("feeds", grpc_health_v1.HealthCheckResponse_SERVING)
	client := grpc_health_v1.NewHealthClient(conn)
	check := func(name, service string) {
		var header, trailer metadata.MD
		answer, err := client.Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: service}, grpc.Header(&header), grpc.Trailer(&trailer))
		for _, name := range []string{"date", "cache-status"} {
			trailer.Delete(name) // where nothing but trailers is sent, all fields are among them
		}
		fmt.Fprintln(&said, name+":", answer.GetStatus(), err, header["content-type"], trailer)
		if err != nil {
			fmt.Fprintln(&said, name+":", status.Code(err))
		}
	}
	check("check", "feeds")
	check("unknown", "nothing")
	err = conn.Invoke(ctx, "/grpc.health.v1.Health/None", &grpc_health_v1.HealthCheckRequest{}, &grpc_health_v1.HealthCheckResponse{})
	fmt.Fprintln(&said, "unimplemented:", status.Code(err), err)

	watch, err := client.Watch(ctx, &grpc_health_v1.HealthCheckRequest{Service: "feeds"})
	if err != nil {
		t.Fatal(err)
	}
	first, err := watch.Recv() // before the stream's end
	if err != nil {
		t.Fatal(err)
	}
	checks.SetServingStatus("feeds", grpc_health_v1.HealthCheckResponse_NOT_SERVING)
	second, err := watch.Recv()
	fmt.Fprintln(&said, "watched:", first.GetStatus(), second.GetStatus(), err)

	both, err := grpc_reflection_v1.NewServerReflectionClient(conn).ServerReflectionInfo(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 { // each answer comes before the next request is sent
		ask := &grpc_reflection_v1.ServerReflectionRequest{MessageRequest: &grpc_reflection_v1.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: "grpc.health.v1.Health"}}
		if err := both.Send(ask); err != nil {
			t.Fatal(err)
		}
		answer, err := both.Recv()
		files := answer.GetFileDescriptorResponse().GetFileDescriptorProto()
		if err != nil || len(files) == 0 {
			t.Fatalf("%v, %v", answer, err)
		}
		fmt.Fprintf(&said, "answer %d: %d bytes, %x\n", i, len(files[0]), crc32.ChecksumIEEE(files[0]))
	}
	if err := both.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if _, err := both.Recv(); err != io.EOF {
		t.Errorf("at the end of the stream: %v", err)
	}
	fmt.Fprintln(&said, "end:", both.Trailer())
	return said.String()
}
