package replica_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/replica"
)

func TestChangesOfADocument(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*replica.Cluster)
		want   []string
	}{
		"none": {func(*replica.Cluster) {}, nil},
		"a number and a duration": {func(c *replica.Cluster) {
			c.Replicas, c.Etcd.Snapshots.Interval = 5, replica.Duration(2*time.Hour)
		}, []string{`etcd.snapshots.interval: "1h0m0s", will be "2h0m0s"`, `replicas: "3", will be "5"`}},
		"a component that was not there": {func(c *replica.Cluster) {
			c.Components["ccm"] = replica.Component{Binary: "/bin/ccm", Env: replica.Env{"TOKEN": "secret"},
				ExtraArgs: []string{"--v=2"}, Probe: &replica.Probe{URL: "http://127.0.0.1:1/"}}
		}, []string{`components.ccm.binary: "", will be "/bin/ccm"`, `components.ccm.env.TOKEN: "", will be "REDACTED"`,
			`components.ccm.extraArgs[0]: "", will be "--v=2"`,
			`components.ccm.probe.url: "", will be "http://127.0.0.1:1/"`}},
		"a secret": {func(
			c *replica.Cluster) {
			c.Seal.Key = "base64key://c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0MDA="
		},
			[]string{`seal.key: "gcpkms://projects/p/locations/l/keyRings/r/cryptoKeys/k", will be "base64key://REDACTED"`}},
		"false in place of true": {func(c *replica.Cluster) { c.EncryptionAtRest = new(false) },
			[]string{`encryptionAtRest: "true", will be "false"`}},
		"a long text": {func(c *replica.Cluster) { c.AuditPolicy = "/" + strings.Repeat("é", 90) },
			[]string{`auditPolicy: "", will be "/` + strings.Repeat("é", 49) + `…"`}},
	} {
		build := func() *replica.Cluster {
			c := &replica.Cluster{Name: "a", Replicas: 3, Components: map[string]replica.Component{},
				Seal: replica.Seal{Key: "gcpkms://projects/p/locations/l/keyRings/r/cryptoKeys/k"}}
			c.SetDefaults()
			return c
		}
		after := build()
		tc.change(after)
		var got []string
		for _, c := range replica.Changes(build(), after) {
			got = append(got, c.String())
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: got\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
		}
	}
}
