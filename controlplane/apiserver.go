package controlplane

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/supervisor"
)

// How an apiserver goes. GCE cuts the power about 90 s after it asks a VM to stop; the components before it and etcd
// after it need their share.
const (
	// ShutdownDelay is how long /readyz says no while requests are still served. The load balancer's health check takes
	// replica.UnhealthyAfter misses to see it. What a load balancer needs beyond, the agent waits before it asks the
	// apiserver to stop.
	ShutdownDelay = 5 * time.Second
	// watchGrace is how long watches may take to end. With none given the process waits for them until the request
	// time-out, 60 s.
	watchGrace = 5 * time.Second
	// requestGrace is for requests in flight. A longer one is cut.
	requestGrace = 20 * time.Second
)

// unprivilegedPorts begin here: who listens below needs a capability.
const unprivilegedPorts = 1024

// localEtcd is the local member's client URL. It is an address, not a name, so that it does not hang on /etc/hosts.
const localEtcd = "https://127.0.0.1:2379"

// apiServer is the process of kube-apiserver.
func (in Input) apiServer(address netip.Addr, auditPolicy string) supervisor.Spec {
	s := in.spec(replica.APIServer, concat(
		in.servingFlags(address), in.authenticationFlags(), in.etcdFlags(), in.auditFlags(auditPolicy), in.tokenFlags(),
		flags{
			{"service-cluster-ip-range", strings.Join(in.Cluster.Network.ServiceCIDRs, ",")},
			{"enable-admission-plugins", "NodeRestriction"},
			// Without kube-proxy on the replica a cluster IP leads nowhere: aggregated APIs are reached by endpoint.
			{"enable-aggregator-routing", "true"},
			{"kubelet-certificate-authority", in.Files.CA(certs.Kubernetes)},
			{"kubelet-client-certificate", in.Files.Leaf(certs.APIServerKubelet)},
			{"kubelet-client-key", in.Files.Leaf(certs.APIServerKubelet)},
			{"kubelet-preferred-address-types", "InternalIP,ExternalIP,Hostname"},
			{"allow-privileged", "true"},
			{"profiling", "false"},
			{"v", "2"},
		}))
	s.Start, s.Live, s.Ready = in.apiServerProbes()
	s.StopTimeout = ShutdownDelay + watchGrace + requestGrace
	if s.RunAs != nil && in.Cluster.Endpoint.Port < unprivilegedPorts {
		s.RunAs.Capabilities = []uintptr{unix.CAP_NET_BIND_SERVICE}
	}
	return s
}

// servingFlags say where and how the apiserver serves. Its leaf is one file with key and certificate, so that a renewal
// is one rename; the apiserver reads it again by itself.
//
// Endpoints of the service "kubernetes": each apiserver advertises its own address and the lease reconciler lists those
// whose leases in etcd are fresh (15 s). All sharing the endpoint's address would make one that stops take the only
// entry away from all; with the reconciler off nobody would write the service's endpoints today.
func (in Input) servingFlags(address netip.Addr) flags {
	return concat(flags{
		{"bind-address", "0.0.0.0"}, // all addresses of both families
		{"secure-port", strconv.Itoa(in.Cluster.Endpoint.Port)},
		{"advertise-address", address.String()},
		{"endpoint-reconciler-type", "lease"},
		// An HTTP/2 connection would stay where the load balancer once put it: one request in a thousand ends its own.
		{"goaway-chance", "0.001"},
		{"shutdown-delay-duration", ShutdownDelay.String()},
		{"shutdown-watch-termination-grace-period", watchGrace.String()},
		{"shutdown-send-retry-after", "true"},
	}, tlsFlags(in.Files.Leaf(certs.APIServer)))
}

// tlsFlags are those of every serving component. The suites are those that TLS 1.2 has with forward secrecy and
// authenticated encryption; TLS 1.3's are not chosen by flag.
func tlsFlags(leaf string) flags {
	return flags{
		{"tls-cert-file", leaf},
		{"tls-private-key-file", leaf},
		{"tls-min-version", "VersionTLS12"},
		{"tls-cipher-suites", strings.Join([]string{
			"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
			"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
			"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
			"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
		}, ",")},
	}
}

// authenticationFlags say who a client is. Bootstrap tokens are how a new kubelet asks for its first certificate; one
// must be made before one can be used.
func (in Input) authenticationFlags() flags {
	return flags{
		{"authorization-config", in.authorizationFile()},
		{"authentication-config", in.authenticationFile()},
		{"enable-bootstrap-token-auth", "true"},
		{"client-ca-file", in.Files.CA(certs.Kubernetes)},
		{"requestheader-client-ca-file", in.Files.CA(certs.FrontProxy)},
		{"requestheader-allowed-names", "front-proxy-client"},
		{"requestheader-username-headers", "X-Remote-User"},
		{"requestheader-group-headers", "X-Remote-Group"},
		{"requestheader-uid-headers", "X-Remote-Uid"},
		{"requestheader-extra-headers-prefix", "X-Remote-Extra-"},
		{"proxy-client-cert-file", in.Files.Leaf(certs.FrontProxyClient)},
		{"proxy-client-key-file", in.Files.Leaf(certs.FrontProxyClient)},
	}
}

// etcdFlags say where the data is, and how secrets are encrypted in it. The file is always given: an apiserver that
// does not encrypt reads what others encrypt, or itself did before. It is read at the start alone: a reload would make
// what the process does differ from what the agent started it with, and says so.
func (in Input) etcdFlags() flags {
	servers := append([]string{localEtcd}, in.OtherEtcd[:min(2, len(in.OtherEtcd))]...)
	return flags{
		{"etcd-servers", strings.Join(servers, ",")},
		{"etcd-cafile", in.Files.CA(certs.EtcdClient)},
		{"etcd-certfile", in.Files.Leaf(certs.APIServerEtcd)},
		{"etcd-keyfile", in.Files.Leaf(certs.APIServerEtcd)},
		{"encryption-provider-config", in.encryptionFile()},
	}
}

// auditFlags bound the audit log at 11 files of 100 MiB and 30 days.
func (in Input) auditFlags(policy string) flags {
	return flags{
		{"audit-policy-file", policy},
		{"audit-log-path", filepath.Join(in.LogDir, "kube-apiserver-audit.log")},
		{"audit-log-maxage", "30"},
		{"audit-log-maxbackup", "10"},
		{"audit-log-maxsize", "100"},
	}
}

// tokenFlags are about service accounts' tokens.
func (in Input) tokenFlags() flags {
	return flags{
		{"service-account-issuer", serviceAccountIssuer(in.Cluster)},
		{"service-account-signing-key-file", in.Files.ServiceAccountKey()},
		{"service-account-key-file", in.Files.ServiceAccountPublicKeys()},
	}
}

// serviceAccountIssuer is in every service account's token, and known to whoever checks one elsewhere: it never
// changes.
func serviceAccountIssuer(c *replica.Cluster) string {
	return "https://kubernetes.default.svc." + c.Network.DNSDomain
}

// advertised is the replica's first address of the family of the first service range: the apiserver refuses another.
func (in Input) advertised() (netip.Addr, error) {
	if len(in.Cluster.Network.ServiceCIDRs) == 0 {
		return netip.Addr{}, fmt.Errorf("network.serviceCIDRs is empty: the configuration has not been defaulted")
	}
	first := in.Cluster.Network.ServiceCIDRs[0]
	services, err := netip.ParsePrefix(first)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("network.serviceCIDRs[0]: %w", err)
	}
	for _, a := range in.Identity.Addresses {
		if a.Is4() == services.Addr().Is4() {
			return a, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("network.serviceCIDRs[0] is %s, but %s has no address of that family (it has %v)",
		first, in.Identity.Place, in.Identity.Addresses)
}

// concat joins groups of flags.
func concat(groups ...flags) flags {
	var out flags
	for _, g := range groups {
		out = append(out, g...)
	}
	return out
}
