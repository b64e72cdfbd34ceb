package member

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"
)

// This file is for one release. Masters of the release before it served HTTP on etcd's client port, and asked each
// other there for raft's status, in a variable that etcd publishes (/debug/vars). While masters are upgraded both
// releases run side by side, so such a question is answered, and asked of a member that does not know the new one.
// With it go: the branch for a protocol other than h2 in clientPort.ServerHandshake, the branch for Unimplemented in
// AskRaft, formerPatience, and their tests.

// formerPath is where etcd publishes its variables.
const formerPath = "/debug/vars"

// formerVars are those of them that count.
type formerVars struct {
	Raft json.RawMessage `json:"raft.status"`
}

// maxVars bounds the answer: raft's status is a line in it, the rest are the runtime's counters, some 20 KB.
const maxVars = 1 << 20

// maxRequest bounds a question.
const maxRequest = 8 << 10

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

// answerFormer answers one request of a client that does not speak HTTP/2, where it is that question. Who only shakes
// hands, to see whether the member serves, sends none.
func answerFormer(conn net.Conn) {
	conn.SetDeadline(time.Now().Add(formerPatience))
	req, err := http.ReadRequest(bufio.NewReader(io.LimitReader(conn, maxRequest)))
	if err != nil {
		return
	}
	status, body := http.StatusNotFound, []byte("this port speaks gRPC\n")
	if req.Method == http.MethodGet && req.URL.Path == formerPath {
		text, err := raftJSON()
		if err == nil {
			body, err = json.Marshal(formerVars{text})
		}
		if status = http.StatusOK; err != nil {
			status, body = http.StatusServiceUnavailable, []byte(err.Error())
		}
	}
	answer := http.Response{StatusCode: status, ProtoMajor: 1, ProtoMinor: 1, Close: true,
		ContentLength: int64(len(body)), Body: io.NopCloser(bytes.NewReader(body))}
	answer.Write(conn)
}
