package systemd

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coreos/go-systemd/v22/unit"
)

func readUnit(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("units", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// options are a unit's, by section and name. None stands twice.
func options(t *testing.T, name string) map[string]string {
	t.Helper()
	read, err := unit.DeserializeOptions(bytes.NewReader(readUnit(t, name)))
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]string{}
	for _, o := range read {
		if _, double := values[o.Section+"."+o.Name]; double {
			t.Errorf("%s: %s stands twice", name, o.Name)
		}
		values[o.Section+"."+o.Name] = o.Value
	}
	return values
}

// What the agent relies on: each of these was a failure somewhere else.
func TestUnitSaysWhatTheAgentReliesOn(t *testing.T) {
	values := options(t, "quorate.service")
	for name, want := range map[string]string{
		"Unit.StartLimitIntervalSec": "0",
		"Unit.Wants":                 "network-online.target time-sync.target var-lib-quorate.mount",
		"Unit.After":                 "network-online.target time-sync.target var-lib-quorate.mount",
		"Service.Type":               "notify", "Service.NotifyAccess": "main", "Service.KillMode": "mixed",
		"Service.Delegate":         "yes",
		"Service.RuntimeDirectory": "quorate", "Service.RuntimeDirectoryPreserve": "yes",
		"Service.OOMPolicy": "continue", "Service.OOMScoreAdjust": "-998", "Service.Nice": "-5",
		"Service.TimerSlackNSec": "500us",
		"Service.WatchdogSec":    "30s", "Service.WatchdogSignal": "SIGABRT",
		"Service.TimeoutStartFailureMode": "abort", "Service.TimeoutStopSec": "90s",
		"Service.Restart": "always", "Service.RestartSec": "1s", "Service.ExecStart": "/usr/local/bin/quorate agent",
		"Install.WantedBy":                "multi-user.target",
		"Service.RuntimeDirectoryMode":    "0711",
		"Service.LogRateLimitIntervalSec": "0",
	} {
		if values[name] != want {
			t.Errorf("%s is %q, want %q", name, values[name], want)
		}
	}
	// A child begins in its cgroup by clone3(2), which the first refuses; etcd and the routes need the second.
	for name, why := range map[string]string{"Service.RestrictNamespaces": "refuses clone3(2)",
		"Service.PrivateNetwork": "leaves no network", "Service.ProtectControlGroups": "leaves children no cgroups",
		"Service.PrivateDevices": "hides the data disk", "Service.ProtectClock": "hides the data disk",
		"Service.ProtectHostname": "keeps the name that the machine has before it has its own"} {
		if value, ok := values[name]; ok {
			t.Errorf("%s=%s %s", name, value, why)
		}
	}
	// With any of these a disk that cannot be mounted is silence: nobody is there to say what is wrong.
	for _, name := range []string{"Unit.Requires", "Unit.BindsTo", "Unit.RequiresMountsFor", "Unit.Requisite"} {
		if value, ok := values[name]; ok {
			t.Errorf("%s=%s keeps the agent from starting", name, value)
		}
	}
}

// What the agent and all that it starts are kept from, in full: an option that is taken out, or a capability that is
// added, is a change of what an intruder can do.
func TestUnitIsConfined(t *testing.T) {
	values := options(t, "quorate.service")
	for name, want := range map[string]string{
		"NoNewPrivileges": "yes", "ProtectSystem": "yes", "ProtectHome": "yes", "PrivateTmp": "yes",
		"ProtectKernelTunables": "yes", "ProtectKernelModules": "yes", "ProtectKernelLogs": "yes",
		"RestrictRealtime": "yes", "RestrictSUIDSGID": "yes", "LockPersonality": "yes",
		"SystemCallArchitectures": "native", "UMask": "0077", "LimitCORE": "0",
		"RestrictAddressFamilies": "AF_UNIX AF_INET AF_INET6 AF_NETLINK",
		"CapabilityBoundingSet": "CAP_NET_ADMIN CAP_CHOWN CAP_DAC_OVERRIDE CAP_FOWNER CAP_SETUID CAP_SETGID CAP_KILL " +
			"CAP_SYS_NICE CAP_SYS_RESOURCE CAP_NET_BIND_SERVICE",
	} {
		if got := values["Service."+name]; got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if got, ok := values["Service.AmbientCapabilities"]; ok {
		t.Errorf("AmbientCapabilities is %q: children would inherit them", got)
	}
}

// The kubelet outlives the agent, waits for its certificates however long that takes, and is aborted when it hangs.
func TestTheKubeletsUnitSaysWhatAMasterReliesOn(t *testing.T) {
	values := options(t, "kubelet.service")
	for name, want := range map[string]string{
		"Unit.StartLimitIntervalSec": "0", "Unit.After": "network-online.target containerd.service",
		"Service.TimeoutStartSec": "infinity", "Service.Restart": "always", "Service.WatchdogSec": "30s",
		"Service.KillMode": "process", "Service.OOMScoreAdjust": "-999", "Install.WantedBy": "multi-user.target",
	} {
		if values[name] != want {
			t.Errorf("%s is %q, want %q", name, values[name], want)
		}
	}
	for name, value := range values {
		if strings.HasPrefix(name, "Unit.") && strings.Contains(value, "quorate.service") {
			t.Errorf("%s=%s binds the kubelet's life to the agent's", name, value)
		}
	}
}

// systemd's own reader must find nothing to remark, also not an option that it does not know.
func TestUnitsAreVerifiedBySystemd(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	verify := func(name string, text []byte) string {
		file := filepath.Join(t.TempDir(), name)
		// The program need not be installed here; any that exists will do.
		program, _, _ := strings.Cut(name, ".")
		text = bytes.Replace(text, []byte("ExecStart=/usr/local/bin/"+program+" "), []byte("ExecStart="+self+" "), 1)
		if err := os.WriteFile(file, text, 0o644); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(analyze, "verify", "--man=no", file).CombinedOutput()
		var ours []string
		for line := range strings.Lines(string(out)) {
			if strings.Contains(line, name) {
				ours = append(ours, line)
			}
		}
		if err != nil && len(ours) == 0 {
			t.Logf("systemd-analyze: %v: %s", err, out)
		}
		return strings.Join(ours, "")
	}
	for _, name := range []string{"quorate.service", "kubelet.service"} {
		text := readUnit(t, name)
		if remarks := verify(name, text); remarks != "" {
			t.Errorf("systemd remarks: %s", remarks)
		}
		if remarks := verify(name, append(text, "[Service]\nWatchdogSeconds=3\n"...)); !strings.Contains(remarks,
			"WatchdogSeconds") {
			t.Errorf("systemd overlooks an unknown option, so this test shows nothing; it said %q", remarks)
		}
	}
}
