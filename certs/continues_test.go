package certs

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// changed is a bundle with other lists of its own, which a change may write to.
func changed(b *Bundle, change func(*Bundle)) *Bundle {
	next := *b
	next.authorities = maps.Clone(b.authorities)
	next.serviceAccount, next.encryption = slices.Clone(b.serviceAccount), slices.Clone(b.encryption)
	change(&next)
	return &next
}

func TestAGenerationContinuesTheFormerInBothDirections(t *testing.T) {
	b := testBundle(t)
	knows, works := inTwo(t, b, t0)
	other := rotated(t, b, t0)
	other.Generation = works.Generation
	for name, c := range map[string]struct {
		former *Bundle
		next   *Bundle
		want   string
	}{
		"it knows what is new":        {b, knows, ""},
		"it works with what is known": {knows, works, ""},
		"both at once": {b, works,
			"issues with a new kubernetes CA, which the masters do not trust yet"},
		"what nobody works with is gone": {works, changed(works, without), ""},
		"another CA": {b,
			changed(knows, func(n *Bundle) { n.authorities[EtcdPeer] = testBundle(t).authorities[EtcdPeer] }),
			"does not trust the etcd-peer CA that issues now"},
		"it signs with a key that is not known": {b,
			changed(knows, func(n *Bundle) { slices.Reverse(n.serviceAccount) }),
			"signs with a new service-account key, by which the masters do not verify yet"},
		"it signs with another one than is known": {knows, changed(works, func(n *Bundle) {
			n.serviceAccount = append(other.serviceAccount[:1:1], n.serviceAccount...)
		}), "signs with a new service-account key"},
		"it lacks the key that signs": {b, changed(knows, func(n *Bundle) { n.serviceAccount = n.serviceAccount[1:] }),
			"lacks the service-account key that signs now"},
		"it encrypts with a key that is not known": {b,
			changed(knows, func(n *Bundle) { slices.Reverse(n.encryption) }),
			"encrypts with the new key g2, with which the masters do not decrypt yet"},
		"it encrypts with another key of a known name": {knows, changed(works, func(n *Bundle) {
			n.encryption[0] = encryptionKey{name: "g2", secret: other.encryption[0].secret}
		}), "lacks encryption key g2"},
		"it encrypts with a known key of another name": {knows, changed(works, func(n *Bundle) {
			n.encryption = append([]encryptionKey{{name: "g3", secret: n.encryption[0].secret}}, n.encryption...)
		}), "encrypts with the new key g3"},
		"it lacks the key that encrypts": {b, changed(knows, func(n *Bundle) { n.encryption = n.encryption[1:] }),
			"lacks encryption key g1"},
		"it lacks a key that encrypted once": {works,
			changed(works, func(n *Bundle) { without(n); n.encryption = n.encryption[:1] }),
			"lacks encryption key g1"},
		"the same generation": {b, changed(knows, func(n *Bundle) { n.Generation = 1 }), "a higher generation"},
		"another cluster":     {b, changed(knows, func(n *Bundle) { n.ClusterUID = "uid-2" }), "the same cluster"},
	} {
		err := c.next.Continues(c.former)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if c.next.Generation > c.former.Generation && c.next.ClusterUID == c.former.ClusterUID {
			if beside := goOnBesideEachOther(t, c.former, c.next); beside != (err == nil) {
				t.Errorf("%s: masters of the two go on beside each other: %t, and continues: %v", name, beside, err)
			}
		}
	}
}

// without is the next generation, without the CAs and the keys for tokens that nobody works with.
func without(n *Bundle) {
	n.Generation++
	for name, a := range n.authorities {
		a.former = nil
		n.authorities[name] = a
	}
	n.serviceAccount = n.serviceAccount[:1]
}

func TestWhatAGenerationLeavesOutIsNamed(t *testing.T) {
	b := testBundle(t)
	knows, works := inTwo(t, b, t0)
	for _, next := range []*Bundle{knows, works} {
		if out, err := next.LeftOut(b); len(out) > 0 || err != nil {
			t.Errorf("%s leaves out %q, %v", next, out, err)
		}
	}
	var want []string
	for _, name := range Authorities() {
		p, err := pin(b.authorities[name].cert.PublicKey)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, string(name)+" CA "+p)
	}
	p, err := pin(b.serviceAccount[0].Public())
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, "service-account key "+p)
	if out, err := changed(works, without).LeftOut(works); err != nil || !slices.Equal(out, want) {
		t.Errorf("left out %q, %v, want %q", out, err, want)
	}
}

// goOnBesideEachOther has a master of each of two generations issue, sign and encrypt, and the other one judge it.
func goOnBesideEachOther(t *testing.T, former, next *Bundle) bool {
	t.Helper()
	for _, pair := range [][2]*Bundle{{former, next}, {next, former}} {
		worker, judge := pair[0], pair[1]
		for _, leaf := range []Leaf{EtcdServer, EtcdPeerLeaf, APIServer, FrontProxyClient} {
			trust := judge.authorities[specOf(t, leaf).Authority].trust()
			if verify(mustIssue(t, worker, leaf, t0).cert, t0, trust...) != nil {
				return false
			}
		}
		token := sha256.Sum256([]byte("token"))
		signed, err := worker.serviceAccount[0].Sign(rand.Reader, token[:], crypto.SHA256)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(judge.serviceAccount, func(k crypto.Signer) bool {
			return ecdsa.VerifyASN1(k.Public().(*ecdsa.PublicKey), token[:], signed)
		}) {
			return false
		}
		read := map[string]string{}
		for _, k := range judge.encryption {
			read[k.name] = string(k.secret)
		}
		if k := worker.encryption[0]; read[k.name] != string(k.secret) {
			return false
		}
		for _, k := range former.encryption { // etcd may hold what any of them encrypted
			if judge == next && read[k.name] != string(k.secret) {
				return false
			}
		}
	}
	return true
}

// A CA that begins to issue outlives its leaves; one that is about to end issues on until the next one is trusted.
func TestANewCAOutlivesTheLeavesThatItIssues(t *testing.T) {
	b := testBundle(t)
	ending := func(generation uint64, end time.Time) *Bundle {
		return changed(b, func(n *Bundle) {
			n.Generation = generation
			n.authorities[FrontProxy] = remade(t, n.authorities[FrontProxy], endsAt(end))
		})
	}
	for left, lasts := range map[time.Duration]bool{
		time.Hour: false, 24 * time.Hour: false, LeafLifetime - time.Second: false, LeafLifetime: true,
		2 * LeafLifetime: true,
	} {
		short := ending(1, t0.Add(left))
		if err := short.CheckNewCAs(nil, t0); (err == nil) != lasts || err != nil &&
			!strings.Contains(err.Error(), "the front-proxy CA ends at 2027-") {
			t.Errorf("a first bundle whose CA ends in %s: %v", left, err)
		}
		// The record has it already, and it is to be rolled.
		knows, works := inTwo(t, short, t0)
		if err := knows.CheckNewCAs(short, t0); err != nil {
			t.Errorf("the next generation issues with the CA that ends in %s: %v", left, err)
		}
		if _, err := Continued([]*Bundle{short, knows, works}); err != nil {
			t.Errorf("a CA that ends in %s is not rolled: %v", left, err)
		}
		// The other way round: it is the new one that ends so soon.
		trusts := changed(b, func(n *Bundle) {
			n.Generation = 2
			a := n.authorities[FrontProxy]
			a.former = []*x509.Certificate{short.authorities[FrontProxy].cert}
			n.authorities[FrontProxy] = a
		})
		issues := changed(short, func(n *Bundle) {
			n.Generation = 3
			a := n.authorities[FrontProxy]
			a.former = []*x509.Certificate{b.authorities[FrontProxy].cert}
			n.authorities[FrontProxy] = a
		})
		if n, err := Continued([]*Bundle{b, trusts, issues}); (err == nil) != lasts || n < 2 {
			t.Errorf("a new CA that ends in %s: %d generations continue, %v", left, n, err)
		}
	}
}
