package test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorate/quorate/etcdmember/member"
	"github.com/quorate/quorate/etcdmember/table"
	"github.com/quorate/quorate/internal/localgce"
)

// This file holds the cases in which a certificate is not good any more, or never was.

// expired is a leaf that ended an hour ago.
func expired(leaf *x509.Certificate) {
	leaf.NotBefore, leaf.NotAfter = time.Now().Add(-91*24*time.Hour), time.Now().Add(-time.Hour)
}

// short is a leaf that is due for renewal in the moment before a time is over, and ends six seconds after it, or later
// where that time is longer than ten seconds: it is good already, and is renewed when a third of its life is left.
func short(due time.Duration) func(*x509.Certificate) {
	before := max(12*time.Second, due+2*time.Second)
	begin := time.Now().Add(due - before)
	return func(leaf *x509.Certificate) { leaf.NotBefore, leaf.NotAfter = begin, begin.Add(before*3/2) }
}

// elsewhere is a leaf of another machine.
func elsewhere(leaf *x509.Certificate) {
	leaf.DNSNames, leaf.IPAddresses = []string{"elsewhere.example"}, []net.IP{net.IPv4(10, 9, 9, 9)}
}

// lasting says which leaf of a replica will not last for two months.
func (c *cluster) lasting(t *testing.T, vm string, names []string) error {
	t.Helper()
	for _, name := range names {
		if leaf := c.leaf(t, vm, name); time.Until(leaf.NotAfter) < 60*24*time.Hour {
			return fmt.Errorf("%s on %s ends at %s", name, vm, leaf.NotAfter)
		}
	}
	return nil
}

func TestCase23LeavesThatExpiredWhileTheVMsWereOff(t *testing.T) {
	t.Parallel()
	c, l := threeMembers(t)
	keys := c.export(t)
	vm := c.follower(t)
	before, all := c.member(t, vm), c.leaves(t, vm)
	c.plant(t, keys, vm, all, expired)
	c.must(t, c.KillVM(t.Context(), vm))
	c.must(t, c.StartVM(t.Context(), vm))
	await(t, vm+", whose leaves had expired, is whole again", c.membersWhole)
	c.must(t, c.lasting(t, vm, all))
	c.wantMember(t, vm, before, true)

	// Of all three one comes first, with leaves that it has to renew while it waits for the others.
	first := c.vms[0]
	begun := len(c.logOf(first))
	c.plant(t, keys, first, all, short(10*time.Second))
	for _, other := range c.others(first) {
		c.plant(t, keys, other, all, expired)
	}
	c.together(t, c.vms, c.KillVM)
	c.must(t, c.StartVM(t.Context(), first))
	await(t, first+" renews while it waits for the others", func() error { return c.lasting(t, first, all) })
	log := c.logOf(first)[begun:]
	if waits, renews := strings.Index(log, "phase=certificates took="),
		strings.Index(log, "renewal was due"); waits < 0 || renews < waits {
		t.Errorf("its leaves were not renewed behind the phase of the certificates, but at %d, and that was done at %d",
			renews, waits)
	}
	if s, err := c.status(first); err != nil || s.Replica.Phase != "etcd" {
		t.Errorf("it does not wait in the phase etcd, but is in %q: %v", s.Replica.Phase, err)
	}
	c.together(t, c.others(first), c.StartVM)
	await(t, "all three, whose leaves had expired, are whole again", c.membersWhole)
	for _, vm := range c.vms {
		c.must(t, c.lasting(t, vm, all))
	}
	c.wantMember(t, vm, before, true)
	c.invariants(t, l)
}

// ofEtcd are the leaves that etcd and its clients on a replica present.
var ofEtcd = []string{"etcd-server", "etcd-peer", "agent-etcd"}

func TestCase23RenewalUnderLoad(t *testing.T) {
	t.Parallel()
	c, l := threeMembers(t)
	keys := c.export(t)
	end := c.bootWithShortLeaves(t, keys)
	processes := map[string][]string{}
	for _, vm := range c.vms {
		processes[vm] = c.processes(vm)["etcd"]
	}
	l.stall()
	for _, vm := range c.vms {
		await(t, vm+" renews", func() error { return c.lasting(t, vm, ofEtcd) })
	}
	time.Sleep(time.Until(end.Add(time.Second)))
	if stall := l.stall(); stall > time.Second {
		t.Errorf("writes stalled %s while leaves were renewed and the former ones ended", stall)
	}
	for i, vm := range c.vms { // streams live as long as their connections: new ones have to do with what is there now
		_, err := c.ResetConnections(t.Context(), vm, c.vms[(i+1)%len(c.vms)])
		c.must(t, err)
	}
	since := time.Now()
	await(t, "clients go on", func() error { return l.goOn(since) })
	t.Logf("all connections between members were new: writes stalled %s", l.stall())
	for _, vm := range c.vms {
		if now := c.processes(vm)["etcd"]; !slices.Equal(now, processes[vm]) {
			t.Errorf("etcd on %s was started again: %q, before %q", vm, now, processes[vm])
		}
		c.wantPresented(t, vm, table.PeerPort, "etcd-peer")
		c.wantPresented(t, vm, member.ClientPort, "etcd-server")
	}
	c.invariants(t, l)
}

// bootWithShortLeaves brings all replicas up with leaves of etcd that they will have to renew soon, and says when those
// end.
func (c *cluster) bootWithShortLeaves(t *testing.T, keys escrow) (end time.Time) {
	t.Helper()
	for due := 8 * time.Second; due < patience; due *= 2 { // a slow machine needs longer ones
		change := short(due)
		for _, vm := range c.vms {
			c.plant(t, keys, vm, ofEtcd, change)
		}
		end = c.leaf(t, c.vms[0], "etcd-peer").NotAfter
		c.together(t, c.vms, c.KillVM)
		c.together(t, c.vms, c.StartVM)
		await(t, "whole", c.membersWhole)
		renewed := func(vm string) bool {
			return slices.ContainsFunc(ofEtcd,
				func(name string) bool { return !c.leaf(t, vm, name).NotAfter.Equal(end) })
		}
		if !slices.ContainsFunc(c.vms, renewed) {
			return end
		}
	}
	t.Fatal("a boot takes longer than any short leaf lives")
	return end
}

// wantPresented wants a port of a VM's member to show the leaf that is on the disk.
func (c *cluster) wantPresented(t *testing.T, vm string, port int, name string) {
	t.Helper()
	path := c.diskOf(vm, "pki/"+name+".pem")
	own, err := tls.LoadX509KeyPair(path, path)
	c.must(t, err)
	shown, err := c.presented(vm, port, own)
	if err != nil || !shown.Equal(own.Leaf) {
		t.Errorf("port %d of %s does not show the %s leaf of the disk: %v", port, vm, name, err)
	}
}

func TestCase23LeavesForAnotherNameAndAddress(t *testing.T) {
	t.Parallel()
	c, l := threeMembers(t)
	keys := c.export(t)
	c.refusals(t, keys)

	// A leaf for another machine on a running member: the others refuse it, in both directions, and go on.
	vm := c.follower(t)
	before, leader := c.member(t, vm), c.leader(t)
	serving := []string{"etcd-server", "etcd-peer"}
	c.plant(t, keys, vm, serving, elsewhere)
	for _, other := range c.others(vm) {
		_, err := c.ResetConnections(t.Context(), other, vm)
		c.must(t, err)
	}
	await(t, leader+" refuses "+vm, func() error {
		b, err := os.ReadFile(filepath.Join(c.vm(leader).LogFolder, "etcd.log"))
		for _, words := range []string{"certificate is valid for elsewhere.example, not " + vm,
			"tls: " + quoted(c.vm(vm).Address) + " does not match any of"} {
			if !strings.Contains(string(b), words) {
				err = errors.Join(err, fmt.Errorf("its log lacks: %s", words))
			}
		}
		return err
	})
	since := time.Now()
	await(t, "clients go on without it", func() error { return l.goOn(since) })
	if chaos {
		await(t, "it says so", func() error { return c.blocked(vm, "peers-do-not-connect") })
	}

	// It comes back at another address, and before its etcd starts it has a leaf for that.
	begun := len(c.logOf(vm))
	c.must(t, c.RecreateVM(t.Context(), vm, localgce.Recreation{Address: c.nextFree()}))
	await(t, vm+" is whole again at a new address", c.membersWhole)
	c.wantMember(t, vm, before, true)
	log := c.logOf(vm)
	log = log[min(begun, len(log)):]
	if reissued, done := strings.Index(log, "it lacks the "),
		strings.Index(log, "phase=certificates took="); reissued < 0 || reissued > done {
		t.Errorf("its leaves were not made anew before etcd, but at %d, and the phase of the certificates was "+
			"done at %d", reissued, done)
	}
	for _, name := range serving {
		if leaf := c.leaf(t, vm, name); leaf.VerifyHostname(c.vm(vm).Address) != nil ||
			slices.Contains(leaf.DNSNames, "elsewhere.example") {
			t.Errorf("%s is for %q, %v", name, leaf.DNSNames, leaf.IPAddresses)
		}
	}
	c.wantPresented(t, vm, table.PeerPort, "etcd-peer")
	c.invariants(t, l)
}

// refusals knocks at a peer port with leaves that differ in one thing each: who opens it must be a peer, at the address
// that its leaf names.
func (c *cluster) refusals(t *testing.T, keys escrow) {
	t.Helper()
	vm := c.vms[0]
	like, peers := c.leaf(t, vm, "etcd-peer"), keys.Authorities["etcd-peer"]
	host := c.host(t)
	from := func(names []string, addresses ...net.IP) func(*x509.Certificate) {
		return func(leaf *x509.Certificate) { leaf.DNSNames, leaf.IPAddresses = names, addresses }
	}
	if err := c.knock(t, vm, peers.forge(t, like, from(nil, host))); err != nil {
		t.Fatalf("a peer that comes from where its leaf says is refused: %v", err)
	}
	for what, leaf := range map[string][]byte{
		"another address":               peers.forge(t, like, from(nil, net.IPv4(10, 9, 9, 9))),
		"the address of another member": peers.forge(t, like, func(*x509.Certificate) {}),
		"a name that leads nowhere":     peers.forge(t, like, from([]string{"elsewhere.example"})),
		"an expired leaf": peers.forge(t, like,
			func(leaf *x509.Certificate) { from(nil, host)(leaf); expired(leaf) }),
		"a leaf of the clients' CA": keys.Authorities["etcd-client"].forge(t, like, from(nil, host)),
		"a leaf of a stranger's CA": peers.another(t).forge(t, like, from(nil, host)),
	} {
		if c.knock(t, vm, leaf) == nil {
			t.Errorf("%s opens the peer port", what)
		}
	}
}

// quoted is an address as etcd's log has it, a string inside of JSON.
func quoted(s string) string { return `\"` + s + `\"` }

// The two CAs of etcd are rolled while clients write: all trust the next ones, all are issued by them, the first ones
// are dropped. What takes every step to the replicas is a boot, one replica at a time.
func TestCase23AuthoritiesAreRolled(t *testing.T) {
	t.Parallel()
	c := bare(t, plan{vms: threeVMs})
	await(t, "whole", c.membersWhole)
	keys := c.export(t)
	first, next := map[string]*authority{}, map[string]*authority{}
	roll := func(what string, one bool, make func(name string) *authority) {
		keys.Generation++
		for name := range next {
			keys.Authorities[name] = make(name)
		}
		c.must(t, c.imports(t, keys))
		c.reboot(t, what, one)
	}
	for _, name := range []string{"etcd-peer", "etcd-client"} {
		first[name] = keys.Authorities[name]
		next[name] = first[name].another(t)
	}
	client := c.rollingClient(t, first["etcd-client"], next["etcd-client"])
	l := c.startWriters(t)

	// The next one must not issue before the others trust it: the replicas that have it would be refused by those that
	// have not.
	early := keys
	early.Generation++
	early.Authorities = map[string]*authority{}
	for name, a := range keys.Authorities {
		early.Authorities[name] = a
	}
	early.Authorities["etcd-peer"] = &authority{next["etcd-peer"].Certificate, next["etcd-peer"].Key,
		[]string{first["etcd-peer"].Certificate}}
	if err := c.imports(t, early); err == nil || !strings.Contains(err.Error(), "etcd-peer CA") {
		t.Fatalf("a CA that nobody trusts yet is to issue: %v", err)
	}

	roll("all trust both CAs", chaos, func(name string) *authority {
		return &authority{first[name].Certificate, first[name].Key, []string{next[name].Certificate}}
	})
	like := c.leaf(t, c.vms[0], "etcd-peer")
	here := func(leaf *x509.Certificate) {
		leaf.IPAddresses, leaf.DNSNames = []net.IP{c.host(t)}, nil
	}
	for _, vm := range c.vms {
		for which, a := range map[string]*authority{"first": first["etcd-peer"], "next": next["etcd-peer"]} {
			if err := c.knock(t, vm, a.forge(t, like, here)); err != nil {
				t.Errorf("%s refuses a leaf of the %s CA: %v", vm, which, err)
			}
		}
	}

	roll("all are issued by the next ones", true, func(name string) *authority {
		return &authority{next[name].Certificate, next[name].Key, []string{first[name].Certificate}}
	})
	for _, vm := range c.vms {
		for _, name := range []string{"etcd-peer", "etcd-server"} {
			if leaf := c.leaf(t, vm, name); keys.issuer(t, leaf) == nil || !strings.HasSuffix(leaf.Issuer.CommonName,
				"-next") {
				t.Errorf("%s on %s is from %s", name, vm, leaf.Issuer)
			}
		}
	}
	if chaos {
		client.Store(c.clientOf(t))
		roll("the first ones are dropped", true, func(name string) *authority {
			return &authority{Certificate: next[name].Certificate, Key: next[name].Key}
		})
		for _, vm := range c.vms {
			if c.knock(t, vm, first["etcd-peer"].forge(t, like, here)) == nil {
				t.Errorf("%s still takes a leaf of the CA that was dropped", vm)
			}
		}
	}
	c.invariants(t, l)
}

// reboot takes the power of all VMs for a moment, one after the other or of all at once.
func (c *cluster) reboot(t *testing.T, what string, one bool) {
	t.Helper()
	turns := [][]string{c.vms}
	if one {
		turns = nil
		for _, vm := range c.vms {
			turns = append(turns, []string{vm})
		}
	}
	for _, vms := range turns {
		c.together(t, vms, c.StopVM)
		c.together(t, vms, c.StartVM)
		await(t, what+": "+strings.Join(vms, ", "), c.membersWhole)
	}
}

// clientOf is the agent's own certificate for etcd, of one replica.
func (c *cluster) clientOf(t *testing.T) *tls.Certificate {
	t.Helper()
	path := c.diskOf(c.vms[0], "pki/agent-etcd.pem")
	pair, err := tls.LoadX509KeyPair(path, path)
	c.must(t, err)
	return &pair
}

// rollingClient makes the case's clients trust both CAs, and take their own certificate from where it can be exchanged.
func (c *cluster) rollingClient(t *testing.T, trusted ...*authority) *atomic.Pointer[tls.Certificate] {
	t.Helper()
	var own atomic.Pointer[tls.Certificate]
	own.Store(c.clientOf(t))
	roots := x509.NewCertPool()
	for _, a := range trusted {
		roots.AppendCertsFromPEM([]byte(a.Certificate))
	}
	c.clientTLS = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return own.Load(), nil }}
	return &own
}
