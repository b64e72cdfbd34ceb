package certs

import (
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// cpuBudget is what one replica's whole set may cost.
const cpuBudget = 50 * time.Millisecond

// cpuTime is what this process has used so far.
func cpuTime(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// perSet runs one whole set b.N times, reports its CPU time and holds it against the budget.
func perSet(b *testing.B, set func()) {
	start := cpuTime(b)
	for b.Loop() {
		set()
	}
	mean := (cpuTime(b) - start) / time.Duration(b.N)
	b.ReportMetric(float64(mean.Microseconds())/1000, "cpu-ms/set")
	if mean > cpuBudget {
		b.Errorf("one set costs %s of CPU, the budget is %s", mean, cpuBudget)
	}
}

// BenchmarkReplicaSet issues all leaves of one replica, through the policy, cfssl and the read-back.
func BenchmarkReplicaSet(b *testing.B) {
	bundle := testBundle(b)
	perSet(b, func() {
		i := testIssuer(b, bundle, t0)
		for _, s := range testLeaves(b) {
			if _, err := i.issue(s); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkReplicaSetFloor makes the same leaves with the standard library alone: a key and a signature each,
// unchecked.
func BenchmarkReplicaSetFloor(b *testing.B) {
	bundle := testBundle(b)
	specs := testLeaves(b)
	perSet(b, func() {
		for n, s := range specs {
			key, err := newKey()
			if err != nil {
				b.Fatal(err)
			}
			var ips []net.IP
			for _, a := range s.Addresses {
				ips = append(ips, a.AsSlice())
			}
			ca := bundle.authorities[s.Authority]
			if _, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(int64(n + 1)),
				Subject: pkix.Name{CommonName: s.CommonName}, NotBefore: t0, NotAfter: t0.Add(LeafLifetime),
				KeyUsage:    x509.KeyUsageDigitalSignature,
				ExtKeyUsage: extended[s.Usage], DNSNames: s.Names, IPAddresses: ips}, ca.cert, key.Public(),
				ca.key); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkEnsureFirstBoot is all of it: 32 files, each with its fsyncs.
func BenchmarkEnsureFirstBoot(b *testing.B) {
	bundle := testBundle(b)
	r := testRequest(b, bundle)
	perSet(b, func() {
		if err := os.RemoveAll(r.Files.Dir); err != nil {
			b.Fatal(err)
		}
		if err := os.RemoveAll(r.Files.Volatile); err != nil {
			b.Fatal(err)
		}
		if _, err := Ensure(r); err != nil {
			b.Fatal(err)
		}
	})
}

// BenchmarkEnsureNothingToDo is what a restart of the agent and each later check cost.
func BenchmarkEnsureNothingToDo(b *testing.B) {
	r := testRequest(b, testBundle(b))
	mustEnsure(b, r)
	perSet(b, func() {
		if _, err := Ensure(r); err != nil {
			b.Fatal(err)
		}
	})
}
