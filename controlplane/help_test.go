package controlplane

import (
	"os/exec"
	"regexp"
	"slices"
	"testing"

	"github.com/quorate/quorate/internal/realtest"
	"github.com/quorate/quorate/internal/replica"
)

// TestFlagsExist asks the real programs which flags they have: a flag that we set and they do not know keeps a replica
// down, and one that is owned under a wrong name is not owned.
func TestFlagsExist(t *testing.T) {
	specs, _, err := Components(representative())
	if err != nil {
		t.Fatal(err)
	}
	gone := map[string]bool{"apiserver-count": true} // of older releases; refused still
	for _, s := range specs {
		if !hasKubernetesVersion(s.Name) {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			exists := helpFlags(t, realtest.Program(t, s.Name))
			for _, arg := range s.Args {
				if !exists[flagName(arg)] {
					t.Errorf("%s has no flag for %s", s.Name, arg)
				}
			}
			for _, j := range judgedBy[s.Name] {
				if !exists[j.flag] {
					t.Errorf("%s has no flag --%s, which is judged", s.Name, j.flag)
				}
			}
			for _, group := range ownedBy[s.Name] {
				for _, o := range group {
					for _, f := range o.flags {
						if !exists[f] && !gone[f] && f != "h" {
							t.Errorf("%s has no flag --%s, which is owned", s.Name, f)
						}
					}
				}
			}
		})
	}
}

// TestEveryFlagOfOursIsOwnedOrJudgedOrFree names the flags that quorate sets and an operator may replace by any value.
// A new flag is a choice between the three, made here.
func TestEveryFlagOfOursIsOwnedOrJudgedOrFree(t *testing.T) {
	free := map[string]bool{
		"goaway-chance": true, "tls-cipher-suites": true, "enable-bootstrap-token-auth": true,
		"audit-log-maxage": true, "audit-log-maxbackup": true, "audit-log-maxsize": true,
		"service-account-issuer": true, "enable-admission-plugins": true, "enable-aggregator-routing": true,
		"kubelet-preferred-address-types": true, "allow-privileged": true,
		"v": true, "controllers": true, "kube-api-qps": true, "kube-api-burst": true, "allocate-node-cidrs": true,
		"cloud-provider": true, "write-status-configmap": true, "balance-similar-node-groups": true,
		"expendable-pods-priority-cutoff": true,
		"nodes":                           true, // the test's own
	}
	specs, _, err := Components(representative())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range specs {
		if !replica.Known(s.Name) {
			continue
		}
		for _, arg := range s.Args {
			name := flagName(arg)
			kinds := 0
			for _, is := range []bool{whyOwned(s.Name, name) != "", isJudged(s.Name, name), free[name]} {
				if is {
					kinds++
				}
			}
			if kinds != 1 {
				t.Errorf("%s --%s is owned, judged or free in %d ways, want one", s.Name, name, kinds)
			}
		}
	}
}

func isJudged(component, flag string) bool {
	return slices.ContainsFunc(judgedBy[component], func(j judged) bool { return j.flag == flag })
}

var helpFlag = regexp.MustCompile(`(?m)^ +(?:-\w, )?--([a-z0-9-]+)`)

func helpFlags(t *testing.T, path string) map[string]bool {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), path, "--help").Output()
	if err != nil {
		t.Fatalf("%s --help: %v", path, err)
	}
	names := map[string]bool{}
	for _, m := range helpFlag.FindAllSubmatch(out, -1) {
		names[string(m[1])] = true
	}
	if len(names) < 20 {
		t.Fatalf("%s --help names only %d flags", path, len(names))
	}
	return names
}
