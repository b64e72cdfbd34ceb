package test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/replica"
)

// routeBack is how soon after its loss the endpoint's route is there again: a check each second, and what a busy machine
// adds.
const routeBack = 5 * time.Second

// routeGap is how long the endpoint may lack its route while networkd works.
const routeGap = 2 * time.Second

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
	c.in(t, "master-a", flush)
	if answers() == nil {
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

// networkd configures a VM's interface as the image has it, but for the address, which no DHCP gives here.
const startNetworkd = `set -eu
mkdir -p /run/dbus /run/systemd/network /run/systemd/networkd.conf.d /run/systemd/netif/links /run/systemd/netif/leases
chown -R systemd-network:systemd-network /run/systemd/netif
mount -t sysfs -o ro sysfs /sys
cat >/run/systemd/networkd.conf.d/quorate.conf
address=$(ip -4 -o address show dev eth0 | awk '{ print $4; exit }')
gateway=$(ip -4 route show default | awk '{ print $3; exit }')
printf '[Match]\nName=eth0\n[Network]\nAddress=%s\nGateway=%s\n' "$address" "$gateway" >/run/systemd/network/20-vm.network
dbus-daemon --system --fork --nopidfile
`

// Security updates restart networkd, and people have it configure an interface anew, by which the kernel drops the
// endpoint's route. Neither costs more than routeGap.
func TestCaseTheEndpointsRouteOutlivesNetworkd(t *testing.T) {
	t.Parallel()
	const networkd = "/lib/systemd/systemd-networkd"
	for _, program := range []string{networkd, "networkctl", "dbus-daemon"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	c := bare(t, plan{vms: []string{"master-a"}})
	await(t, "whole", c.membersWhole)
	conf, err := os.Open("../images/master/files/system/usr/lib/systemd/networkd.conf.d/quorate.conf")
	c.must(t, err)
	defer conf.Close()
	cmd, err := c.Command(t.Context(), "master-a", "sh", "-c", startNetworkd)
	c.must(t, err)
	cmd.Stdin = conf
	_, err = run(cmd)
	c.must(t, err)
	const start = "container=test setsid " + networkd + " >/run/networkd.log 2>&1 & sleep 2; networkctl --no-pager status eth0"
	t.Log(c.in(t, "master-a", start))
	for _, what := range []struct{ name, script string }{
		// As RestartKillSignal= of its unit has it.
		{"restarted", "pkill -USR2 -x systemd-network; " + start},
		{"killed", "pkill -KILL -x systemd-network; " + start},
		{"configured anew", "networkctl reconfigure eth0"},
		{"loaded anew with another MTU", "printf '[Link]\nMTUBytes=1460\n' >>/run/systemd/network/20-vm.network; networkctl reload"},
	} {
		await(t, "the endpoint's route is there", c.routeThere)
		end := c.watchRoute()
		c.in(t, "master-a", what.script)
		time.Sleep(2 * routeGap)
		gap := end()
		t.Logf("networkd is %s: the route was away for %s", what.name, gap)
		if gap > routeGap {
			t.Errorf("networkd is %s: the route was away for %s, want at most %s", what.name, gap, routeGap)
		}
	}
	if log := c.logOf("master-a"); !strings.Contains(log, "put back the local route of the endpoint") {
		t.Errorf("nothing has removed the route: this test shows nothing. networkd's log: %s",
			c.in(t, "master-a", "cat /run/networkd.log"))
	}
}

// routeThere says whether master-a takes the endpoint's address for its own.
func (c *cluster) routeThere() error {
	cmd, err := c.Command(context.Background(), "master-a", "ip", "route", "show", "table", "local", "proto", "66")
	if err != nil {
		return err
	}
	out, err := run(cmd)
	if err == nil && out == "" {
		err = errors.New("there is no route")
	}
	return err
}

// watchRoute begins to ask for the route, again and again; end says how long it was away at most.
func (c *cluster) watchRoute() (end func() time.Duration) {
	done, longest := make(chan struct{}), make(chan time.Duration)
	go func() {
		var gap time.Duration
		for there := time.Now(); ; time.Sleep(20 * time.Millisecond) {
			if c.routeThere() == nil {
				there = time.Now()
			}
			gap = max(gap, time.Since(there))
			select {
			case <-done:
				longest <- gap
				return
			default:
			}
		}
	}()
	return func() time.Duration { close(done); return <-longest }
}
