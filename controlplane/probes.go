package controlplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/supervisor"
)

// How components are asked. All limits are times, so that checks that hang give a process no more than checks that are
// refused.
const (
	startPeriod, startTimeout = 50 * time.Millisecond, 2 * time.Second
	// startLimit is how long a start may take, from the launch. kubeadm gives as much.
	startLimit = 4 * time.Minute
	// A process is restarted about a minute after it last answered well: a replica that is alone should be back soon,
	// and one that is slow must not be shot. kube-up gave 30 to 45 s (3 misses at 10 s with time-outs of 15 s), kubeadm
	// gives 80 s (8 at 10 s).
	livePeriod, liveTimeout, liveLimit = 5 * time.Second, 10 * time.Second, 45 * time.Second
	// readyTimeout is above the 2 s that the apiserver itself gives etcd to answer. Two checks in a row must fail. Each
	// makes the apiserver read from etcd twice, through its quorum; load balancers ask by themselves.
	readyPeriod, readyRetry, readyTimeout, readyLimit = 5 * time.Second, time.Second, 3 * time.Second, time.Second
)

// check is the shape of a probe's question.
type check = func(context.Context) error

func startProbe(c check) *supervisor.Probe {
	return &supervisor.Probe{Check: c, Period: startPeriod, Timeout: startTimeout, Limit: startLimit}
}

func liveProbe(c check) *supervisor.Probe {
	return &supervisor.Probe{Check: c, Period: livePeriod, Timeout: liveTimeout, Limit: liveLimit}
}

func readyProbe(c check) *supervisor.Probe {
	return &supervisor.Probe{Check: c, Period: readyPeriod, Timeout: readyTimeout, Retry: readyRetry,
		Limit: readyLimit}
}

// apiServerProbes: an etcd that is slow or without quorum is no reason to restart an apiserver, which would only make
// it worse; it counts for readiness alone. No key service is asked in /livez: the encryption configuration is quorate's
// own and names none.
func (in Input) apiServerProbes() (start, live, ready *supervisor.Probe) {
	client, port := in.verifiedClient(), in.Cluster.Endpoint.Port
	alive := get(client, loopbackURL("https", port, "/livez?exclude=etcd"))
	return startProbe(alive), liveProbe(alive), readyProbe(get(client, loopbackURL("https", port, "/readyz")))
}

// verifiedClient trusts the cluster's authority as its file is when a connection is made, so that a rotation needs no
// new client.
func (in Input) verifiedClient() *http.Client {
	file := in.Files.CA(certs.Kubernetes)
	return probeClient(func() (*tls.Config, error) {
		pem, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s: no certificate in it", file)
		}
		return &tls.Config{RootCAs: roots, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS12}, nil
	})
}

// loopbackClient does not verify: nobody but the replica itself answers on loopback, the question holds no secret, and
// the program's certificate is one that quorate knows nothing of.
func loopbackClient() *http.Client {
	return probeClient(func() (*tls.Config, error) {
		return &tls.Config{InsecureSkipVerify: true}, nil
	})
}

// probeClient asks the process itself: no proxy, no redirect to elsewhere, one connection that is kept.
func probeClient(config func() (*tls.Config, error)) *http.Client {
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return errors.New("the answer is a redirect")
		},
		Transport: &http.Transport{
			MaxIdleConnsPerHost: 1,
			DialTLSContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				c, err := config()
				if err != nil {
					return nil, err
				}
				return (&tls.Dialer{Config: c}).DialContext(ctx, network, address)
			},
		},
	}
}
