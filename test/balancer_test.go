package test

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/api/compute/v1"
	"google.golang.org/api/option"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/quorate/quorate/internal/localgce"
)

// balancedSection asks for the load balancer and the firewall rules, too.
const balancedSection = fleetSection + `
  loadBalancer: {type: external}
  firewall: {apiSources: [10.251.0.0/16]}`

// balanced is a cluster of three that `quorate create` has made from an empty project, with its load balancer.
func balanced(t *testing.T, p plan) *cluster {
	t.Helper()
	p.replicas, p.noRecord, p.noAttribute, p.more = 3, true, true, balancedSection
	p.images = []localgce.Image{{Name: "quorate-1", Family: "quorate-master"}, {Name: "quorate-2"}}
	p.zones = []string{"us-central1-a", "us-central1-b", "us-central1-c"}
	c := begin(t, p)
	c.commanded(t, 0, "create")
	c.vms = namesOf(c.wantFleet(t, 3, 0))
	await(t, "all three are balanced", c.balancedOver)
	return c
}

// TestTheLoadBalancerThatCreateMakes takes a cluster behind it through a recreation that no command knows of, a roll
// under load, and to its end.
func TestTheLoadBalancerThatCreateMakes(t *testing.T) {
	t.Parallel()
	own := t.TempDir()
	if err := os.WriteFile(filepath.Join(own, standInOrder), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c := balanced(t, plan{bare: true, programs: own})
	insecure := &tls.Config{InsecureSkipVerify: true}
	if !t.Run("a master deleted and made anew outside quorate is served again", c.madeAnewOutside) {
		t.FailNow()
	}
	if !t.Run("who cannot be removed yet goes on serving", c.orderedOutTooSoon) {
		t.FailNow()
	}
	t.Run("roll fails no request", func(t *testing.T) {
		a := c.startAsking(t, "/api/v1/namespaces/default", insecure)
		c.rolled(t)
		a.wantNoneFailed(t, "roll of three")
	})
	c.commanded(t, 0, "delete")
	c.wantEmptyProject(t)
	client := &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{TLSClientConfig: insecure}}
	if _, err := client.Get("https://" + c.endpoint() + "/livez"); err == nil {
		t.Error("somebody answers at the endpoint after its forwarding rule was deleted")
	}
}

// The same roll with kube-apiserver itself.
func TestARollFailsNoRequestOfKubernetes(t *testing.T) {
	onlyInChaos(t, "four minutes")
	c := balanced(t, plan{})
	c.awaitWhole(t)
	conf, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig())
	c.must(t, err)
	secure, err := rest.TLSConfigFor(conf)
	c.must(t, err)
	a := c.startAsking(t, "/api/v1/namespaces/default", secure)
	c.rolled(t)
	a.wantNoneFailed(t, "roll of three")
}

// rolled makes all masters anew of another image.
func (c *cluster) rolled(t *testing.T) {
	t.Helper()
	time.Sleep(2 * time.Second)
	c.commanded(t, 0, "roll", "--image", "quorate-2")
	await(t, "all three are balanced", c.balancedOver)
	time.Sleep(2 * time.Second)
	if made := c.madeBy(t); !slices.Equal(made, []string{"quorate-2"}) {
		t.Errorf("masters are of %q", made)
	}
}

// balancedOver says what is missing to new connections that go to all VMs.
func (c *cluster) balancedOver() error {
	if s := c.Status(); len(s.Backends) != len(c.vms) || s.FailOpen {
		return fmt.Errorf("the endpoint is balanced over %q, open %t", s.Backends, s.FailOpen)
	}
	return nil
}

// google speaks to the project's Compute API as anybody does who has rights there.
func (c *cluster) google(t *testing.T) *compute.Service {
	t.Helper()
	api, err := compute.NewService(t.Context(), option.WithEndpoint(c.Status().ComputeEndpoint),
		option.WithoutAuthentication())
	c.must(t, err)
	return api
}

// carriedOut waits for an operation of a zone.
func (c *cluster) carriedOut(t *testing.T, o *compute.Operation, err error) {
	t.Helper()
	c.must(t, err)
	zone := o.Zone[strings.LastIndexByte(o.Zone, '/')+1:]
	for o.Status != "DONE" {
		o, err = c.google(t).ZoneOperations.Wait(localgce.ProjectID, zone, o.Name).Context(t.Context()).Do()
		c.must(t, err)
	}
	if o.Error != nil {
		t.Fatalf("%s: %+v", o.OperationType, o.Error.Errors[0])
	}
}

// madeAnewOutside deletes a VM and makes one of its name on its disk, as gcloud does.
func (c *cluster) madeAnewOutside(t *testing.T) {
	api, name, zone := c.google(t), c.vms[0], c.vm(c.vms[0]).Zone
	was, err := api.Instances.Get(localgce.ProjectID, zone, name).Do()
	c.must(t, err)
	o, err := api.Instances.Delete(localgce.ProjectID, zone, name).Do()
	c.carriedOut(t, o, err)
	endpoints := func() (n int) {
		list, err := api.NetworkEndpointGroups.ListNetworkEndpoints(localgce.ProjectID, zone, c.conf.Cluster,
			&compute.NetworkEndpointGroupsListEndpointsRequest{HealthStatus: "SKIP"}).Do()
		c.must(t, err)
		return len(list.Items)
	}
	if n := endpoints(); n != 0 {
		t.Fatalf("the endpoint group of %s has %d endpoints after its VM was deleted", zone, n)
	}
	next := &compute.Instance{Name: name, MachineType: was.MachineType, Labels: was.Labels,
		Metadata: &compute.Metadata{Items: was.Metadata.Items},
		Disks: []*compute.AttachedDisk{{Boot: true, AutoDelete: true, InitializeParams: &compute.
			AttachedDiskInitializeParams{SourceImage: "projects/" + localgce.ProjectID + "/global/images/quorate-1"}},
			{Source: was.Disks[1].Source, DeviceName: was.Disks[1].DeviceName}},
		NetworkInterfaces: []*compute.NetworkInterface{{Network: was.NetworkInterfaces[0].Network}},
		ServiceAccounts:   was.ServiceAccounts}
	o, err = api.Instances.Insert(localgce.ProjectID, zone, next).Do()
	c.carriedOut(t, o, err)
	await(t, "whole", c.membersWhole)
	await(t, "it is attached", func() error {
		if n := endpoints(); n != 1 {
			return fmt.Errorf("the endpoint group of %s has %d endpoints", zone, n)
		}
		return nil
	})
	await(t, "all three are balanced", c.balancedOver)
}

// orderedOutTooSoon orders two masters to leave while the third is down. Without the first of them the rest would be no
// quorum, so both stay behind the load balancer until the orders are taken back.
func (c *cluster) orderedOutTooSoon(t *testing.T) {
	leader := c.leader(t)
	others := c.others(leader)
	c.must(t, c.StopVM(t.Context(), others[1]))
	var orders []uint64
	for _, vm := range []string{leader, others[0]} {
		orders = append(orders, c.order(t, "orders", "give", "leave", vm, "--yes"))
	}
	await(t, "the orders are not followed", func() error { return c.blocked(leader, "leave-needs-quorum") })
	for end := time.Now().Add(25 * time.Second); time.Now().Before(end); time.Sleep(time.Second) { // three rounds
		if s := c.Status(); len(s.Backends) != 2 {
			t.Fatalf("while two are ordered out, and one is down, these serve: %q", s.Backends)
		}
		for _, vm := range []string{leader, others[0]} {
			if s, err := c.status(vm); err != nil || !s.Replica.Ready {
				t.Fatalf("%s: %+v, %v", vm, s.Replica, err)
			}
		}
	}
	for _, n := range orders {
		c.order(t, "orders", "withdraw", fmt.Sprint(n))
	}
	c.must(t, c.StartVM(t.Context(), others[1]))
	await(t, "whole", c.membersWhole)
	await(t, "all three are balanced", c.balancedOver)
}

// madeBy are the images of the masters, each once.
func (c *cluster) madeBy(t *testing.T) (out []string) {
	t.Helper()
	for _, r := range c.wantFleet(t, len(c.vms), 0) {
		out = append(out, r.Image[strings.LastIndexByte(r.Image, '/')+1:])
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// wantEmptyProject wants nothing to be left of a cluster.
func (c *cluster) wantEmptyProject(t *testing.T) {
	t.Helper()
	const region = "us-central1"
	api, left := c.google(t), map[string]int{}
	count := func(kind string, n int, err error) {
		c.must(t, err)
		left[kind] += n
	}
	rules, err := api.ForwardingRules.List(localgce.ProjectID, region).Do()
	count("forwarding rules", len(rules.Items), err)
	services, err := api.RegionBackendServices.List(localgce.ProjectID, region).Do()
	count("backend services", len(services.Items), err)
	checks, err := api.RegionHealthChecks.List(localgce.ProjectID, region).Do()
	count("health checks", len(checks.Items), err)
	for _, zone := range []string{"us-central1-a", "us-central1-b", "us-central1-c"} {
		groups, err := api.NetworkEndpointGroups.List(localgce.ProjectID, zone).Do()
		count("endpoint groups", len(groups.Items), err)
	}
	walls, err := api.Firewalls.List(localgce.ProjectID).Do()
	for _, w := range walls.Items {
		if strings.HasPrefix(w.Name, c.conf.Cluster+"-") {
			count("firewall rules", 1, err)
		}
	}
	disks, err := filepath.Glob(filepath.Join(c.conf.State, "disks", "*"))
	count("disks", len(disks), err)
	count("VMs", len(c.Status().VMs), nil)
	for kind, n := range left {
		if n > 0 {
			t.Errorf("%d %s are left", n, kind)
		}
	}
}
