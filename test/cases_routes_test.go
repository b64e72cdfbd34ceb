package test

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/replica"
)

// routeBack is how soon after its loss the endpoint's route is there again: a check each second, and what a busy
// machine adds.
const routeBack = 5 * time.Second

// A load balancer delivers packets with the endpoint's address, and nothing but a route of the VM's own makes them
// local. A restart of the VM's network service takes it away, and with it the master, while its apiserver is ready.
func TestCaseTheEndpointsRouteComesBack(t *testing.T) {
	t.Parallel()
	c := bare(t, plan{vms: []string{"master-a"}})
	await(t, "whole", c.membersWhole)
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	answers := func() error {
		r, err := client.Get("https://" + c.endpoint() + "/livez")
		if err == nil {
			r.Body.Close()
		}
		return err
	}
	await(t, "the endpoint answers", answers)
	const flush = "ip route flush table local proto 66"
	lost := false
	for range 5 { // the agent may look, and put it back, in the moment before the question
		c.in(t, "master-a", flush)
		if lost = answers() != nil; lost {
			break
		}
	}
	if !lost {
		t.Fatal("the endpoint answers without the route: this test shows nothing")
	}
	awaitWithin(t, routeBack, "the route is back", answers)

	waits := func() error {
		s, err := c.status("master-a")
		if err == nil && !slices.ContainsFunc(s.Blocked, func(w replica.Wait) bool {
			return w.Name == "endpoint-route-missing" && strings.Contains(w.Reason, "no interface has the hardware address")
		}) {
			err = fmt.Errorf("the status has no wait for the route: %+v", s.Blocked)
		}
		return err
	}
	mac := strings.TrimSpace(c.in(t, "master-a", "cat /sys/class/net/eth0/address"))
	c.in(t, "master-a", "ip link set eth0 address 42:01:00:00:00:01; "+flush)
	awaitWithin(t, routeBack, "the wait is told", waits)
	c.in(t, "master-a", "ip link set eth0 address "+mac)
	awaitWithin(t, routeBack, "the endpoint answers again", answers)
	awaitWithin(t, routeBack, "the wait has ended", func() error {
		if waits() == nil {
			return fmt.Errorf("the status has it")
		}
		return nil
	})
}
