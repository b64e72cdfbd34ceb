package member

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/replica"
)

// TestEtcdTakesTheBordersOfWhatValidates: the limits of the Cluster document are etcd's own, or within them.
func TestEtcdTakesTheBordersOfWhatValidates(t *testing.T) {
	ms := func(n int) replica.Duration { return replica.Duration(time.Duration(n) * time.Millisecond) }
	for _, tc := range []struct {
		heartbeat, election replica.Duration
		taken               bool
	}{
		{ms(10), ms(50), true}, {ms(10), ms(49), false}, {ms(9), ms(50), false}, {ms(10000), ms(50000), true},
		{ms(10000), ms(50001), false}, {ms(100), ms(50000), true}, {ms(10001), ms(50000), false},
	} {
		c := &replica.Cluster{APIVersion: replica.APIVersion, Kind: replica.Kind, Name: "a",
			Endpoint: replica.Endpoint{ExternalIP: "203.0.113.10"},
			Record:   replica.Record{URL: "gs://bucket"},
			Seal:     replica.Seal{Key: "gcpkms://projects/p/locations/l/keyRings/r/cryptoKeys/k"},
			Etcd:     replica.Etcd{Heartbeat: tc.heartbeat, Election: tc.election}}
		c.SetDefaults()
		if err := c.Validate(); (err == nil) != tc.taken {
			t.Errorf("%s and %s: %v", tc.heartbeat, tc.election, err)
		}
		e, err := Config{Name: "a", DNSName: "a", Dir: t.TempDir(), Address: Loopback, Local: Loopback,
			StatusSocket: filepath.Join(t.TempDir(), "s"),
			Heartbeat:    c.Etcd.Heartbeat.Duration(), Election: c.Etcd.Election.Duration(),
			QuotaBytes:     c.Etcd.QuotaBytes,
			CatchUpEntries: c.Etcd.CatchUpEntries, New: true}.embedConfig()
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Validate(); tc.taken && err != nil {
			t.Errorf("etcd, %s and %s: %v", tc.heartbeat, tc.election, err)
		}
	}
}
