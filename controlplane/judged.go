package controlplane

import (
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/certs"
	"github.com/quorate/quorate/internal/replica"
)

// judged is a flag that an extra argument may set to what is at least as strict as quorate's own value.
// docs/ARCHITECTURE.md has the guarantees that other values would weaken.
type judged struct {
	flag string
	// allowed says which values are taken; empty: none is.
	allowed string
	// takes judges a value as it is written; one that is not given is empty. A flag without takes is refused.
	takes func(value string) bool
	why   string
}

const (
	whyTLS        = "every connection is TLS 1.2 or newer"
	whyProfiling  = "profiles show what a process has in its memory, secrets too"
	whyAuditLog   = "the audit log is a file in the log folder that root alone reads, and it is always written"
	whyAnonymous  = "without the lookup an apiserver that is away makes a client anonymous, or refuses it for good"
	whySigning    = "no certificate lives longer than a leaf of quorate's: there is no way to revoke one"
	whyOldPlugins = "it replaces the admission plugins, NodeRestriction too; --enable-admission-plugins adds to them"
)

// neededPlugins are the admission plugins on which a guarantee rests. Without the first a kubelet changes any node.
// Without the others whoever may ask for a certificate can approve it, sign it, or ask for one of the administrators'
// group.
var neededPlugins = []string{
	"NodeRestriction", "CertificateApproval", "CertificateSigning", "CertificateSubjectRestriction",
}

var (
	judgedTLS = judged{"tls-min-version", "VersionTLS12 or VersionTLS13",
		oneOf("VersionTLS12", "VersionTLS13"), whyTLS}
	judgedProfiling = judged{"profiling", "false", isBool(false), whyProfiling}
	judgedLookup    = judged{"authentication-skip-lookup", "false", isBool(false), whyAnonymous}
)

// judgedBy are the judged flags of one component.
var judgedBy = map[string][]judged{
	replica.APIServer: {
		judgedTLS, judgedProfiling,
		{"debug-socket-path", "", nil, "whoever reaches the socket reads profiles without authentication"},
		{"admission-control", "", nil, whyOldPlugins},
		{"disable-admission-plugins", "any plugins but " + strings.Join(neededPlugins, ", "), withoutAny(neededPlugins),
			"nothing is issued or changed for a node but by that node, and nothing for administrators"},
		{"token-auth-file", "", nil, "a token in a file never expires, and is no leaf of the bundle's CAs"},
		{"service-account-lookup", "true", isBool(true), "a token must end with its service account"},
		{"kubelet-certificate-authority", "", nil,
			"the bundle's CA issues the kubelets' certificates; with another one any host could be a kubelet"},
		{"etcd-servers-overrides", "", nil,
			"all of the apiserver's data must be in the replica's own member, or a snapshot lacks it"},
		{"audit-log-path", "", nil, whyAuditLog},
	},
	replica.ControllerManager: {
		judgedTLS, judgedProfiling, judgedLookup,
		{"cluster-signing-duration", "1m to " + certs.LeafLifetime.String(),
			lasts(time.Minute, certs.LeafLifetime), whySigning},
	},
	replica.Scheduler: {
		judgedTLS, judgedProfiling, judgedLookup,
		{"config", "", nil, "the file replaces the kubeconfig, the election and the profiling that quorate sets " +
			"by flags"},
	},
	replica.Autoscaler: {judgedProfiling},
}

// judge says what would be allowed in place of an argument, and why; empty: the argument is taken.
func judge(component, arg string) string {
	name := flagName(arg)
	_, value, _ := strings.Cut(arg, "=")
	for _, j := range judgedBy[component] {
		switch {
		case j.flag != name:
		case j.takes == nil:
			return fmt.Sprintf("any flag but --%s: %s", name, j.why)
		case !j.takes(strings.TrimSpace(value)) && !(bare(arg) && j.takes("true")):
			return fmt.Sprintf("--%s=%s: %s", name, j.allowed, j.why)
		}
	}
	return ""
}

// bare is a flag without a value, which the components read as true.
func bare(arg string) bool { return !strings.Contains(arg, "=") }

// oneOf takes one of these values.
func oneOf(values ...string) func(string) bool {
	return func(value string) bool { return slices.Contains(values, value) }
}

// isBool takes this value in each of its spellings.
func isBool(want bool) func(string) bool {
	return func(value string) bool {
		got, err := strconv.ParseBool(value)
		return err == nil && got == want
	}
}

// lasts takes durations from the first to the second.
func lasts(shortest, longest time.Duration) func(string) bool {
	return func(value string) bool {
		d, err := time.ParseDuration(value)
		return err == nil && d >= shortest && d <= longest
	}
}

// withoutAny takes lists that have none of these. A list is read as the components do, as one line of CSV: quotes are
// not part of a name.
func withoutAny(names []string) func(string) bool {
	return func(value string) bool {
		if value == "" {
			return true
		}
		list, err := csv.NewReader(strings.NewReader(value)).Read()
		return err == nil && !slices.ContainsFunc(list, func(s string) bool {
			return slices.Contains(names, strings.TrimSpace(s))
		})
	}
}
