package controlplane

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/replica"
)

// TestWhatWeakensAGuaranteeIsRefused has each judged flag, in each direction that it has.
func TestWhatWeakensAGuaranteeIsRefused(t *testing.T) {
	const ok = ""
	serving := []string{replica.APIServer, replica.ControllerManager, replica.Scheduler}
	asking := serving[1:]
	all := append(serving[:3:3], replica.Autoscaler)
	seen := map[string]bool{}
	for _, tc := range []struct {
		components []string
		arg        string
		why        string // a part of the reason; empty: it is taken
	}{
		{serving, "--tls-min-version=VersionTLS10", "TLS 1.2 or newer"},
		{serving, "--tls-min-version=VersionTLS11", "TLS 1.2 or newer"},
		{serving, "--tls_min_version=VersionTLS11", "TLS 1.2 or newer"},
		{serving, "--tls-min-version=", "TLS 1.2 or newer"},
		{serving, "--tls-min-version=VersionTLS12", ok},
		{serving, "--tls-min-version=VersionTLS13", ok},
		{all, "--profiling=true", "secrets too"},
		{all, "--profiling", "secrets too"},
		{all, "--profiling=yes", "secrets too"},
		{all, "--profiling=false", ok},
		{all, "--profiling=0", ok},
		{serving[:1], "--debug-socket-path=/run/debug.sock", "without authentication"},
		{serving[:1], "--admission-control=AlwaysAdmit", "replaces the admission plugins"},
		{serving[:1], "--disable-admission-plugins=NodeRestriction", "but by that node"},
		{serving[:1], "--disable-admission-plugins=Priority,NodeRestriction", "but by that node"},
		{serving[:1], `--disable-admission-plugins=Priority,"NodeRestriction"`, "but by that node"},
		{serving[:1], "--disable-admission-plugins=CertificateApproval", "administrators"},
		{serving[:1], "--disable-admission-plugins=CertificateSigning", "administrators"},
		{serving[:1], "--disable-admission-plugins=CertificateSubjectRestriction", "administrators"},
		{serving[:1], "--disable-admission-plugins=DefaultStorageClass,Priority", ok},
		{serving[:1], "--disable-admission-plugins=", ok},
		{serving[:1], "--token-auth-file=/etc/tokens.csv", "never expires"},
		{serving[:1], "--service-account-lookup=false", "end with its service account"},
		{serving[:1], "--service-account-lookup=true", ok},
		{serving[:1], "--service-account-lookup", ok},
		{serving[:1], "--kubelet-certificate-authority=/etc/other.crt", "any host could be a kubelet"},
		{serving[:1], "--kubelet-certificate-authority=", "any host could be a kubelet"},
		{serving[:1], "--etcd-servers-overrides=/events#https://10.0.0.1:2379", "own member"},
		{serving[:1], "--audit-log-path=-", "root alone reads"},
		{serving[:1], "--audit-log-path=", "root alone reads"},
		{asking, "--authentication-skip-lookup=true", "anonymous"},
		{asking, "--authentication-skip-lookup", "anonymous"},
		{asking, "--authentication-skip-lookup=false", ok},
		{asking[:1], "--cluster-signing-duration=8760h", "no way to revoke"},
		{asking[:1], "--cluster-signing-duration=2160h1s", "no way to revoke"},
		{asking[:1], "--cluster-signing-duration=90d", "no way to revoke"},
		{asking[:1], "--cluster-signing-duration=0", "no way to revoke"},
		{asking[:1], "--cluster-signing-duration=2160h", ok},
		{asking[:1], "--cluster-signing-duration=1m", ok},
		{asking[:1], "--cluster-signing-duration=59s", "no way to revoke"},
		{asking[:1], "--cluster-signing-duration=24h", ok},
		{asking[1:], "--config=/etc/scheduler.yaml", "kubeconfig"},
		{serving[1:2], "--audit-log-path=-", ok}, // it is no flag of that component: the component says so
	} {
		for _, component := range tc.components {
			components := map[string]replica.Component{component: {ExtraArgs: []string{tc.arg}}}
			said := fmt.Sprint(Validate(&replica.Cluster{Components: components}))
			named := strings.Contains(said, tc.why) && strings.Contains(said, "--"+flagName(tc.arg))
			switch {
			case tc.why == ok && said != "<nil>":
				t.Errorf("%s %s: %s, want taken", component, tc.arg, said)
			case tc.why != ok && !named:
				t.Errorf("%s %s: %s, want refused with %q", component, tc.arg, said, tc.why)
			}
			seen[component+" "+flagName(tc.arg)] = true
		}
	}
	for component, list := range judgedBy {
		for _, j := range list {
			if !seen[component+" "+j.flag] {
				t.Errorf("%s --%s is not in this table", component, j.flag)
			}
		}
	}
}
