package controlplane

import "github.com/quorate/quorate/internal/replica"

// owned are flags that an extra argument must not set, with the reason that is shown.
type owned struct {
	why   string
	flags []string
}

// Reasons that several components share.
const (
	whyCertificates = "quorate issues and renews the certificates"
	whyProbes       = "quorate's probes ask there"
	whyElection     = "the field election times every lease, and the agent watches them by name"
	whyServices     = "the field network.serviceCIDRs says it, for every component alike"
	whyExits        = "the program would print and exit"
)

// ownedOnce are the flags of every known component.
var ownedOnce = []owned{
	{whyExits, []string{"help", "h", "version"}},
}

// ownedServing are those of the components that serve with a certificate of certs.
var ownedServing = []owned{
	{whyCertificates, []string{"tls-cert-file", "tls-private-key-file", "cert-dir", "client-ca-file",
		"requestheader-client-ca-file", "requestheader-allowed-names"}},
	{whyProbes, []string{"bind-address", "secure-port"}},
}

// ownedElecting are those of the components that are clients of the apiserver and elect a leader.
var ownedElecting = []owned{
	{"the component must reach its own replica's apiserver with its own certificate",
		[]string{"kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig", "master"}},
	{whyProbes, []string{"authorization-always-allow-paths"}},
	{whyElection, []string{"leader-elect", "leader-elect-lease-duration", "leader-elect-renew-deadline",
		"leader-elect-retry-period", "leader-elect-resource-lock", "leader-elect-resource-name",
		"leader-elect-resource-namespace"}},
}

// ownedBy are the flags of one component.
var ownedBy = map[string][][]owned{
	replica.APIServer: {ownedOnce, ownedServing, {
		{"the apiserver's data must be the replica's own member's, whole and under the prefix that it was written with",
			[]string{"etcd-servers", "etcd-prefix", "etcd-cafile", "etcd-certfile", "etcd-keyfile", "storage-backend"}},
		{"default/kubernetes lists the replicas by their own addresses",
			[]string{"advertise-address", "endpoint-reconciler-type", "apiserver-count"}},
		{"Node and RBAC always stay, or whoever has a certificate may do anything; the field authorization adds " +
			"webhooks to them", []string{
			"authorization-mode", "authorization-config", "authorization-webhook-config-file",
			"authorization-webhook-version",
			"authorization-webhook-cache-authorized-ttl", "authorization-webhook-cache-unauthorized-ttl"}},
		{"Node and RBAC always stay; a policy of attributes (ABAC) is not supported",
			[]string{"authorization-policy-file"}},
		{"anonymous requests reach the health paths and nothing else; the field jwt lets in the users of OpenID " +
			"Connect", []string{
			"anonymous-auth", "authentication-config"}},
		{"the field jwt lets in the users of OpenID Connect; the apiserver takes no such flag beside it", []string{
			"oidc-issuer-url", "oidc-client-id", "oidc-ca-file", "oidc-username-claim", "oidc-username-prefix",
			"oidc-groups-claim", "oidc-groups-prefix", "oidc-signing-algs", "oidc-required-claim"}},
		{whyCertificates, []string{"proxy-client-cert-file", "proxy-client-key-file", "kubelet-client-certificate",
			"kubelet-client-key", "requestheader-username-headers", "requestheader-group-headers",
			"requestheader-uid-headers", "requestheader-extra-headers-prefix"}},
		{"the bundle holds the keys of service accounts", []string{"service-account-signing-key-file",
			"service-account-key-file", "service-account-signing-endpoint"}},
		{"the bundle holds the keys; the field encryptionAtRest says whether secrets are written with them",
			[]string{"encryption-provider-config", "encryption-provider-config-automatic-reload"}},
		{"the field auditPolicy names the policy's file", []string{"audit-policy-file"}},
		{whyServices, []string{"service-cluster-ip-range"}},
		{"the whole replica must have stopped before GCE cuts the power", []string{"shutdown-delay-duration",
			"shutdown-watch-termination-grace-period", "shutdown-send-retry-after"}},
	}},
	replica.ControllerManager: {ownedOnce, ownedServing, ownedElecting, {
		{"the bundle holds the authority's key and those of service accounts", []string{
			"root-ca-file", "service-account-private-key-file", "cluster-signing-cert-file", "cluster-signing-key-file",
			"cluster-signing-kube-apiserver-client-cert-file", "cluster-signing-kube-apiserver-client-key-file",
			"cluster-signing-kubelet-client-cert-file", "cluster-signing-kubelet-client-key-file",
			"cluster-signing-kubelet-serving-cert-file", "cluster-signing-kubelet-serving-key-file",
			"cluster-signing-legacy-unknown-cert-file", "cluster-signing-legacy-unknown-key-file"}},
		{"with one identity for all controllers RBAC could not tell them apart",
			[]string{"use-service-account-credentials"}},
		{whyServices, []string{"service-cluster-ip-range"}},
		{"the field network.podCIDR says it", []string{"cluster-cidr"}},
		{"the field name says it", []string{"cluster-name"}},
	}},
	replica.Scheduler: {ownedOnce, ownedServing, ownedElecting, {
		{whyExits, []string{"write-config-to"}},
	}},
	replica.Autoscaler: {ownedOnce, {
		{"the component must reach its own replica's apiserver with its own certificate",
			[]string{"kubeconfig", "kubernetes"}},
		{whyProbes, []string{"address"}},
		{"the agent finds the component's lease there", []string{"namespace"}},
		{"the field name says it", []string{"cluster-name"}},
		{whyElection, []string{"leader-elect", "leader-elect-lease-duration", "leader-elect-renew-deadline",
			"leader-elect-retry-period", "leader-elect-resource-lock", "leader-elect-resource-name",
			"leader-elect-resource-namespace"}},
	}},
}

// whyOwned is the reason why an extra argument of the component may not set the flag; empty: it may.
func whyOwned(component, flag string) string {
	for _, group := range ownedBy[component] {
		for _, o := range group {
			for _, f := range o.flags {
				if f == flag {
					return o.why
				}
			}
		}
	}
	return ""
}
