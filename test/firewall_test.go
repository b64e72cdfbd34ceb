package test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/api/compute/v1"

	"github.com/quorate/quorate/internal/localgce"
)

// TestTheFirewallThatCreateMakes has a VM that is no master try what masters have open, and takes rules away.
func TestTheFirewallThatCreateMakes(t *testing.T) {
	t.Parallel()
	own := t.TempDir()
	if err := os.WriteFile(filepath.Join(own, standInOrder), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c := balanced(t, plan{bare: true, programs: own})
	c.addStranger(t, "node-1", "us-central1-a")
	address := map[string]string{}
	for _, v := range c.Status().VMs {
		address[v.Name] = v.Address
	}
	reaches := func(from, to string, port int) bool {
		cmd, err := c.Command(t.Context(), from, "timeout", "2", "bash", "-c",
			fmt.Sprintf("exec 3<>/dev/tcp/%s/%d", address[to], port))
		c.must(t, err)
		_, err = run(cmd)
		return err == nil
	}
	for _, port := range []int{2379, 2380, 443} {
		if !reaches(c.vms[0], c.vms[1], port) {
			t.Errorf("a master does not reach another at %d", port)
		}
		if got := reaches("node-1", c.vms[1], port); got != (port == 443) {
			t.Errorf("a VM that is no master reaches a master at %d: %t", port, got)
		}
	}
	c.deleteRule(t, "-api")
	await(t, "443 is for masters and probes alone", func() error {
		if reaches("node-1", c.vms[1], 443) {
			return fmt.Errorf("a VM that is no master reaches 443")
		}
		return nil
	})
	if !reaches(c.vms[0], c.vms[1], 443) {
		t.Error("a master does not reach another at 443")
	}
	if err := c.balancedOver(); err != nil {
		t.Error(err)
	}
	c.deleteRule(t, "-probes")
	await(t, "no probe arrives", func() error {
		if s := c.Status(); !s.FailOpen {
			return fmt.Errorf("%q pass their health check", s.Backends)
		}
		return nil
	})
	c.commanded(t, 0, "create") // it makes the rules again, and waits until the probes arrive
	await(t, "all three are balanced again", c.balancedOver)
}

// addStranger makes a running VM without a service account, which is not the cluster's.
func (c *cluster) addStranger(t *testing.T, name, zone string) {
	t.Helper()
	const project = "projects/" + localgce.ProjectID + "/"
	api, at := c.google(t), project+"zones/"+zone
	o, err := api.Disks.Insert(localgce.ProjectID, zone, &compute.Disk{Name: name + "-data", SizeGb: 10,
		Type: at + "/diskTypes/pd-ssd"}).Do()
	c.carriedOut(t, o, err)
	o, err = api.Instances.Insert(localgce.ProjectID, zone, &compute.Instance{Name: name,
		MachineType: at + "/machineTypes/e2-small",
		Disks: []*compute.AttachedDisk{{Boot: true, AutoDelete: true,
			InitializeParams: &compute.AttachedDiskInitializeParams{SourceImage: project + "global/images/quorate-1"}},
			{Source: at + "/disks/" + name + "-data", DeviceName: localgce.DeviceName, AutoDelete: true}},
		NetworkInterfaces: []*compute.NetworkInterface{{Network: project + "global/networks/default"}}}).Do()
	c.carriedOut(t, o, err)
}

// deleteRule deletes the firewall rule of the cluster with that end.
func (c *cluster) deleteRule(t *testing.T, end string) {
	t.Helper()
	rules, err := c.google(t).Firewalls.List(localgce.ProjectID).Do()
	c.must(t, err)
	for _, r := range rules.Items {
		if strings.HasSuffix(r.Name, end) {
			_, err := c.google(t).Firewalls.Delete(localgce.ProjectID, r.Name).Do()
			c.must(t, err)
			return
		}
	}
	t.Fatalf("there is no rule NAME%s: %v", end, rules.Items)
}
