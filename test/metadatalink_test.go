package test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/quorate/quorate/internal/localgce/instance"
	"github.com/quorate/quorate/internal/localgce/metadata"
)

// linkFar is the metadata server's end of the link, in a namespace of its own. What it receives is for the pods' range,
// by way of the VM. Addresses of the hardware are fixed: the VM answers ARP for its own addresses alone.
const linkFar = `
	ip link set lo up
	ip link add meta1 address 02:00:00:00:00:01 type veth peer name meta0 address 02:00:00:00:00:02 netns %d
	ip addr add 169.254.169.254/32 dev meta1
	ip link set meta1 up
	ip neigh add 169.254.169.253 lladdr 02:00:00:00:00:02 dev meta1
	ip route add default via 169.254.169.253 dev meta1 onlink`

// linkNear is the VM's end. Only what comes from pods takes it: by its first rule the kernel decides whether a packet
// is the node's own, and one for the bridge goes before that. The node itself keeps its metadata server.
const linkNear = `set -e
	echo 1 >/proc/sys/net/ipv4/conf/meta0/accept_local
	ip link set meta0 up
	ip neigh add 169.254.169.254 lladdr 02:00:00:00:00:01 dev meta0
	ip route add 169.254.169.254 dev meta0 table 100
	ip rule add pref 1 iif cni0 to 169.254.169.254 lookup 100
	ip rule add pref 2 lookup local
	ip rule del pref 0`

// linkMetadata puts a metadata server at the end of a link of the VM, as GCE's is: what pods send there is forwarded,
// where localgce's own is delivered to the node. It gives tokens, and sends back what it gets on the ports of DNS and
// time. The end of the test or of the VM takes it away.
func (c *cluster) linkMetadata(t *testing.T, vm string) {
	t.Helper()
	calls := make(chan func())
	go func() {
		// The thread ends with this goroutine, because it is never unlocked: no other gets its network.
		runtime.LockOSThread()
		for call := range calls {
			call()
		}
	}()
	t.Cleanup(func() { close(calls) })
	far := func(do func() error) {
		t.Helper()
		done := make(chan error)
		calls <- func() { done <- do() }
		c.must(t, <-done)
	}
	far(func() error { return unix.Unshare(unix.CLONE_NEWNET) })
	far(func() error {
		_, err := run(exec.Command("sh", "-ec", fmt.Sprintf(linkFar, c.vm(vm).InitPID)))
		return err
	})
	var closers []io.Closer
	t.Cleanup(func() {
		for _, s := range closers {
			s.Close()
		}
	})
	v := c.vm(vm)
	tokens := metadata.New(instance.VM{Name: vm, Zone: v.Zone,
		Address: netip.MustParseAddr(v.Address)})
	far(func() error {
		l, err := net.Listen("tcp4", "169.254.169.254:80")
		if err == nil {
			closers = append(closers, l)
			go http.Serve(l, tokens) // ends with the listener
		}
		return err
	})
	for _, port := range []string{"53", "123"} {
		far(func() error {
			s, err := net.ListenPacket("udp4", "169.254.169.254:"+port)
			if err == nil {
				closers = append(closers, s)
				go sendBack(s)
			}
			return err
		})
	}
	c.in(t, vm, linkNear)
}

// sendBack answers each datagram with itself, until the socket is closed.
func sendBack(s net.PacketConn) {
	for b := make([]byte, 512); ; {
		n, from, err := s.ReadFrom(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			_, _ = s.WriteTo(b[:n], from) // a datagram may get lost
		}
	}
}

// guardForwards has the metadata server at the end of a link. That the guard's rules for what is forwarded do it shows
// without them: those for what is delivered stand, and the pod reads the token.
func guardForwards(t *testing.T, c *cluster) {
	c.linkMetadata(t, c.vms[0])
	c.refused(t)
	for name, question := range map[string]string{"DNS": askName, "time": askTime} {
		if out, err := c.inPod(t, "client", question); err != nil || strings.TrimSpace(out) == "0" {
			t.Errorf("%s has an answer of %q bytes, %v", name, out, err)
		}
	}
	hostReadsToken(t, c)
	await(t, "without the rules a pod reads the token", func() error {
		c.in(t, c.vms[0], "nft delete chain inet quorate-metadata-guard forward 2>/dev/null || true")
		out, err := c.inPod(t, "client", askToken)
		if err == nil && !strings.Contains(out, "access_token") {
			err = fmt.Errorf("it reads %q", out)
		}
		return err
	})
	c.refused(t)
}
