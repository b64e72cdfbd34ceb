package test

import (
	"errors"
	"flag"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/health"
)

var quietFor = flag.Duration("health.quiet", 10*time.Minute, "how long health is asked of a cluster without a fault")

// beforeTheFirst are the findings of a cluster that nobody has served yet: endpoint and reports say so, as they should.
var beforeTheFirst = []string{health.EndpointNotReady, health.EndpointSilent, health.NoReports, health.ReplicasMissing}

// First boots, ten minutes without a fault, and a planned roll by hand make health shout at nobody: it finds nothing
// worse than a note, but of the replica that somebody works on, and of what is not there yet.
func TestHealthShoutsAtNobodyWithoutCause(t *testing.T) {
	wantedFaults(t)
	c := bare(t, plan{vms: threeVMs})
	quiet := t.Run("first boots", func(t *testing.T) {
		await(t, "well", func() error { return c.shouts(t, "", beforeTheFirst...) })
	}) && t.Run("minutes without a fault", func(t *testing.T) {
		for end := time.Now().Add(*quietFor); time.Now().Before(end); time.Sleep(2 * time.Second) {
			if err := c.shouts(t, ""); err != nil {
				t.Error(err)
			}
		}
	})
	if !quiet {
		return
	}
	for _, vm := range c.vms {
		t.Run("a planned stop of "+vm, func(t *testing.T) {
			c.must(t, c.StopVM(t.Context(), vm))
			for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Second) {
				_ = c.shouts(t, vm) // that it is not well is right
			}
			c.must(t, c.StartVM(t.Context(), vm))
			await(t, vm+" is back", func() error { return c.shouts(t, vm) })
		})
	}
}

// shouts fails the test where health finds what is worse than a note and about neither that VM nor one of these
// findings. The error says that not all is well.
func (c *cluster) shouts(t *testing.T, worksOn string, allowed ...string) error {
	t.Helper()
	v, err := c.verdict(t, true)
	if err != nil {
		return err
	}
	for _, f := range v.Findings {
		ours := worksOn != "" && slices.ContainsFunc(f.Replicas, func(p string) bool {
			return strings.HasSuffix(p, "."+worksOn)
		})
		if f.Level != health.Note && !ours && !slices.Contains(allowed, f.Name) {
			t.Errorf("health shouts: %s %s%v: %s", f.Level, f.Name, f.Replicas, f.What)
		}
	}
	if v.State != health.Well {
		return errors.New(foundOf(v))
	}
	return nil
}
