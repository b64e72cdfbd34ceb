package member

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
)

// This file is for one release. Masters of the release before it ask each other by HTTP for raft's status, in a
// variable that etcd publishes on its client port (/debug/vars). While masters are upgraded both releases run side by
// side.

// formerPath is where etcd publishes its variables.
const formerPath = "/debug/vars"

// formerVars are those of them that count.
type formerVars struct {
	Raft json.RawMessage `json:"raft.status"`
}

// maxVars bounds the answer: raft's status is a line in it, the rest are the runtime's counters, some 20 KB.
const maxVars = 1 << 20

// askFormer asks a member by HTTP.
func askFormer(ctx context.Context, dnsName string, address netip.Addr, tlsConfig *tls.Config) (s RaftStatus,
	err error) {
	tlsConfig = tlsConfig.Clone()
	tlsConfig.ServerName = dnsName
	target := netip.AddrPortFrom(address, ClientPort).String()
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: tlsConfig, DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", target)
		},
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, ClientURL(dnsName)+formerPath, nil)
	if err != nil {
		return s, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return s, fmt.Errorf("ask for raft's status by HTTP: %w", err)
	}
	defer resp.Body.Close()
	var vars formerVars
	if err = json.NewDecoder(io.LimitReader(resp.Body, maxVars)).Decode(&vars); err == nil {
		err = json.Unmarshal(vars.Raft, &s)
	}
	if err != nil {
		return s, fmt.Errorf("decode raft's status: %w", err)
	}
	return s, nil
}
