package localroute_test

import (
	"bufio"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/localroute"
)

const (
	networkd = "/lib/systemd/systemd-networkd"
	// checkPeriod is the agent's routePeriod, and mostGap how long the endpoint may lack its route.
	checkPeriod, mostGap = time.Second, 2 * time.Second
)

// beginNetworkd has networkd configure eth0 with the image's own settings, but for the address, which no DHCP gives
// here.
const beginNetworkd = `mount -t tmpfs tmpfs /run
mount -t sysfs -o ro sysfs /sys
mkdir -p /run/dbus /run/systemd/network /run/systemd/networkd.conf.d /run/systemd/netif/links /run/systemd/netif/leases
chown -R systemd-network:systemd-network /run/systemd/netif
cp ../../images/master/files/system/usr/lib/systemd/networkd.conf.d/quorate.conf /run/systemd/networkd.conf.d/
cat >/run/systemd/network/20-vm.network <<N
[Match]
Name=eth0
[Network]
Address=10.9.0.2/24
Gateway=10.9.0.1
LinkLocalAddressing=no
IPv6AcceptRA=no
N
dbus-daemon --system --fork --nopidfile
start() {
  container=test setsid ` + networkd + ` >/run/networkd.log 2>&1 &
  until networkctl --no-legend list eth0 2>/dev/null | grep -q configured; do sleep 0.2; done
}
end() {
  kill "$1" $! && wait $! || true
}
start
`

// shell is one whose mounts are its own. It runs what it is told, and waits for its end.
type shell struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Reader
}

func newShell(t *testing.T) shell {
	t.Helper()
	cmd := exec.Command("unshare", "--mount", "--propagation", "private", "sh", "-eu")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return shell{t, in, bufio.NewReader(out)} // it ends with the pid namespace
}

func (s shell) run(script string) {
	s.t.Helper()
	fmt.Fprintf(s.in, "%s\necho done\n", script)
	if line, err := s.out.ReadString('\n'); err != nil || line != "done\n" {
		s.t.Fatalf("%s: %q, %v", script, line, err)
	}
}

// Security updates restart networkd, and people have it configure an interface anew, by which the kernel drops the
// endpoint's route. With a check each second, neither costs the endpoint more than mostGap.
func TestTheRouteOutlivesNetworkd(t *testing.T) {
	for _, program := range []string{networkd, "networkctl", "dbus-daemon", "unshare"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root: networkd becomes a user of its own")
	}
	inNamespace(t, func(t *testing.T) {
		p := netip.MustParsePrefix("203.0.113.7/32")
		s := newShell(t)
		s.run(beginNetworkd)
		for _, what := range []struct {
			name, script string
			lost         bool // without somebody who puts it back
		}{
			{"restarted", "end -USR2; start", false}, // as RestartKillSignal= of its unit has it
			{"killed", "end -KILL; start", false},
			{"told to configure anew", "networkctl reconfigure eth0", true},
			{"given another MTU", `printf '[Link]\nMTUBytes=1460\n' >>/run/systemd/network/20-vm.network; networkctl reload`, true},
		} {
			if err := (localroute.Table{}).Add(mac, p); err != nil {
				t.Fatal(err)
			}
			stop := keep(t, p)
			s.run(what.script)
			time.Sleep(2 * mostGap)
			gap := stop()
			t.Logf("networkd is %s: the route was away for %s", what.name, gap)
			if gap > mostGap || len(list(t, p)) != 1 {
				t.Errorf("networkd is %s: the route was away for %s, want at most %s", what.name, gap, mostGap)
			}
			if lost := gap > 100*time.Millisecond; lost && !what.lost {
				t.Errorf("networkd is %s: the route was lost, although networkd manages no foreign routes", what.name)
			}
		}
	})
}

// keep does what the agent does: it checks each second whether the route is there. stop says how long it was not.
func keep(t *testing.T, p netip.Prefix) (stop func() time.Duration) {
	ask, done := make(chan struct{}), make(chan time.Duration)
	go func() {
		var gap time.Duration
		there, checked := time.Now(), time.Now()
		for {
			if len(list(t, p)) > 0 {
				there = time.Now()
			} else if gap = max(gap, time.Since(there)); time.Since(checked) >= checkPeriod {
				_ = localroute.Table{}.Add(mac, p)
			}
			if time.Since(checked) >= checkPeriod {
				checked = time.Now()
			}
			select {
			case <-ask:
				done <- gap
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	}()
	return func() time.Duration { close(ask); return <-done }
}
