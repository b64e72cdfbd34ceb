package controlplane

import (
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/replica"
)

func TestExtraArgsWin(t *testing.T) {
	own := flags{{"v", "2"}, {"etcd-cafile", "ca"}, {"tls-cipher-suites", "A,B"},
		{"enable-admission-plugins", "NodeRestriction"}}
	for _, tc := range []struct {
		name  string
		extra string
		want  string
	}{
		{"none", "", "--v=2 --etcd-cafile=ca --tls-cipher-suites=A,B --enable-admission-plugins=NodeRestriction"},
		{"a new flag comes behind", "--x=1", "--v=2 --etcd-cafile=ca --tls-cipher-suites=A,B " +
			"--enable-admission-plugins=NodeRestriction --x=1"},
		{"a value is replaced", "--v=4", "--etcd-cafile=ca --tls-cipher-suites=A,B " +
			"--enable-admission-plugins=NodeRestriction --v=4"},
		{"a list is replaced, not grown", "--tls-cipher-suites=A",
			"--v=2 --etcd-cafile=ca --enable-admission-plugins=NodeRestriction --tls-cipher-suites=A"},
		{"the components' other spelling", "--tls_cipher_suites=A",
			"--v=2 --etcd-cafile=ca --enable-admission-plugins=NodeRestriction --tls_cipher_suites=A"},
		{"admission plugins are added", "--enable-admission-plugins=X",
			"--v=2 --etcd-cafile=ca --tls-cipher-suites=A,B --enable-admission-plugins=NodeRestriction " +
				"--enable-admission-plugins=X"},
		{"a repeated flag stays repeated", "--n=1 --n=2",
			"--v=2 --etcd-cafile=ca --tls-cipher-suites=A,B --enable-admission-plugins=NodeRestriction --n=1 --n=2"},
	} {
		if got := strings.Join(own.with(strings.Fields(tc.extra)), " "); got != tc.want {
			t.Errorf("%s:\ngot  %s\nwant %s", tc.name, got, tc.want)
		}
	}
}

func TestValidate(t *testing.T) {
	for _, tc := range []struct {
		name       string
		components map[string]replica.Component
		want       []string // a part of each line
	}{
		{"nothing", nil, nil},
		{"flags that are free", map[string]replica.Component{
			replica.APIServer: {ExtraArgs: []string{"--event-ttl=2h", "--enable-priority-and-fairness", "--v=4"}},
		}, nil},
		{"a declared component's arguments are not judged", map[string]replica.Component{
			"mine": {ExtraArgs: []string{"-h", "--etcd-servers", "serve"}},
		}, nil},
		{"every fault at once", map[string]replica.Component{
			replica.APIServer:         {Enabled: new(false), ExtraArgs: []string{"--anonymous-auth=true", "--v", "4"}},
			replica.ControllerManager: {ExtraArgs: []string{"--leader_elect=false"}},
		}, []string{
			`components.kube-apiserver.extraArgs[0]: found "--anonymous-auth=true"; allowed: any flag but --anonymous-auth`,
			`components.kube-apiserver.extraArgs[2]: found "4"; allowed: --NAME=VALUE`,
			`components.kube-controller-manager.extraArgs[0]: found "--leader_elect=false"; allowed: any flag but --leader-elect, which is quorate's: the field election`,
			`components.kube-apiserver.enabled: found "false"; allowed: true`,
		}},
		{"what ends the flags, or is none", map[string]replica.Component{
			replica.Scheduler: {ExtraArgs: []string{"--", "-v=2", "---v=2", "", "--=1"}},
		}, slices.Repeat([]string{"components.kube-scheduler.extraArgs"}, 5)},
		{"an owned flag with a blank before =", map[string]replica.Component{
			replica.APIServer: {ExtraArgs: []string{"--bind-address =::"}},
		}, []string{`extraArgs[0]: found "--bind-address =::"; allowed: --NAME=VALUE`}},
		{"OpenID Connect by flags", map[string]replica.Component{
			replica.APIServer: {ExtraArgs: []string{"--oidc-issuer-url=https://accounts.example",
				"--oidc_client_id=x"}},
		}, []string{"any flag but --oidc-issuer-url, which is quorate's: the field jwt lets in",
			"any flag but --oidc-client-id, which is quorate's: the field jwt"}},
		{"a webhook by flags", map[string]replica.Component{
			replica.APIServer: {ExtraArgs: []string{"--authorization-webhook-config-file=/etc/authz",
				"--authorization-config=/etc/authz", "--authorization-policy-file=/etc/abac"}},
		}, []string{"the field authorization adds webhooks", "the field authorization adds webhooks",
			"a policy of attributes (ABAC) is not supported"}},
		{"the same flags are others in the controller-manager", map[string]replica.Component{
			replica.ControllerManager: {ExtraArgs: []string{"--authorization-webhook-cache-authorized-ttl=10s"}},
		}, nil},
		{"what prints and exits", map[string]replica.Component{
			replica.Autoscaler: {ExtraArgs: []string{"--version", "--help"}},
		}, []string{"would print and exit", "would print and exit"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := Validate(&replica.Cluster{Components: tc.components})
			var lines []string
			if err != nil {
				lines = strings.Split(err.Error(), "\n")
			}
			if len(lines) != len(tc.want) {
				t.Fatalf("got %d faults, want %d:\n%v", len(lines), len(tc.want), err)
			}
			for i, part := range tc.want {
				if !strings.Contains(lines[i], part) {
					t.Errorf("got  %s\nwant %s", lines[i], part)
				}
			}
		})
	}
}

// TestWhatQuorateSetsForSafetyIsOwned: each of these flags, set by an extra argument, would open a door.
func TestWhatQuorateSetsForSafetyIsOwned(t *testing.T) {
	for _, flag := range []string{"anonymous-auth", "authentication-config", "authorization-mode",
		"authorization-config", "client-ca-file", "requestheader-allowed-names", "etcd-servers",
		"service-account-signing-key-file", "encryption-provider-config"} {
		if whyOwned(replica.APIServer, flag) == "" {
			t.Errorf("an extra argument may set --%s", flag)
		}
	}
}
