package controlplane

import (
	"strconv"
	"strings"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/supervisor"
)

// controllerManager is the process of kube-controller-manager. It may sign kubelets' certificates, so it alone has the
// authority's key, and only where Input.Signing says that the key is there.
func (in Input) controllerManager() supervisor.Spec {
	own := concat(
		in.clientFlags(certs.ControllerManager),
		in.loopbackServing(controllerManagerPort, certs.ControllerManagerServing),
		electionFlags(in.Cluster.ElectionTimes()),
		flags{
			{"cluster-name", in.Cluster.Name},
			// Bootstrap tokens that have expired are removed. cluster-info is not signed (bootstrap-signer-controller):
			// it is for anonymous readers, and there are none.
			{"controllers", "*,token-cleaner-controller"},
			{"use-service-account-credentials", "true"},
			// A new leader first fetches an identity for each of its 40 controllers, some hundred requests. At
			// upstream's 20 a second that is 5 s in which nothing is controlled; like this it is less than one. The
			// apiserver's priority and fairness bounds what one client takes.
			{"kube-api-qps", "100"},
			{"kube-api-burst", "200"},
			// Upstream's own is a year.
			{"cluster-signing-duration", certs.LeafLifetime.String()},
			{"root-ca-file", in.Files.CA(certs.Kubernetes)},
			{"service-account-private-key-file", in.Files.ServiceAccountKey()},
			{"allocate-node-cidrs", "true"},
			{"cluster-cidr", in.Cluster.Network.PodCIDR},
			{"service-cluster-ip-range", strings.Join(in.Cluster.Network.ServiceCIDRs, ",")},
			{"profiling", "false"},
			{"v", "2"},
		})
	if in.Signing {
		own = append(own, flags{
			{"cluster-signing-cert-file", in.Files.CASigner(certs.Kubernetes)},
			{"cluster-signing-key-file", in.Files.CASignerKey(certs.Kubernetes)},
		}...)
	}
	s := in.spec(replica.ControllerManager, own)
	// It has nothing but /healthz, which fails when the held lease has not been renewed for 20 s more than it lasts.
	check := get(in.verifiedClient(), loopbackURL("https", controllerManagerPort, "/healthz"))
	s.Start, s.Live = startProbe(check), liveProbe(check)
	s.ExpectedExit = lostLease
	return s
}

// scheduler is the process of kube-scheduler. An operator's --config is refused: upstream then ignores --kubeconfig.
func (in Input) scheduler() supervisor.Spec {
	s := in.spec(replica.Scheduler, concat(
		in.clientFlags(certs.Scheduler),
		in.loopbackServing(schedulerPort, certs.SchedulerServing),
		electionFlags(in.Cluster.ElectionTimes()),
		flags{{"profiling", "false"}, {"v", "2"}}))
	client := in.verifiedClient()
	// /healthz holds the check of the lease that /livez lacks.
	live := get(client, loopbackURL("https", schedulerPort, "/healthz"))
	s.Start, s.Live = startProbe(live), liveProbe(live)
	s.Ready = readyProbe(get(client, loopbackURL("https", schedulerPort, "/readyz")))
	s.ExpectedExit = lostLease
	return s
}

// autoscaler is the process of cluster-autoscaler, with what kube-up gave it. Which groups it scales is for the
// configuration's extra arguments (--nodes, --node-group-auto-discovery).
func (in Input) autoscaler() supervisor.Spec {
	s := in.spec(replica.Autoscaler, concat(
		flags{
			{"kubeconfig", in.Files.Kubeconfig(certs.Autoscaler)},
			{"cloud-provider", "gce"},
			{"cluster-name", in.Cluster.Name},
			{"address", "127.0.0.1:" + strconv.Itoa(autoscalerPort)},
			{"write-status-configmap", "true"},
			{"balance-similar-node-groups", "true"},
			{"expendable-pods-priority-cutoff", "-10"},
		},
		electionFlags(in.Cluster.ElectionTimes().WithoutTimeLimit()),
		flags{{"v", "2"}}))
	// It answers 200 until it leads, and 500 once its loop has stood still for 10 minutes.
	check := supervisor.HTTPGet(loopbackClient(), loopbackURL("http", autoscalerPort, "/health-check"), nil)
	s.Start, s.Live = startProbe(check), liveProbe(check)
	s.ExpectedExit = lostLease
	return s
}

// clientFlags make a component a client of the apiserver, and let it ask the apiserver about clients of its own. With
// the authorities given it does not have to read them from the cluster before it can start.
func (in Input) clientFlags(leaf certs.Leaf) flags {
	kubeconfig := in.Files.Kubeconfig(leaf)
	return flags{
		{"kubeconfig", kubeconfig},
		{"authentication-kubeconfig", kubeconfig},
		{"authorization-kubeconfig", kubeconfig},
		{"client-ca-file", in.Files.CA(certs.Kubernetes)},
		{"requestheader-client-ca-file", in.Files.CA(certs.FrontProxy)},
		{"requestheader-allowed-names", "front-proxy-client"},
	}
}

// electionFlags make the replicas' processes elect one of them by Lease.
func electionFlags(t replica.ElectionTimes) flags {
	return flags{
		{"leader-elect", "true"},
		{"leader-elect-lease-duration", t.LeaseDuration.String()},
		{"leader-elect-renew-deadline", t.RenewDeadline.String()},
		{"leader-elect-retry-period", t.RetryPeriod.String()},
	}
}

// loopbackServing keeps a component's port on the replica. Its health is open there, as the probes need it; all else is
// asked of the apiserver.
func (in Input) loopbackServing(port int, leaf certs.Leaf) flags {
	return concat(flags{
		{"bind-address", "127.0.0.1"},
		{"secure-port", strconv.Itoa(port)},
		{"authorization-always-allow-paths", "/healthz,/readyz,/livez"},
	}, tlsFlags(in.Files.Leaf(leaf)))
}

// lostLease reports an exit that upstream's components make on purpose: who has lost the lease must not go on for a
// moment. The words are those of kube-controller-manager, kube-scheduler (both exit 1) and cluster-autoscaler (255).
func lostLease(code int, tail string) bool {
	tail = strings.ToLower(tail)
	switch code {
	case 1:
		return strings.Contains(tail, "leaderelection lost") || strings.Contains(tail, "lost lease")
	case 255:
		return strings.Contains(tail, "lost master")
	}
	return false
}
