package agent

import (
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/lastwords"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/internal/report"
)

// What a component logs may hold anything. What people outside are told of it passes the rules of support.
func TestLastWordsAreToldWithoutSecrets(t *testing.T) {
	self := replica.Identity{Place: replica.Place{Zone: "us-central1-a", Name: "master-a"}, Project: "example"}
	c := &replica.Cluster{Name: "demo", Components: map[string]replica.Component{
		replica.APIServer: {ExtraArgs: []string{"--oidc-client-secret=swordfish"}}}}
	f := lastwords.Former{Boot: lastwords.Boot{ID: "3f2a91bc-6f4b-4c8e-9a57-1c2d3e4f5a6b", Instance: "4711"},
		Excerpts: []lastwords.Excerpt{
			{Source: lastwords.Agent, Lines: []string{`time=2026-11-24T10:00:00Z level=WARN msg="a wait began" name=no-quorum`}},
			{Source: replica.APIServer, Lines: []string{
				"E1124 10:00:00.000001       1 a.go:7] cannot use swordfish, and goes on",
				"E1124 10:00:00.000001       1 a.go:8] Authorization: Bearer eyJhbGciOiJSUzI1NiIsImtpZCI6IjQifQ.c2ln",
				"panic: " + strings.Repeat("very ", 400) + "long"}},
		}}
	now := time.Date(2026, 11, 24, 10, 1, 0, 0, time.UTC)
	list := wordsOf(f, self, c, now)
	var all []string
	for _, e := range list {
		if e.Kind != report.LastWords || !e.At.Equal(now) || len(e.Text) > 600 {
			t.Errorf("%+v", e)
		}
		all = append(all, e.Text)
	}
	text := strings.Join(all, "\n")
	for _, secret := range []string{"swordfish", "eyJhbGci", "c2ln"} {
		if strings.Contains(text, secret) {
			t.Errorf("%q is told:\n%s", secret, text)
		}
	}
	want := "its disk has the last words of boot 3f2a91bc, instance 4711, which ended without being asked to; " +
		"`quorate support` on it takes more of them\n" +
		`boot 3f2a91bc, agent: time=2026-11-24T10:00:00Z level=WARN msg="a wait began" name=no-quorum` + "\n" +
		"boot 3f2a91bc, kube-apiserver: E1124 10:00:00.000001 1 a.go:7] cannot use …, and goes on\n" +
		"boot 3f2a91bc, kube-apiserver: E1124 10:00:00.000001 1 a.go:8] Authorization …\n" +
		"boot 3f2a91bc, kube-apiserver: panic: very very "
	if !strings.HasPrefix(text, want) || len(list) != 5 {
		t.Errorf("told is\n%s\nwant\n%s", text, want)
	}
	if more := wordsOf(lastwords.Former{}, self, c, now); more != nil {
		t.Errorf("a disk without words tells %+v", more)
	}
	f.InOrder = true
	if more := wordsOf(f, self, c, now); more != nil {
		t.Errorf("an end in order is explained by %+v", more)
	}
}
